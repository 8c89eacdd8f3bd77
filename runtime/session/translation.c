// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/translation.h"

#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/serving/sampling.h"
#include "runtime/session/scores.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <string.h>

#define STREAM "translate"
#define MOST_SOURCES 8
#define TEXT_BEGINS 2
#define TEXT_ENDS 3

typedef struct {
    GByteArray *source, *expected; /* bytes; the second is empty where nobody knows */
    GByteArray *result;
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

static void add_sentence(Translation *t, GByteArray *source, GByteArray *expected) {
    t->sentences[t->n++] = (Sentence){ source, expected, g_byte_array_new(), false };
}

static bool take_prompt(Translation *t, const char *prompt, GError **error) {
    gsize n = strlen(prompt);
    if ((int64_t)n + 1 > t->source_length)
        return mtf_input_error(error,
                               "--prompt: this model reads sources of at most %" PRId64
                               " bytes, not of %" G_GSIZE_FORMAT,
                               t->source_length - 1, n);
    GByteArray *source = g_byte_array_new();
    g_byte_array_append(source, (const guint8 *)prompt, (guint)n);
    add_sentence(t, source, g_byte_array_new());
    return true;
}

static bool take_pairs(Translation *t, GError **error) {
    int64_t most = MIN(MOST_SOURCES, t->scores.examples);
    for (int64_t i = 0; i < most; i++) {
        GByteArray *source = g_byte_array_new(), *target = g_byte_array_new();
        bool has = mtf_data_pair(t->session->data, i, source, target);
        if (has)
            add_sentence(t, source, target);
        else {
            g_byte_array_unref(source);
            g_byte_array_unref(target);
        }
    }
    return t->n > 0 ||
           mtf_input_error(error, "--generate: this model wants a source: give --prompt, "
                                  "or pairs of texts as --data");
}

static bool open_translation(Translation *t, const char *prompt, GError **error) {
    if (!mtf_scores_find(t->session, "--generate", &t->scores, error))
        return false;
    t->source_length = source_length(mtf_session_graph(t->session));
    if (!t->scores.of_next_tokens || t->scores.length < 0 || t->scores.vocabulary < 256)
        return mtf_input_error(error,
                               "--generate: this model compares no scores of bytes with next "
                               "tokens of an example and a place");
    return prompt != NULL ? take_prompt(t, prompt, error) : take_pairs(t, error);
}

static void close_translation(Translation *t) {
    for (int i = 0; i < t->n; i++) {
        g_byte_array_unref(t->sentences[i].source);
        g_byte_array_unref(t->sentences[i].expected);
        g_byte_array_unref(t->sentences[i].result);
    }
    g_free(t->row);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static double source_at(const Sentence *s, int64_t place) {
    int64_t n = s->source->len;
    return place < n ? s->source->data[place] : place == n ? TEXT_ENDS : 0;
}

static double token_at(const Sentence *s, int64_t place) {
    if (place == 0)
        return TEXT_BEGINS;
    return place <= (int64_t)s->result->len ? s->result->data[place - 1] : 0;
}

/* What an input holds at a place of an example. */
static double value_at(const Sentence *s, MtfFeed feed, int64_t place) {
    bool read = place <= (int64_t)s->source->len;
    switch (feed) {
    case MTF_FEED_SOURCE:
        return source_at(s, place);
    case MTF_FEED_SOURCE_SEGMENTS:
        return read;
    case MTF_FEED_SOURCE_PLACES:
        return read ? (double)place : 0;
    case MTF_FEED_TOKENS:
        return token_at(s, place);
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
    return value_at(s, tensor->feed, place % places);
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
    guint8 byte = (guint8)token;
    s->ended = token == TEXT_ENDS || token > 255;
    if (!s->ended)
        g_byte_array_append(s->result, &byte, 1);
}

static bool all_ended(const Translation *t) {
    for (int i = 0; i < t->n; i++)
        if (!t->sentences[i].ended)
            return false;
    return true;
}

static void append_text(GString *line, const GByteArray *bytes) {
    for (guint i = 0; i < bytes->len; i++)
        g_string_append_c(line, g_ascii_iscntrl(bytes->data[i]) ? ' ' : (char)bytes->data[i]);
}

static char *format_sentences(const Translation *t) {
    GString *text = g_string_new(NULL);
    for (int i = 0; i < t->n; i++) {
        const Sentence *s = &t->sentences[i];
        append_text(text, s->source);
        g_string_append(text, "\n  -> ");
        append_text(text, s->result);
        if (s->expected->len > 0)
            g_string_append(text, "\n     ");
        append_text(text, s->expected);
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
