// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/step_trace.h"

#include "layouts/base/json_writer.h"
#include "layouts/graph/operation_table.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <inttypes.h>
#include <math.h>

#define TAG 1

typedef struct {
    int64_t step;
    const MtfProgram *program; /* NULL: a pass of a stage */
    int instruction;
    bool ended;         /* what had begun before */
    int64_t begin, end; /* nanoseconds */
    MtfStepPass pass;
} Event;

struct MtfStepTrace {
    MPI_Comm control;
    const MtfProgram *program; /* that runs now */
    int64_t from, to;
    double origin;
    Event *events;
    int n, capacity;
};

/* A collective that stays under way has a beginning and an end. */
static int64_t spans_of(const MtfInstruction *instruction) {
    return mtf_instruction_is_collective(instruction) && instruction->wait_before > 0 ? 2 : 1;
}

int64_t mtf_step_trace_spans(const MtfProgram *program) {
    int64_t spans = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        spans += mtf_program_times(program, i) * spans_of(mtf_program_instruction(program, i));
    return spans;
}

MtfStepTrace *mtf_step_trace_new(MPI_Comm control, int64_t spans, int64_t from, int64_t to) {
    MtfStepTrace *trace = g_new0(MtfStepTrace, 1);
    *trace = (MtfStepTrace){ .control = control, .from = from, .to = to };
    trace->capacity = (int)MIN((to - from + 1) * spans, INT32_MAX / (int64_t)sizeof(Event));
    trace->events = g_new(Event, trace->capacity);
    mtf_mpi_require(MPI_Barrier(control), "MPI_Barrier");
    trace->origin = MPI_Wtime();
    return trace;
}

void mtf_step_trace_turn_to(MtfStepTrace *trace, const MtfProgram *program) {
    trace->program = program;
}

void mtf_step_trace_free(MtfStepTrace *trace) {
    if (trace == NULL)
        return;
    g_free(trace->events);
    g_free(trace);
}

bool mtf_step_trace_wants(const MtfStepTrace *trace, int64_t step) {
    return step >= trace->from && step <= trace->to;
}

void mtf_step_trace_add(MtfStepTrace *trace, int64_t step, int instruction, bool ended,
                        double begin, double end) {
    if (trace->n == trace->capacity)
        return;
    trace->events[trace->n++] = (Event){ .step = step,
                                         .program = trace->program,
                                         .instruction = instruction,
                                         .ended = ended,
                                         .begin = llround((begin - trace->origin) * 1e9),
                                         .end = llround((end - trace->origin) * 1e9) };
}

void mtf_step_trace_pass(MtfStepTrace *trace, int64_t step, const MtfStepPass *pass, double begin) {
    if (trace->n == trace->capacity)
        return;
    trace->events[trace->n++] = (Event){ .step = step,
                                         .pass = *pass,
                                         .begin = llround((begin - trace->origin) * 1e9),
                                         .end = llround((MPI_Wtime() - trace->origin) * 1e9) };
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void append_text(GString *json, const char *text) {
    cJSON *item = cJSON_CreateString(text);
    char *quoted = cJSON_PrintUnformatted(item);
    g_string_append(json, quoted);
    cJSON_free(quoted);
    cJSON_Delete(item);
}

static void append_name(GString *json, const char *kind, int rank, const char *name) {
    g_string_append_printf(json,
                           "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":"
                           "{\"name\":\"%s\"}},\n",
                           kind, rank, name);
}

static void append_span(GString *json, const char *name, int rank, const Event *event) {
    g_string_append(json, "{\"name\":");
    append_text(json, name);
    g_string_append_printf(json,
                           ",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%" PRId64 ".%03d,"
                           "\"dur\":%" PRId64 ".%03d",
                           rank, event->begin / 1000, (int)(event->begin % 1000),
                           (event->end - event->begin) / 1000,
                           (int)((event->end - event->begin) % 1000));
}

/* A colour of Chrome's for each stage. */
static void append_pass(GString *json, int rank, const Event *event) {
    static const char *const colors[] = { "thread_state_running",
                                          "thread_state_iowait",
                                          "thread_state_runnable",
                                          "rail_animation",
                                          "rail_load",
                                          "rail_response",
                                          "cq_build_passed",
                                          "cq_build_attempt_failed" };
    const MtfStepPass *pass = &event->pass;
    g_autofree char *name = g_strdup_printf("%d%c%d", pass->stage, pass->letter, pass->microbatch);
    append_span(json, name, rank, event);
    g_string_append_printf(json,
                           ",\"cat\":\"pass\",\"cname\":\"%s\",\"args\":{\"stage\":%d,"
                           "\"microbatch\":%d}},\n",
                           colors[pass->stage % (int)G_N_ELEMENTS(colors)], pass->stage,
                           pass->microbatch);
}

static void append_instruction(GString *json, int rank, const Event *event) {
    const MtfProgram *program = event->program;
    const MtfInstruction *instruction = mtf_program_instruction(program, event->instruction);
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    g_autofree char *name = NULL;
    bool is_kernel = instruction->kind == MTF_INSTRUCTION_KERNEL;
    bool travels = mtf_instruction_is_collective(instruction);
    bool begins = travels && !event->ended;
    if (travels) {
        g_autofree char *axes =
            mtf_mesh_mask_format(&program->layout->mesh, instruction->reshard.axes);
        name = g_strdup_printf("%s %s%s", mtf_reshard_row(instruction->reshard.kind)->name, axes,
                               event->ended ? ", end" : "");
    } else {
        name = g_strdup(is_kernel ? mtf_operation_row(op->kind)->name
                                  : mtf_reshard_row(instruction->reshard.kind)->name);
    }
    append_span(json, name, rank, event);
    g_string_append_printf(json, ",\"cat\":\"%s\",\"args\":{\"operation\":",
                           travels ? "communication" : "computation");
    append_text(json, op->name);
    g_string_append_printf(
        json, ",\"phase\":\"%s\",\"flops\":%.0f,\"payload_bytes\":%" PRId64 ",\"tensors\":%d}},\n",
        mtf_phase_name(op->phase), instruction->flops, begins ? instruction->payload_bytes : 0,
        begins ? instruction->n_inputs : 0);
}

/* The times that events [first, last] of one step span. */
static Event step_of(const Event *events, int first, int last) {
    Event whole = { .begin = events[first].begin, .end = events[first].end };
    for (int i = first; i <= last; i++) {
        whole.begin = MIN(whole.begin, events[i].begin);
        whole.end = MAX(whole.end, events[i].end);
    }
    return whole;
}

/* One row: its steps, each with what was run in it. Free with g_string_free. */
static GString *format_rank(const MtfStepTrace *trace, int rank) {
    const Event *events = trace->events;
    GString *json = g_string_new(NULL);
    g_autofree char *name = g_strdup_printf("rank %d", rank);
    append_name(json, "thread_name", rank, name);
    for (int i = 0; i < trace->n; i++) {
        if (i == 0 || events[i].step != events[i - 1].step) {
            int last = i;
            while (last + 1 < trace->n && events[last + 1].step == events[i].step)
                last++;
            Event whole = step_of(events, i, last);
            g_autofree char *title = g_strdup_printf("step %" PRId64, events[i].step);
            append_span(json, title, rank, &whole);
            g_string_append(json, "},\n");
        }
        if (events[i].program == NULL)
            append_pass(json, rank, &events[i]);
        else
            append_instruction(json, rank, &events[i]);
    }
    return json;
}

/* The row of another rank, brought to rank 0. */
static void append_other(GString *json, const MtfStepTrace *trace, int rank) {
    int n;
    mtf_mpi_require(MPI_Recv(&n, 1, MPI_INT, rank, TAG, trace->control, MPI_STATUS_IGNORE),
                    "MPI_Recv");
    gsize before = json->len;
    g_string_set_size(json, before + (gsize)n);
    mtf_mpi_require(
        MPI_Recv(json->str + before, n, MPI_CHAR, rank, TAG, trace->control, MPI_STATUS_IGNORE),
        "MPI_Recv");
}

static bool write_all(const MtfStepTrace *trace, GString *own, int n_ranks, const char *path,
                      GError **error) {
    GString *json = g_string_new("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    append_name(json, "process_name", 0, "meshtf-run");
    g_string_append_len(json, own->str, (gssize)own->len);
    for (int rank = 1; rank < n_ranks; rank++)
        append_other(json, trace, rank);
    g_string_truncate(json, json->len - 2);
    g_string_append(json, "\n]}\n");
    bool written = mtf_file_write(path, json->str, json->len, error);
    g_string_free(json, TRUE);
    return written;
}

/* Each rank writes its own row, since in a pipeline ranks have other programs. */
bool mtf_step_trace_write(const MtfStepTrace *trace, const char *path, GError **error) {
    int rank, n_ranks;
    GError *local = NULL;
    mtf_mpi_require(MPI_Comm_rank(trace->control, &rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(trace->control, &n_ranks), "MPI_Comm_size");
    GString *own = format_rank(trace, rank);
    int length = (int)MIN(own->len, (gsize)INT32_MAX);
    if (rank == 0) {
        write_all(trace, own, n_ranks, path, &local);
    } else {
        mtf_mpi_require(MPI_Send(&length, 1, MPI_INT, 0, TAG, trace->control), "MPI_Send");
        mtf_mpi_require(MPI_Send(own->str, length, MPI_CHAR, 0, TAG, trace->control), "MPI_Send");
    }
    g_string_free(own, TRUE);
    return mtf_agree(trace->control, local, error);
}
