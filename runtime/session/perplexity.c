// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/perplexity.h"

#include "layouts/base/error.h"
#include "layouts/inference/generation_graph.h"
#include "runtime/data/data_tokens.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/session/scores.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    MtfSession *session;
    MtfScores scores;
    MtfDataStream *stream;
    int64_t total;   /* tokens of the text */
    int64_t places;  /* of a batch: examples times window */
    double *tokens;  /* of a batch, and the one behind it */
    double *highest; /* score, by place of the batch */
    double *sums;    /* exp(score - highest) by place, then the scores of the next tokens */
    double nats;     /* of all so far */
} Reading;

/* ---- Opening --------------------------------------------------------------------------------- */

static bool check_inputs(const MtfSession *session, GError **error) {
    const MtfGraph *graph = mtf_session_graph(session);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        bool fits = tensor->source != MTF_SOURCE_INPUT || tensor->feed == MTF_FEED_TOKENS ||
                    tensor->feed == MTF_FEED_NEXT_TOKENS || tensor->feed == MTF_FEED_MASK;
        if (!fits)
            return mtf_input_error(
                error, "--perplexity: this model reads %s beside the text that it foretells",
                tensor->name);
    }
    return true;
}

static bool find_scores(Reading *r, GError **error) {
    if (mtf_graph_generates(mtf_session_graph(r->session)))
        return mtf_input_error(error, "--perplexity wants a plan of training, which scores all "
                                      "tokens of a text at once");
    if (!mtf_scores_find(r->session, "--perplexity", &r->scores, error))
        return false;
    if (!r->scores.of_next_tokens || r->scores.length < 0)
        return mtf_input_error(error, "--perplexity: no operation of this model compares scores "
                                      "with next tokens of an example and a place");
    return check_inputs(r->session, error);
}

static bool open_reading(Reading *r, const char *path, GError **error) {
    char *files[] = { (char *)(guintptr)path, NULL };
    if (!find_scores(r, error))
        return false;
    r->stream = mtf_tokens_stream_open(files, r->session->tokenizer, error);
    if (r->stream == NULL)
        return false;
    r->total = mtf_data_stream_records(r->stream);
    return r->total >= 2 ||
           mtf_input_error(error, "--perplexity %s: at least two tokens are needed", path);
}

static void close_reading(Reading *r) {
    mtf_data_stream_free(r->stream);
    g_free(r->tokens);
    g_free(r->highest);
    g_free(r->sums);
}

/* ---- A batch --------------------------------------------------------------------------------- */

static bool read_tokens(Reading *r, int64_t first, GError **error) {
    int64_t n = MIN(r->places + 1, r->total - first);
    if (!mtf_data_stream_read(r->stream, first, n, r->tokens, error))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!(r->tokens[i] >= 0 && r->tokens[i] < (double)r->scores.vocabulary))
            return mtf_input_error(error,
                                   "%s holds %.0f at offset %" PRId64
                                   ", but the model's vocabulary has only %" PRId64 " tokens",
                                   mtf_data_stream_path(r->stream, first + i), r->tokens[i],
                                   first + i, r->scores.vocabulary);
    for (int64_t i = n; i <= r->places; i++)
        r->tokens[i] = 0;
    return true;
}

/* Masks let all through; scores do not depend on next tokens. */
static double input_value(const MtfTensor *tensor, int64_t place, const void *user) {
    const Reading *r = user;
    return tensor->feed == MTF_FEED_TOKENS        ? r->tokens[place]
           : tensor->feed == MTF_FEED_NEXT_TOKENS ? r->tokens[place + 1]
                                                  : 1;
}

/* This rank's part of the scores of one place: `n` from score `from` on, `apart` elements each. */
typedef struct {
    int64_t place, first, apart;
    int64_t from, n;
} Row;

typedef void (*VisitRow)(Reading *r, const MtfOperand *slice, const Row *row);

static void visit_rows(Reading *r, VisitRow visit) {
    const MtfOperand *slice = &r->scores.slice;
    int64_t apart[3] = { 1, 1, 1 }, index[3];
    int batch = 0, length = 0, vocabulary = 0;
    g_assert(slice->rank == 3);
    for (int k = slice->rank - 1; k >= 0; k--) {
        apart[k] = k + 1 < slice->rank ? apart[k + 1] * slice->size[k + 1] : 1;
        *(slice->dims[k] == r->scores.batch    ? &batch
          : slice->dims[k] == r->scores.length ? &length
                                               : &vocabulary) = k;
    }
    for (index[0] = 0; index[0] < slice->size[batch]; index[0]++)
        for (index[1] = 0; index[1] < slice->size[length]; index[1]++) {
            int64_t example = slice->begin[batch] + index[0];
            Row row = { .place = example * r->scores.window + slice->begin[length] + index[1],
                        .first = index[0] * apart[batch] + index[1] * apart[length],
                        .apart = apart[vocabulary],
                        .from = slice->begin[vocabulary],
                        .n = slice->size[vocabulary] };
            visit(r, slice, &row);
        }
}

static void find_highest(Reading *r, const MtfOperand *slice, const Row *row) {
    double *highest = &r->highest[row->place];
    for (int64_t i = 0; i < row->n; i++)
        *highest = fmax(*highest, mtf_slice_get(slice, row->first + i * row->apart));
}

static void add_exponentials(Reading *r, const MtfOperand *slice, const Row *row) {
    double highest = r->highest[row->place];
    for (int64_t i = 0; i < row->n; i++)
        r->sums[row->place] += exp(mtf_slice_get(slice, row->first + i * row->apart) - highest);
    int64_t next = (int64_t)r->tokens[row->place + 1] - row->from;
    if (next >= 0 && next < row->n)
        r->sums[r->places + row->place] = mtf_slice_get(slice, row->first + next * row->apart);
}

/* -log p = highest + log sum exp(score - highest) - score of the next token. */
static void add_batch(Reading *r, int64_t scored) {
    MPI_Comm control = r->session->control;
    for (int64_t i = 0; i < r->places; i++) {
        r->highest[i] = -INFINITY;
        r->sums[i] = r->sums[r->places + i] = 0;
    }
    if (r->scores.holds)
        visit_rows(r, find_highest);
    mtf_agree_maxima(control, r->highest, r->places);
    if (r->scores.speaks)
        visit_rows(r, add_exponentials);
    mtf_agree_sums(control, r->sums, 2 * r->places);
    for (int64_t i = 0; i < scored; i++)
        r->nats += r->highest[i] + log(r->sums[i]) - r->sums[r->places + i];
}

static bool read_batches(Reading *r, GError **error) {
    for (int64_t first = 0; first < r->total - 1; first += r->places) {
        GError *local = NULL;
        read_tokens(r, first, &local);
        if (!mtf_agree(r->session->control, local, error))
            return false;
        mtf_scores_compute(r->session, &r->scores, input_value, r);
        add_batch(r, MIN(r->places, r->total - 1 - first));
    }
    return true;
}

static bool open_on_all(Reading *r, const char *path, GError **error) {
    GError *local = NULL;
    open_reading(r, path, &local);
    return mtf_agree(r->session->control, local, error);
}

bool mtf_perplexity_check(MtfSession *session, const char *path, GError **error) {
    Reading r = { .session = session };
    bool opened = open_on_all(&r, path, error);
    close_reading(&r);
    return opened;
}

bool mtf_perplexity(MtfSession *session, const char *path, MtfPerplexity *perplexity,
                    GError **error) {
    Reading r = { .session = session };
    bool good = open_on_all(&r, path, error);
    if (good) {
        r.places = r.scores.examples * r.scores.window;
        r.tokens = g_new0(double, r.places + 1);
        r.highest = g_new0(double, r.places);
        r.sums = g_new0(double, 2 * r.places);
        good = read_batches(&r, error);
    }
    if (good)
        *perplexity = (MtfPerplexity){ r.total - 1, r.nats / (double)(r.total - 1) };
    close_reading(&r);
    return good;
}
