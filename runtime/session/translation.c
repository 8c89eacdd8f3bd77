// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/translation.h"

#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "runtime/serving/sampling.h"
#include "runtime/session/scores.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <string.h>

#define STREAM "translate"
#define MOST_SOURCES 8

typedef struct {
    char *source, *expected; /* as people write them; the second NULL where nobody knows */
    GArray *read, *said;     /* tokens (int), those of the source with its end */
    bool ended;
} Sentence;

typedef struct {
    MtfSession *session;
    MtfScores scores;
    int64_t source_length;
    double *row; /* scores of one position */
    int n;
    Sentence sentences[MOST_SOURCES];
} Translation;

/* ---- Sources --------------------------------------------------------------------------------- */

/* An example's places of the input that reads sources; 0 where none does. */
static int64_t source_length(const MtfGraph *graph) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_SOURCE &&
            tensor->shape.rank > 1)
            return mtf_graph_size(graph, tensor->shape.dims[tensor->shape.rank - 1]);
    }
    return 0;
}

bool mtf_translates(const MtfSession *session) {
    return source_length(mtf_session_graph(session)) > 0;
}

/* The source's tokens must fit into the model's places and its vocabulary. */
static bool add_sentence(Translation *t, const char *source, const char *expected, GError **error) {
    Sentence *s = &t->sentences[t->n++];
    s->source = g_strdup(source);
    s->expected = g_strdup(expected);
    s->read = g_array_new(FALSE, FALSE, sizeof(int));
    s->said = g_array_new(FALSE, FALSE, sizeof(int));
    if (!mtf_pair_text_encode(&t->session->pair_text, source, s->read, error))
        return false;
    for (guint i = 0; i < s->read->len; i++)
        if (g_array_index(s->read, int, i) >= t->scores.vocabulary)
            return mtf_input_error(error,
                                   "--tokenizer: token %d of the source is not one of the model's "
                                   "%" PRId64,
                                   g_array_index(s->read, int, i), t->scores.vocabulary);
    return (int64_t)s->read->len <= t->source_length ||
           mtf_input_error(error,
                           "--prompt: this model reads sources of at most %" PRId64
                           " tokens, their end included, not of %u",
                           t->source_length, s->read->len);
}

static bool add_pair(Translation *t, const MtfTextPair *pair, GError **error) {
    gsize n, m;
    const char *source = g_bytes_get_data(pair->source, &n);
    const char *target = g_bytes_get_data(pair->target, &m);
    g_autofree char *read = g_strndup(source, n), *expected = g_strndup(target, m);
    return add_sentence(t, read, expected, error);
}

static bool take_pairs(Translation *t, GError **error) {
    int64_t most = MIN(MOST_SOURCES, t->scores.examples);
    for (int64_t i = 0; i < most; i++) {
        const MtfTextPair *pair = mtf_data_pair(t->session->data, i);
        if (pair != NULL && !add_pair(t, pair, error))
            return false;
    }
    return t->n > 0 ||
           mtf_input_error(error, "--generate: this model wants a source: give --prompt, "
                                  "or pairs of texts as --data");
}

static bool open_translation(Translation *t, const char *prompt, GError **error) {
    if (!mtf_scores_find(t->session, "--generate", &t->scores, error))
        return false;
    t->source_length = source_length(mtf_session_graph(t->session));
    bool bytes = t->session->tokenizer == NULL;
    if (!t->scores.of_next_tokens || t->scores.length < 0 || (bytes && t->scores.vocabulary < 256))
        return mtf_input_error(error,
                               "--generate: this model compares no scores of %s with next "
                               "tokens of an example and a place",
                               bytes ? "bytes" : "tokens");
    return prompt != NULL ? add_sentence(t, prompt, NULL, error) : take_pairs(t, error);
}

static void close_translation(Translation *t) {
    for (int i = 0; i < t->n; i++) {
        g_free(t->sentences[i].source);
        g_free(t->sentences[i].expected);
        g_array_unref(t->sentences[i].read);
        g_array_unref(t->sentences[i].said);
    }
    g_free(t->row);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static int token_at(const GArray *tokens, int64_t place) {
    return place < (int64_t)tokens->len ? g_array_index(tokens, int, place) : 0;
}

/* What an input holds at a place of an example; `begins` stands before what is said. */
static double value_at(const Sentence *s, int begins, MtfFeed feed, int64_t place) {
    bool read = place < (int64_t)s->read->len;
    switch (feed) {
    case MTF_FEED_SOURCE:
        return token_at(s->read, place);
    case MTF_FEED_SOURCE_SEGMENTS:
        return read;
    case MTF_FEED_SOURCE_PLACES:
        return read ? (double)place : 0;
    case MTF_FEED_TOKENS:
        return place == 0 ? begins : token_at(s->said, place - 1);
    case MTF_FEED_PLACES:
        return (double)place;
    case MTF_FEED_NEXT_TOKENS:
        return 0;
    default: /* segments and masks: all is one text */
        return 1;
    }
}

static double input_value(const MtfTensor *tensor, int64_t place, const void *user) {
    const Translation *t = user;
    const MtfGraph *graph = mtf_session_graph(t->session);
    int64_t places = mtf_graph_elements(graph, &tensor->shape) / t->scores.examples;
    const Sentence *s = &t->sentences[place / places % t->n];
    return value_at(s, t->session->pair_text.begins, tensor->feed, place % places);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* Draws the token after those of a sentence; every rank draws what the first one does. */
static void extend(Translation *t, int i, int64_t number) {
    Sentence *s = &t->sentences[i];
    MtfSession *session = t->session;
    mtf_scores_collect(session, &t->scores, i, number, number + 1, t->row);
    MtfRandom random =
        mtf_random_stream((uint64_t)session->options->seed, STREAM, (uint64_t)number);
    double share = mtf_random_uniform(&random, i);
    const MtfSampling sampling = { .temperature = session->options->temperature, .top_p = 1 };
    int64_t drawn = mtf_sampling_draw(&sampling, t->row, t->scores.vocabulary, share);
    int token = (int)mtf_agree_first(session->control, (double)drawn);
    s->ended = mtf_pair_text_is_end(&session->pair_text, token);
    if (!s->ended)
        g_array_append_val(s->said, token);
}

static bool all_ended(const Translation *t) {
    for (int i = 0; i < t->n; i++)
        if (!t->sentences[i].ended)
            return false;
    return true;
}

static void append_line(GString *text, const char *before, const char *words) {
    g_string_append(text, before);
    for (; words != NULL && *words != '\0'; words++)
        g_string_append_c(text, g_ascii_iscntrl(*words) ? ' ' : *words);
}

static char *format_sentences(const Translation *t) {
    GString *text = g_string_new(NULL);
    for (int i = 0; i < t->n; i++) {
        const Sentence *s = &t->sentences[i];
        g_autofree char *said = mtf_pair_text_decode(
            &t->session->pair_text, (const int *)(const void *)s->said->data, s->said->len);
        append_line(text, "", s->source);
        append_line(text, "\n  -> ", said);
        if (s->expected != NULL)
            append_line(text, "\n     ", s->expected);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

static bool open_on_all(Translation *t, const char *prompt, GError **error) {
    GError *local = NULL;
    open_translation(t, prompt, &local);
    return mtf_agree(t->session->control, local, error);
}

bool mtf_translation_check(MtfSession *session, const char *prompt, GError **error) {
    Translation t = { .session = session };
    bool opened = open_on_all(&t, prompt, error);
    close_translation(&t);
    return opened;
}

char *mtf_translate(MtfSession *session, const char *prompt, GError **error) {
    Translation t = { .session = session };
    if (!open_on_all(&t, prompt, error)) {
        close_translation(&t);
        return NULL;
    }
    t.row = g_new0(double, t.scores.vocabulary);
    int64_t most = MIN(session->options->generate, t.scores.window);
    for (int64_t number = 0; number < most && !all_ended(&t); number++) {
        mtf_scores_compute(session, &t.scores, input_value, &t);
        for (int i = 0; i < t.n; i++)
            if (!t.sentences[i].ended)
                extend(&t, i, number);
    }
    char *text = format_sentences(&t);
    close_translation(&t);
    return text;
}
