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
    int64_t instruction;
    int64_t ended;      /* what had begun before: 0 or 1 */
    int64_t begin, end; /* nanoseconds */
} Event;

struct MtfStepTrace {
    MPI_Comm control;
    const MtfProgram *program;
    int64_t from, to;
    double origin;
    Event *events;
    int n, capacity;
};

/* A collective that stays under way has a beginning and an end. */
static int64_t spans_of(const MtfInstruction *instruction) {
    return instruction->wait_before > 0 ? 2 : 1;
}

MtfStepTrace *mtf_step_trace_new(MPI_Comm control, const MtfProgram *program, int64_t from,
                                 int64_t to) {
    MtfStepTrace *trace = g_new0(MtfStepTrace, 1);
    int64_t a_step = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        a_step += mtf_program_times(program, i) * spans_of(mtf_program_instruction(program, i));
    *trace = (MtfStepTrace){ .control = control, .program = program, .from = from, .to = to };
    trace->capacity = (int)MIN((to - from + 1) * a_step, INT32_MAX / (int64_t)sizeof(Event));
    trace->events = g_new(Event, trace->capacity);
    mtf_mpi_require(MPI_Barrier(control), "MPI_Barrier");
    trace->origin = MPI_Wtime();
    return trace;
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
                                         .instruction = instruction,
                                         .ended = ended,
                                         .begin = llround((begin - trace->origin) * 1e9),
                                         .end = llround((end - trace->origin) * 1e9) };
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

static void append_instruction(GString *json, const MtfProgram *program, int rank,
                               const Event *event) {
    const MtfInstruction *instruction = mtf_program_instruction(program, (int)event->instruction);
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    g_autofree char *name = NULL;
    bool is_kernel = instruction->kind == MTF_INSTRUCTION_KERNEL;
    bool travels = mtf_instruction_is_collective(instruction);
    bool begins = travels && event->ended == 0;
    if (travels) {
        g_autofree char *axes =
            mtf_mesh_mask_format(&program->layout->mesh, instruction->reshard.axes);
        name = g_strdup_printf("%s %s%s", mtf_reshard_name(instruction->reshard.kind), axes,
                               event->ended != 0 ? ", end" : "");
    } else {
        name = g_strdup(is_kernel ? mtf_operation_row(op->kind)->name
                                  : mtf_reshard_name(instruction->reshard.kind));
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

/* One row: its steps, each with what was run in it. */
static void append_rank(GString *json, const MtfProgram *program, int rank, const Event *events,
                        int n) {
    g_autofree char *name = g_strdup_printf("rank %d", rank);
    append_name(json, "thread_name", rank, name);
    for (int i = 0; i < n; i++) {
        if (i == 0 || events[i].step != events[i - 1].step) {
            int last = i;
            while (last + 1 < n && events[last + 1].step == events[i].step)
                last++;
            Event whole = { .begin = events[i].begin, .end = events[last].end };
            g_autofree char *title = g_strdup_printf("step %" PRId64, events[i].step);
            append_span(json, title, rank, &whole);
            g_string_append(json, "},\n");
        }
        append_instruction(json, program, rank, &events[i]);
    }
}

/* The events of another rank, brought to rank 0. */
static void append_other(GString *json, const MtfStepTrace *trace, int rank) {
    int n;
    mtf_mpi_require(MPI_Recv(&n, 1, MPI_INT, rank, TAG, trace->control, MPI_STATUS_IGNORE),
                    "MPI_Recv");
    g_autofree Event *events = g_new(Event, n + 1);
    mtf_mpi_require(MPI_Recv(events, n * (int)sizeof *events, MPI_BYTE, rank, TAG, trace->control,
                             MPI_STATUS_IGNORE),
                    "MPI_Recv");
    append_rank(json, trace->program, rank, events, n);
}

static bool write_all(const MtfStepTrace *trace, int n_ranks, const char *path, GError **error) {
    GString *json = g_string_new("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    append_name(json, "process_name", 0, "meshtf-run");
    append_rank(json, trace->program, 0, trace->events, trace->n);
    for (int rank = 1; rank < n_ranks; rank++)
        append_other(json, trace, rank);
    g_string_truncate(json, json->len - 2);
    g_string_append(json, "\n]}\n");
    bool written = mtf_file_write(path, json->str, json->len, error);
    g_string_free(json, TRUE);
    return written;
}

bool mtf_step_trace_write(const MtfStepTrace *trace, const char *path, GError **error) {
    int rank, n_ranks;
    GError *local = NULL;
    mtf_mpi_require(MPI_Comm_rank(trace->control, &rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(trace->control, &n_ranks), "MPI_Comm_size");
    if (rank == 0) {
        write_all(trace, n_ranks, path, &local);
    } else {
        mtf_mpi_require(MPI_Send(&trace->n, 1, MPI_INT, 0, TAG, trace->control), "MPI_Send");
        mtf_mpi_require(MPI_Send(trace->events, trace->n * (int)sizeof *trace->events, MPI_BYTE, 0,
                                 TAG, trace->control),
                        "MPI_Send");
    }
    return mtf_agree(trace->control, local, error);
}
