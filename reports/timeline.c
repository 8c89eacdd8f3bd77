// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/timeline.h"

#include "layouts/json_writer.h"

#include <inttypes.h>
#include <string.h>

typedef enum { THREAD_STEP, THREAD_COMPUTE, THREAD_NETWORK } Thread;

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

static void add_kernel(cJSON *events, const MtfStepFacts *facts, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(facts->program, index);
    const MtfOperation *op = mtf_graph_operation(facts->plan->graph, instruction->operation);
    cJSON *args = add_complete(events, op->name, THREAD_COMPUTE, facts->schedule->starts[index],
                               facts->schedule->ends[index]);
    cJSON_AddStringToObject(args, "operation", mtf_operation_row(op->kind)->name);
    mtf_json_add_number(args, "flops", instruction->flops);
    mtf_json_add_number(args, "traffic_bytes", instruction->traffic_bytes);
    mtf_json_add_integer(args, "instruction", index);
}

static void add_step(cJSON *events, const MtfStepFacts *facts, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(facts->program, index);
    const char *tensor = mtf_step_tensor(facts->program, instruction)->name;
    bool collective = mtf_step_facts_is_collective(facts, index);
    g_autofree char *axes =
        mtf_mesh_mask_format(&facts->plan->layout->mesh, instruction->step.axes);
    g_autofree char *name = g_strjoin(" ", mtf_step_name(instruction->step.kind), tensor, NULL);
    cJSON *args = add_complete(events, name, collective ? THREAD_NETWORK : THREAD_COMPUTE,
                               facts->schedule->starts[index], facts->schedule->ends[index]);
    cJSON_AddStringToObject(args, "tensor", tensor);
    cJSON_AddStringToObject(args, "for",
                            mtf_graph_operation(facts->plan->graph, instruction->operation)->name);
    if (collective) {
        cJSON_AddStringToObject(args, "axes", axes);
        mtf_json_add_integer(args, "payload_bytes", instruction->payload_bytes);
    }
    mtf_json_add_integer(args, "instruction", index);
}

static void add_memory(cJSON *events, const MtfStepFacts *facts, int index) {
    const int64_t *live = facts->live + index * MTF_MEMORY_KINDS;
    if (index > 0 && memcmp(live, live - MTF_MEMORY_KINDS, MTF_MEMORY_KINDS * sizeof *live) == 0)
        return;
    cJSON *event = add_event(events, "memory", "C", THREAD_STEP);
    add_microseconds(event, "ts", facts->schedule->starts[index]);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    for (int k = 0; k < MTF_MEMORY_KINDS; k++)
        mtf_json_add_integer(args, mtf_memory_name((MtfMemoryKind)k), live[k]);
}

/* ---- Phases -------------------------------------------------------------------------------- */

static MtfPhase phase_of(const MtfStepFacts *facts, int index) {
    int operation = mtf_program_instruction(facts->program, index)->operation;
    return mtf_graph_operation(facts->plan->graph, operation)->phase;
}

static void add_phases(cJSON *events, const MtfStepFacts *facts) {
    add_complete(events, "step", THREAD_STEP, 0, facts->schedule->nanoseconds);
    for (int i = 0, end; i < facts->schedule->length; i = end) {
        for (end = i + 1;
             end < facts->schedule->length && phase_of(facts, end) == phase_of(facts, i);)
            end++;
        add_complete(events, mtf_phase_name(phase_of(facts, i)), THREAD_STEP,
                     facts->schedule->starts[i], facts->schedule->ends[end - 1]);
    }
}

char *mtf_timeline_print(const MtfStepFacts *facts) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "displayTimeUnit", "ms");
    cJSON *events = cJSON_AddArrayToObject(root, "traceEvents");
    add_name(events, "process_name", THREAD_STEP, "predicted step, every rank alike");
    add_name(events, "thread_name", THREAD_STEP, "step");
    add_name(events, "thread_name", THREAD_COMPUTE, "compute");
    add_name(events, "thread_name", THREAD_NETWORK, "network");
    add_phases(events, facts);
    for (int i = 0; i < facts->schedule->length; i++) {
        bool kernel = mtf_program_instruction(facts->program, i)->kind == MTF_INSTRUCTION_KERNEL;
        (kernel ? add_kernel : add_step)(events, facts, i);
        add_memory(events, facts, i);
    }
    char *text = mtf_json_print(root);
    cJSON_Delete(root);
    return text;
}
