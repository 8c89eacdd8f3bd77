// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/scores.h"

#include "layouts/base/error.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_COLLECTED (INT64_C(1) << 20) /* scores */

/* ---- Where they are -------------------------------------------------------------------------- */

static bool is_label(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_INPUT &&
           (tensor->feed == MTF_FEED_NEXT_TOKENS || tensor->feed == MTF_FEED_LABELS ||
            tensor->feed == MTF_FEED_TOKENS);
}

/* Whether a kernel compares scores of one more dimension with tokens or labels. (What an embedding
 * reads is of fewer.) */
static bool compares(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfGraph *graph = program->graph;
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    return instruction->kind == MTF_INSTRUCTION_KERNEL && op->n_inputs >= 2 &&
           is_label(mtf_graph_tensor(graph, op->inputs[1])) &&
           mtf_graph_tensor(graph, op->inputs[0])->shape.rank ==
               mtf_graph_tensor(graph, op->inputs[1])->shape.rank + 1;
}

/* The size of the dimension of `shape` that `without` lacks. */
static int64_t missing_size(const MtfGraph *graph, const MtfShape *shape, const MtfShape *without) {
    for (int i = 0; i < shape->rank; i++)
        if (mtf_shape_find(without, shape->dims[i]) < 0)
            return mtf_graph_size(graph, shape->dims[i]);
    return 0;
}

bool mtf_scores_find(const MtfProgram *program, const char *option, MtfScores *scores,
                     GError **error) {
    const MtfGraph *graph = program->graph;
    *scores = (MtfScores){ .length = -1, .window = 1 };
    while (scores->end < mtf_program_length(program) &&
           !compares(program, mtf_program_instruction(program, scores->end)))
        scores->end++;
    if (scores->end == mtf_program_length(program))
        return mtf_input_error(
            error, "%s: no operation of this model compares scores with next tokens", option);
    const MtfInstruction *instruction = mtf_program_instruction(program, scores->end);
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    const MtfTensor *labels = mtf_graph_tensor(graph, op->inputs[1]);
    if (labels->shape.rank < 1 || labels->shape.rank > 2)
        return mtf_input_error(error, "%s: %s have %d dimensions, not an example and a place",
                               option, labels->name, labels->shape.rank);
    scores->buffer = instruction->inputs[0];
    scores->batch = labels->shape.dims[0];
    scores->examples = mtf_graph_size(graph, scores->batch);
    if (labels->shape.rank == 2) {
        scores->length = labels->shape.dims[1];
        scores->window = mtf_graph_size(graph, scores->length);
    }
    scores->vocabulary =
        missing_size(graph, &mtf_graph_tensor(graph, op->inputs[0])->shape, &labels->shape);
    scores->of_next_tokens = labels->feed == MTF_FEED_NEXT_TOKENS;
    return true;
}

/* ---- What they are --------------------------------------------------------------------------- */

void mtf_scores_compute(MtfSession *session, const MtfScores *scores, MtfTraffic *uncounted) {
    MtfExecutor executor = session->executor;
    executor.counted = uncounted;
    executor.times = NULL;
    executor.trace = NULL;
    executor.norm = NULL;
    mtf_executor_run(&executor, 0, scores->end, 0);
}

/* Copies of a slice on other ranks say the same: the one with the lowest coordinates speaks. */
bool mtf_scores_speaks(const MtfSession *session, const MtfScores *scores) {
    const MtfMesh *mesh = &session->program->layout->mesh;
    const MtfPlacement *placement =
        &mtf_program_buffer(session->program, scores->buffer)->placement;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, session->rank, a) > 0)
            return false;
    return true;
}

/* The example, the place and the score that element `i` of a slice is. */
typedef struct {
    int64_t example, place, score;
} At;

static At place_of(const MtfScores *scores, const MtfOperand *slice, int64_t i) {
    At at = { 0, 0, 0 };
    for (int k = slice->rank - 1; k >= 0; k--) {
        int64_t index = slice->begin[k] + i % slice->size[k];
        i /= slice->size[k];
        if (slice->dims[k] == scores->batch)
            at.example = index;
        else if (slice->dims[k] == scores->length)
            at.place = index;
        else
            at.score = index;
    }
    return at;
}

void mtf_scores_collect(const MtfSession *session, const MtfScores *scores, int64_t example,
                        int64_t from, int64_t to, double *values) {
    const MtfOperand *slice = &session->worker->operands[scores->buffer];
    int64_t n = (to - from) * scores->vocabulary;
    memset(values, 0, (gsize)n * sizeof *values);
    bool speaker = mtf_scores_speaks(session, scores);
    for (int64_t i = 0; speaker && i < mtf_slice_elements(slice); i++) {
        At at = place_of(scores, slice, i);
        if (at.example == example && at.place >= from && at.place < to)
            values[(at.place - from) * scores->vocabulary + at.score] += mtf_slice_get(slice, i);
    }
    mtf_mpi_require(
        MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_SUM, session->control),
        "MPI_Allreduce");
}

/* ---- In a file ------------------------------------------------------------------------------- */

/* NumPy's format, version 1: a magic, the length of a text in Python's syntax that ends at a
 * multiple of 64 bytes, and the elements. */
static bool write_npy_header(FILE *file, const int64_t shape[3]) {
    char text[256], header[256];
    int n = g_snprintf(text, sizeof text,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64
                       ", %" PRId64 "), }",
                       shape[0], shape[1], shape[2]);
    int length = (10 + n + 1 + 63) / 64 * 64 - 10;
    g_snprintf(header, sizeof header, "\x93NUMPY%c%c%c%c%-*s\n", 1, 1, 0, 0, length - 1, text);
    memcpy(header + 6, (char[]){ 1, 0, (char)(length & 255), (char)(length >> 8) }, 4);
    return fwrite(header, 1, (gsize)length + 10, file) == (gsize)length + 10;
}

static bool write_values(FILE *file, const double *values, int64_t n) {
    bool good = true;
    for (int64_t i = 0; i < n && good; i++) {
        float value = (float)values[i];
        good = fwrite(&value, sizeof value, 1, file) == 1;
    }
    return good;
}

/* Every rank takes part in collecting, as many places at once as make a few MiB; the first writes. */
static bool write_all(const MtfSession *session, const MtfScores *scores, FILE *file) {
    int64_t most = CLAMP(MOST_COLLECTED / scores->vocabulary, 1, scores->window);
    g_autofree double *values = g_new(double, most * scores->vocabulary);
    const int64_t shape[] = { scores->examples, scores->window, scores->vocabulary };
    bool good = file != NULL && write_npy_header(file, shape);
    for (int64_t example = 0; example < scores->examples; example++)
        for (int64_t from = 0; from < scores->window; from += most) {
            int64_t to = MIN(from + most, scores->window);
            mtf_scores_collect(session, scores, example, from, to, values);
            good = good && write_values(file, values, (to - from) * scores->vocabulary);
        }
    return good;
}

bool mtf_scores_save(const char *path, const int64_t shape[3], const double *values,
                     GError **error) {
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && write_npy_header(file, shape) &&
                   write_values(file, values, shape[0] * shape[1] * shape[2]);
    written = file != NULL && fclose(file) == 0 && written;
    return written || mtf_failure(error, "%s cannot be written: %s", path, g_strerror(errno));
}

bool mtf_scores_write(MtfSession *session, int64_t step, const char *path, GError **error) {
    MtfScores scores;
    GError *local = NULL;
    if (mtf_scores_find(session->program, "--logits", &scores, &local))
        mtf_data_fill_inputs(session->data, session->worker, step, &local);
    if (!mtf_agree(session->control, local, error))
        return false;
    g_autoptr(MtfTraffic) uncounted = mtf_traffic_new(session->program);
    mtf_scores_compute(session, &scores, uncounted);
    FILE *file = session->rank == 0 ? fopen(path, "wb") : NULL;
    bool written = write_all(session, &scores, file);
    local = NULL;
    written = file != NULL && fclose(file) == 0 && written;
    if (session->rank == 0 && !written)
        mtf_failure(&local, "%s cannot be written: %s", path, g_strerror(errno));
    return mtf_agree(session->control, local, error);
}
