// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/timeline.h"

#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <string.h>

/* Collectives that run at once stand in threads of their own, from the third on. */
typedef enum { THREAD_STEP, THREAD_COMPUTE, THREAD_NETWORK } Thread;

#define NETWORK_THREADS MTF_NETWORK_AXES_MAX

/* Times are in microseconds; three decimals give every nanosecond exactly. */
static void add_microseconds(cJSON *event, const char *key, int64_t nanoseconds) {
    g_autofree char *text =
        g_strdup_printf("%" PRId64 ".%03d", nanoseconds / 1000, (int)(nanoseconds % 1000));
    cJSON_AddItemToObject(event, key, cJSON_CreateRaw(text));
}

static cJSON *add_event(cJSON *events, const char *name, const char *type, int thread) {
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "name", name);
    cJSON_AddStringToObject(event, "ph", type);
    mtf_json_add_integer(event, "pid", 0);
    mtf_json_add_integer(event, "tid", thread);
    cJSON_AddItemToArray(events, event);
    return event;
}

static cJSON *add_complete(cJSON *events, const char *name, int thread, int64_t start,
                           int64_t end) {
    cJSON *event = add_event(events, name, "X", thread);
    add_microseconds(event, "ts", start);
    add_microseconds(event, "dur", end - start);
    return cJSON_AddObjectToObject(event, "args");
}

static void add_name(cJSON *events, const char *what, int thread, const char *name) {
    cJSON *event = add_event(events, what, "M", thread);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(event, "args"), "name", name);
}

/* ---- Instructions -------------------------------------------------------------------------- */

static void add_kernel(cJSON *events, const MtfStepFacts *facts, int index, int thread) {
    const MtfInstruction *instruction = mtf_program_instruction(facts->program, index);
    const MtfOperation *op = mtf_graph_operation(facts->plan->graph, instruction->operation);
    cJSON *args = add_complete(events, op->name, thread, facts->schedule->starts[index],
                               facts->schedule->ends[index]);
    cJSON_AddStringToObject(args, "operation", mtf_operation_row(op->kind)->name);
    mtf_json_add_number(args, "flops", instruction->flops);
    mtf_json_add_number(args, "traffic_bytes", instruction->traffic_bytes);
    mtf_json_add_integer(args, "instruction", index);
}

/* For each instruction the thread it is drawn in: of what travels the first that is free. */
static int *choose_threads(const MtfStepFacts *facts) {
    int *threads = g_new(int, facts->schedule->length + 1);
    int64_t free_at[NETWORK_THREADS] = { 0 };
    for (int i = 0; i < facts->schedule->length; i++) {
        int thread = 0;
        threads[i] = THREAD_COMPUTE;
        if (!mtf_instruction_travels(facts->program, i))
            continue;
        while (thread < NETWORK_THREADS - 1 && free_at[thread] > facts->schedule->starts[i])
            thread++;
        free_at[thread] = facts->schedule->ends[i];
        threads[i] = THREAD_NETWORK + thread;
    }
    return threads;
}

static void add_collective(cJSON *args, const MtfStepFacts *facts,
                           const MtfInstruction *instruction) {
    g_autofree char *axes =
        mtf_mesh_mask_format(&facts->plan->layout->mesh, instruction->reshard.axes);
    cJSON_AddStringToObject(args, "axes", axes);
    mtf_json_add_integer(args, "payload_bytes", instruction->payload_bytes);
    mtf_json_add_integer(args, "tensors", instruction->n_inputs);
}

static void add_step(cJSON *events, const MtfStepFacts *facts, int index, int thread) {
    const MtfInstruction *instruction = mtf_program_instruction(facts->program, index);
    const char *tensor = mtf_reshard_tensor(facts->program, instruction)->name;
    g_autofree char *name =
        g_strjoin(" ", mtf_reshard_row(instruction->reshard.kind)->name, tensor, NULL);
    cJSON *args = add_complete(events, name, thread, facts->schedule->starts[index],
                               facts->schedule->ends[index]);
    cJSON_AddStringToObject(args, "tensor", tensor);
    cJSON_AddStringToObject(args, "for",
                            mtf_graph_operation(facts->plan->graph, instruction->operation)->name);
    if (mtf_step_facts_is_collective(facts, index))
        add_collective(args, facts, instruction);
    mtf_json_add_integer(args, "instruction", index);
}

static void add_memory(cJSON *events, const MtfStepFacts *facts, int index) {
    const int64_t *live = facts->live + index * MTF_MEMORY_KINDS;
    if (index > 0 && memcmp(live, live - MTF_MEMORY_KINDS, MTF_MEMORY_KINDS * sizeof *live) == 0)
        return;
    cJSON *event = add_event(events, "memory", "C", THREAD_STEP);
    add_microseconds(event, "ts", facts->schedule->starts[index]);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    for (int k = 0; k < MTF_MEMORY_HOST; k++) /* of the device */
        mtf_json_add_integer(args, mtf_memory_name((MtfMemoryKind)k), live[k]);
}

/* ---- Phases -------------------------------------------------------------------------------- */

static MtfPhase phase_of(const MtfStepFacts *facts, int index) {
    int operation = mtf_program_instruction(facts->program, index)->operation;
    return mtf_graph_operation(facts->plan->graph, operation)->phase;
}

/* The first instruction from `index` on that is of another phase. */
static int phase_end(const MtfStepFacts *facts, int index) {
    int end = index + 1;
    while (end < facts->schedule->length && phase_of(facts, end) == phase_of(facts, index))
        end++;
    return end;
}

/* A phase lasts until the next one starts: what it left to the network runs on beside it. */
static void add_phases(cJSON *events, const MtfStepFacts *facts) {
    const MtfSchedule *schedule = facts->schedule;
    add_complete(events, "step", THREAD_STEP, 0, schedule->nanoseconds);
    int64_t from = 0;
    for (int i = 0, end; i < schedule->length; i = end) {
        end = phase_end(facts, i);
        int64_t until =
            end < schedule->length ? MAX(from, schedule->starts[end]) : schedule->nanoseconds;
        add_complete(events, mtf_phase_name(phase_of(facts, i)), THREAD_STEP, from, until);
        from = until;
    }
}

static void name_threads(cJSON *events) {
    add_name(events, "process_name", THREAD_STEP, "predicted step, every rank alike");
    add_name(events, "thread_name", THREAD_STEP, "step");
    add_name(events, "thread_name", THREAD_COMPUTE, "compute");
    add_name(events, "thread_name", THREAD_NETWORK, "network");
}

char *mtf_timeline_print(const MtfStepFacts *facts) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "displayTimeUnit", "ms");
    cJSON *events = cJSON_AddArrayToObject(root, "traceEvents");
    name_threads(events);
    g_autofree int *threads = choose_threads(facts);
    add_phases(events, facts);
    for (int i = 0; i < facts->schedule->length; i++) {
        if (mtf_program_instruction(facts->program, i)->kind == MTF_INSTRUCTION_KERNEL)
            add_kernel(events, facts, i, threads[i]);
        else
            add_step(events, facts, i, threads[i]);
        add_memory(events, facts, i);
    }
    char *text = mtf_json_print(root);
    cJSON_Delete(root);
    return text;
}
