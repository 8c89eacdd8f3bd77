// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/scores.h"

#include "layouts/base/error.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/array_file.h"
#include "runtime/support/mpi_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOST_COLLECTED (INT64_C(1) << 20) /* scores */

/* ---- Where they are -------------------------------------------------------------------------- */

static bool is_label(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_INPUT &&
           (tensor->feed == MTF_FEED_NEXT_TOKENS || tensor->feed == MTF_FEED_LABELS ||
            tensor->feed == MTF_FEED_TOKENS);
}

/* Whether an operation compares scores with one class that all places have, whose loss a text's at unknown places is made of. */
static bool compares_with_one(const MtfGraph *graph, const MtfOperation *op) {
    const MtfTensor *class = mtf_graph_tensor(graph, op->inputs[1]);
    return class->dtype == MTF_I32 && class->producer >= 0 &&
           mtf_graph_operation(graph, class->producer)->n_inputs == 0 &&
           mtf_shape_equal(&class->shape, &mtf_graph_tensor(graph, op->outputs[0])->shape);
}

/* Whether a kernel compares scores of one more dimension with tokens or labels, or with one class. (What an embedding
 * reads is of fewer; its gradient, no part of the forward pass, of more.) */
static bool compares(const MtfProgram *program, const MtfInstruction *instruction, bool with_one) {
    const MtfGraph *graph = program->graph;
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL || op->phase != MTF_PHASE_FORWARD ||
        op->n_inputs < 2)
        return false;
    const MtfTensor *label = mtf_graph_tensor(graph, op->inputs[1]);
    return (with_one ? compares_with_one(graph, op) : is_label(label)) &&
           mtf_graph_tensor(graph, op->inputs[0])->shape.rank == label->shape.rank + 1;
}

/* The size of the dimension of `shape` that `without` lacks. */
static int64_t missing_size(const MtfGraph *graph, const MtfShape *shape, const MtfShape *without) {
    for (int i = 0; i < shape->rank; i++)
        if (mtf_shape_find(without, shape->dims[i]) < 0)
            return mtf_graph_size(graph, shape->dims[i]);
    return 0;
}

/* The first instruction that compares scores; -1: none. */
static int find_comparison(const MtfProgram *program) {
    for (int with_one = 0; with_one < 2; with_one++)
        for (int i = 0; i < mtf_program_length(program); i++)
            if (compares(program, mtf_program_instruction(program, i), with_one))
                return i;
    return -1;
}

bool mtf_scores_speaks(const MtfProgram *program, int buffer, int rank) {
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfPlacement *placement = &mtf_program_buffer(program, buffer)->placement;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, rank, a) > 0)
            return false;
    return true;
}

/* The scores that instruction `end` compares, as processor `rank` of the program's mesh has them. */
static bool describe_scores(const MtfProgram *program, int rank, int end, const char *option,
                            MtfScores *scores, GError **error) {
    const MtfGraph *graph = program->graph;
    const MtfInstruction *instruction = mtf_program_instruction(program, end);
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    const MtfTensor *labels = mtf_graph_tensor(graph, op->inputs[1]);
    if (labels->shape.rank < 1 || labels->shape.rank > 2)
        return mtf_input_error(error, "%s: %s have %d dimensions, not an example and a place",
                               option, labels->name, labels->shape.rank);
    *scores = (MtfScores){ .stage = -1, .end = end, .holds = true, .length = -1, .window = 1 };
    scores->buffer = instruction->inputs[0];
    scores->speaks = mtf_scores_speaks(program, scores->buffer, rank);
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

static bool fail_to_find(const char *option, GError **error) {
    return mtf_input_error(error, "%s: no operation of this model compares scores with next tokens",
                           option);
}

/* One of the rank's stages may compute them; ranks of other stages are told where they are. (Stages number
 * dimensions alike.) */
bool mtf_scores_find(const MtfSession *session, const char *option, MtfScores *scores,
                     GError **error) {
    *scores = (MtfScores){ .stage = -1 };
    const MtfStageRun *run = session->stage;
    GError *local = NULL;
    int teller = session->n_ranks;
    for (int c = 0; c < run->n_chunks && teller == session->n_ranks; c++) {
        const MtfProgram *program = run->chunks[c].program;
        int end = find_comparison(program);
        if (end < 0)
            continue;
        teller = session->rank;
        if (describe_scores(program, run->rank, end, option, scores, &local))
            scores->stage = run->chunks[c].stage;
    }
    bool holds = teller == session->rank;
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, &teller, 1, MPI_INT, MPI_MIN, session->control),
                    "MPI_Allreduce");
    if (!mtf_agree(session->control, local, error))
        return false;
    if (teller == session->n_ranks)
        return fail_to_find(option, error);
    MtfScores told = *scores;
    mtf_mpi_require(MPI_Bcast(&told, sizeof told, MPI_BYTE, teller, session->control), "MPI_Bcast");
    told.holds = told.speaks = false;
    if (!holds)
        *scores = told;
    return true;
}

/* ---- What they are --------------------------------------------------------------------------- */

/* A computation of scores: how a worker's inputs are filled, and what is kept. */
typedef struct {
    MtfSession *session;
    MtfScores *scores;
    void (*fill)(const MtfWorker *worker, void *user);
    MtfInputValue value; /* that `fill` asks for, and its user */
    const void *user;
    int64_t batch; /* or of data */
    GError *failure;
} Computation;

static void fill_with_values(const MtfWorker *worker, void *user) {
    const Computation *c = user;
    const MtfGraph *graph = worker->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        const MtfOperand *slice = mtf_worker_tensor(worker, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->feed >= MTF_FEEDS || slice == NULL)
            continue;
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
            mtf_slice_set(slice, i, c->value(tensor, mtf_slice_global_index(slice, i), c->user));
    }
}

static void fill_with_data(const MtfWorker *worker, void *user) {
    Computation *c = user;
    if (c->failure == NULL)
        mtf_data_fill_inputs(c->session->data, worker, c->batch, &c->failure);
}

/* What follows may write over the scores: a copy stays. */
static void keep_slice(const MtfWorker *worker, void *user) {
    const Computation *c = user;
    MtfOperand *slice = &c->scores->slice;
    *slice = worker->operands[c->scores->buffer];
    gsize bytes = (gsize)(mtf_slice_elements(slice) * mtf_dtype_bytes(slice->dtype));
    c->session->scores = g_realloc(c->session->scores, bytes + 1);
    if (bytes > 0)
        memcpy(c->session->scores, slice->data, bytes);
    slice->data = c->session->scores;
}

static void compute(Computation *c) {
    const MtfStageLook look = { c->fill, keep_slice, c, c->scores->stage, c->scores->end };
    mtf_stage_run_look(c->session->stage, &look);
}

void mtf_scores_compute(MtfSession *session, MtfScores *scores, MtfInputValue value,
                        const void *user) {
    compute(&(Computation){ .session = session,
                            .scores = scores,
                            .fill = fill_with_values,
                            .value = value,
                            .user = user });
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
    const MtfOperand *slice = &scores->slice;
    int64_t n = (to - from) * scores->vocabulary;
    memset(values, 0, (gsize)n * sizeof *values);
    for (int64_t i = 0; scores->speaks && i < mtf_slice_elements(slice); i++) {
        At at = place_of(scores, slice, i);
        if (at.example == example && at.place >= from && at.place < to)
            values[(at.place - from) * scores->vocabulary + at.score] += mtf_slice_get(slice, i);
    }
    mtf_agree_sums(session->control, values, n);
}

/* ---- In a file ------------------------------------------------------------------------------- */

/* Every rank takes part in collecting, as many places at once as make a few MiB; the first writes. */
static bool write_all(const MtfSession *session, const MtfScores *scores, FILE *file) {
    int64_t most = CLAMP(MOST_COLLECTED / scores->vocabulary, 1, scores->window);
    g_autofree double *values = g_new(double, most * scores->vocabulary);
    const int64_t shape[] = { scores->examples, scores->window, scores->vocabulary };
    bool good = file != NULL && mtf_array_file_begin(file, 3, shape);
    for (int64_t example = 0; example < scores->examples; example++)
        for (int64_t from = 0; from < scores->window; from += most) {
            int64_t to = MIN(from + most, scores->window);
            mtf_scores_collect(session, scores, example, from, to, values);
            good = good && mtf_array_file_append(file, values, (to - from) * scores->vocabulary);
        }
    return good;
}

bool mtf_scores_save(const char *path, const int64_t shape[3], const double *values,
                     GError **error) {
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && mtf_array_file_begin(file, 3, shape) &&
                   mtf_array_file_append(file, values, shape[0] * shape[1] * shape[2]);
    written = file != NULL && fclose(file) == 0 && written;
    return written || mtf_failure(error, "%s cannot be written: %s", path, g_strerror(errno));
}

bool mtf_scores_write(MtfSession *session, int64_t step, const char *path, GError **error) {
    MtfScores scores;
    GError *local = NULL;
    mtf_scores_find(session, "--logits", &scores, &local);
    if (!mtf_agree(session->control, local, error))
        return false;
    Computation c = {
        .session = session, .scores = &scores, .fill = fill_with_data, .batch = step
    };
    compute(&c);
    if (!mtf_agree(session->control, c.failure, error))
        return false;
    FILE *file = session->rank == 0 ? fopen(path, "wb") : NULL;
    bool written = write_all(session, &scores, file);
    local = NULL;
    written = file != NULL && fclose(file) == 0 && written;
    if (session->rank == 0 && !written)
        mtf_failure(&local, "%s cannot be written: %s", path, g_strerror(errno));
    return mtf_agree(session->control, local, error);
}
