// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/predictions.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/inference/generation_graph.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/session/scores.h"
#include "runtime/support/agreement.h"
#include "runtime/support/array_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MOST_COLLECTED (INT64_C(1) << 20) /* elements */
#define BATCHES_A_STAGE 4                 /* that follow one another without a pause */

typedef struct {
    MtfSession *session;
    const char *path;
    FILE *file;                 /* of rank 0 */
    int tensor;                 /* of the model, that is kept */
    const MtfStageChunk *chunk; /* of this rank, that keeps it; NULL: none does */
    int own;                    /* the tensor there */
    double *values;             /* a piece of it */
    double *kept;               /* what this rank has of it, of each batch of a group */
    int64_t group;              /* batches, at most */
    bool of_examples;           /* whether its first dimension counts them */
    int64_t elements, examples, batch;
} Predictions;

/* This rank's slice of the tensor; NULL: it has nothing to say. */
static const MtfOperand *own_slice(const Predictions *p) {
    return p->chunk != NULL ? mtf_worker_tensor(p->chunk->slots[0].worker, p->own) : NULL;
}

/* Where the slice of a batch of the group is kept. */
static double *kept_of(const Predictions *p, int64_t member) {
    const MtfOperand *slice = own_slice(p);
    return slice != NULL ? p->kept + member * mtf_slice_elements(slice) : NULL;
}

static void keep(const Predictions *p, int64_t member) {
    const MtfOperand *slice = own_slice(p);
    double *kept = kept_of(p, member);
    for (int64_t i = 0; slice != NULL && i < mtf_slice_elements(slice); i++)
        kept[i] = mtf_slice_get(slice, i);
}

/* Elements [from, from + n) of a batch's whole tensor, on every rank, in p->values. */
static void collect(const Predictions *p, int64_t member, int64_t from, int64_t n) {
    const MtfOperand *slice = own_slice(p);
    const double *kept = kept_of(p, member);
    memset(p->values, 0, (gsize)n * sizeof *p->values);
    for (int64_t i = 0; slice != NULL && i < mtf_slice_elements(slice); i++) {
        int64_t place = mtf_slice_global_index(slice, i) - from;
        if (place >= 0 && place < n)
            p->values[place] = kept[i];
    }
    mtf_agree_sums(p->session->control, p->values, n);
}

static bool fail_to_write(const Predictions *p, GError **error) {
    return mtf_failure(error, "%s cannot be written: %s", p->path, g_strerror(errno));
}

/* Finds the chunk that keeps the tensor, where this rank speaks for it. */
static void find_chunk(Predictions *p) {
    const MtfStageRun *run = p->session->stage;
    const char *name = mtf_graph_tensor(mtf_session_graph(p->session), p->tensor)->name;
    for (int c = 0; c < run->n_chunks; c++) {
        const MtfProgram *program = run->chunks[c].program;
        int own = mtf_graph_find_tensor(program->graph, name);
        if (own < 0 || !mtf_scores_speaks(program, program->tensor_buffers[own], run->rank))
            continue;
        p->chunk = &run->chunks[c];
        p->own = own;
    }
}

/* Writes `n` elements of what was kept of a batch. */
static void write_batch(const Predictions *p, int64_t member, int64_t n, GError **error) {
    bool written = true;
    for (int64_t from = 0; from < n; from += MOST_COLLECTED) {
        int64_t piece = MIN(n - from, MOST_COLLECTED);
        collect(p, member, from, piece);
        if (p->session->rank == 0 && written)
            written = mtf_array_file_append(p->file, p->values, piece) || fail_to_write(p, error);
    }
}

/* Runs batches first, first + 1 …, which follow one another through the stages, since nobody waits for
 * all ranks in between; then writes what is kept of each. The last batch may be filled up with the first
 * examples, of which nothing is written. */
static bool run_group(const Predictions *p, int64_t first, int64_t batches, GError **error) {
    const MtfSession *session = p->session;
    GError *local = NULL;
    for (int64_t b = 0; b < batches; b++) {
        mtf_stage_run_all(session->stage, first + b + 1, local == NULL ? &local : NULL);
        keep(p, b);
    }
    if (!mtf_agree(session->control, local, error))
        return false;
    local = NULL;
    for (int64_t b = 0; b < batches; b++) {
        int64_t n = MIN(p->batch, p->examples - (first + b) * p->batch);
        write_batch(p, b, n * (p->elements / p->batch), local == NULL ? &local : NULL);
    }
    return mtf_agree(session->control, local, error);
}

static bool run_batches(const Predictions *p, GError **error) {
    int64_t batches = (p->examples + p->batch - 1) / p->batch;
    for (int64_t first = 0; first < batches; first += p->group)
        if (!run_group(p, first, MIN(p->group, batches - first), error))
            return false;
    return true;
}

static bool begin(Predictions *p, GError **error) {
    const MtfGraph *graph = mtf_session_graph(p->session);
    const MtfShape *shape = &mtf_graph_tensor(graph, p->tensor)->shape;
    int64_t sizes[MTF_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = i == 0 && p->of_examples ? p->examples : mtf_graph_size(graph, shape->dims[i]);
    p->file = fopen(p->path, "wb");
    return (p->file != NULL && mtf_array_file_begin(p->file, shape->rank, sizes)) ||
           fail_to_write(p, error);
}

/* How many examples there are, and how many a batch has: one of each where the result is none of examples. */
static void count_examples(Predictions *p) {
    const MtfGraph *graph = mtf_session_graph(p->session);
    const MtfShape *shape = &mtf_graph_tensor(graph, p->tensor)->shape;
    int dim = mtf_graph_find_batch(graph);
    int64_t held = mtf_data_held_examples(p->session->data);
    p->elements = mtf_graph_elements(graph, shape);
    p->of_examples = dim >= 0 && shape->rank > 0 && shape->dims[0] == dim;
    p->batch = p->of_examples ? mtf_graph_size(graph, dim) : 1;
    p->examples = p->of_examples && held != INT64_MAX ? held : p->batch;
    int stages = p->session->stage->pipeline->order->stages;
    p->group = stages == 1 ? 1 : CLAMP(MOST_COLLECTED / p->elements, 1, BATCHES_A_STAGE * stages);
}

static bool write_all(Predictions *p, GError **error) {
    GError *local = NULL;
    g_autofree double *values = g_new(double, MIN(p->elements, MOST_COLLECTED));
    const MtfOperand *slice = own_slice(p);
    g_autofree double *kept =
        g_new(double, slice != NULL ? p->group * mtf_slice_elements(slice) : 0);
    p->values = values;
    p->kept = kept;
    mtf_data_hold_out(p->session->data, true);
    if (p->session->rank == 0)
        begin(p, &local);
    bool done = mtf_agree(p->session->control, local, error) && run_batches(p, error);
    local = NULL;
    if (p->file != NULL && fclose(p->file) != 0 && done)
        fail_to_write(p, &local);
    return mtf_agree(p->session->control, local, done ? error : NULL) && done;
}

char *mtf_predictions_write(MtfSession *session, const char *path, GError **error) {
    const MtfGraph *graph = mtf_session_graph(session);
    Predictions p = { .session = session, .path = path, .tensor = mtf_generation_scores(graph) };
    count_examples(&p);
    find_chunk(&p);
    if (!write_all(&p, error))
        return NULL;
    return g_strdup_printf("  %s of %" PRId64 " examples is in %s\n",
                           mtf_graph_tensor(graph, p.tensor)->name, p.examples, path);
}
