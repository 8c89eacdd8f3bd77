// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/generation.h"

#include "layouts/base/error.h"
#include "layouts/inference/generation_graph.h"
#include "runtime/serving/model_text.h"
#include "runtime/serving/sampling.h"
#include "runtime/session/session_generator.h"
#include "runtime/support/agreement.h"

#include <stdio.h>

/* Where a program has what generation needs. */
typedef struct {
    MtfSession *session;
    MtfSessionText text;
    MtfModelText words;
    double *row; /* scores of one position */
    int *tokens; /* the window, then filling */
    /* With caches; else its generator is NULL. */
    MtfSessionGenerator caches;
    MtfSlotTokens *brought; /* by slot; the first has the text */
    int64_t first;          /* token of the text that the window begins with */
    GArray *drawn_from;     /* double: the scores of every token that was drawn; or NULL */
} Generation;

/* ---- One token ----------------------------------------------------------------------------- */

/* The window in every example of the inputs; masks let all through. */
static double input_value(const MtfTensor *tensor, int64_t place, const void *user) {
    const Generation *g = user;
    return tensor->feed == MTF_FEED_TOKENS        ? g->tokens[place % g->text.window]
           : tensor->feed == MTF_FEED_NEXT_TOKENS ? 0
                                                  : 1;
}

/* The scores behind the first `known` of the window, from all of it. */
static void compute_scores(Generation *g, int64_t known) {
    mtf_scores_compute(g->session, &g->text.scores, input_value, g);
    mtf_scores_collect(g->session, &g->text.scores, 0, known - 1, known, g->row);
}

/* The same from what is new; from all of it where the window has moved on. */
static void feed_scores(Generation *g, int64_t known, int64_t first) {
    if (first != g->first)
        mtf_generator_clear(g->caches.generator, 0);
    g->first = first;
    int64_t filled = mtf_generator_filled(g->caches.generator, 0);
    g->brought[0] = (MtfSlotTokens){ g->tokens + filled, known - filled };
    mtf_generator_feed(g->caches.generator, g->brought);
    const float *scores = mtf_generator_scores(g->caches.generator, 0);
    for (int64_t i = 0; i < g->text.vocabulary; i++)
        g->row[i] = (double)scores[i];
}

/* The token after the first `known` of the window, which begins with token `first` of the text. */
static int next_token(Generation *g, int64_t known, int64_t first, int64_t number) {
    MtfSession *session = g->session;
    if (g->caches.generator != NULL)
        feed_scores(g, known, first);
    else
        compute_scores(g, known);
    if (g->drawn_from != NULL)
        g_array_append_vals(g->drawn_from, g->row, (guint)g->text.vocabulary);
    const MtfSampling sampling = { .temperature = session->options->temperature, .top_p = 1 };
    int64_t token = mtf_sampling_draw_at(&sampling, g->row, g->text.vocabulary,
                                         session->options->seed, 0, number);
    return (int)mtf_agree_first(session->control, (double)token);
}

/* ---- All tokens ---------------------------------------------------------------------------- */

static bool take_prompt(Generation *g, const char *prompt, GArray *ids, GError **error) {
    if (prompt != NULL && !mtf_model_text_encode(&g->words, prompt, ids, error)) {
        g_prefix_error(error, "--prompt: ");
        return false;
    }
    if (ids->len > 0)
        return true;
    if (g->session->data == NULL)
        return mtf_input_error(error,
                               "--prompt TEXT is missing: there is no data that a text could "
                               "begin with");
    g_autofree int *held = g_new(int, g->text.window);
    int64_t n = mtf_data_held_tokens(g->session->data, held, MAX(1, g->text.window / 4), error);
    if (n > 0)
        g_array_append_vals(ids, held, (guint)n);
    return n > 0;
}

/* The last tokens, as many as leave room in the window; how many they are. */
static int64_t fill_window(Generation *g, const GArray *ids) {
    int64_t all = ids->len;
    int64_t half = MAX(1, g->text.window / 2);
    int64_t first = all <= g->text.window ? 0 : (all - g->text.window + half - 1) / half * half;
    first = MIN(first, all - 1);
    for (int64_t i = 0; i < g->text.window; i++)
        g->tokens[i] = first + i < all ? g_array_index(ids, int, first + i) : 0;
    return all - first;
}

static bool open_generation(Generation *g, const char *prompt, GArray *ids, GError **error) {
    GError *local = NULL;
    if (mtf_session_text_find(g->session, "--generate", &g->text, &local)) {
        g->words = (MtfModelText){ g->session->tokenizer, g->text.vocabulary };
        take_prompt(g, prompt, ids, &local);
    }
    return mtf_agree(g->session->control, local, error);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* Programs for one text in the layout of the plan. Fails where the model cannot generate from
 * caches. */
static bool make_generator(Generation *g, int64_t prompt, GError **error) {
    const MtfSessionSlots slots = { .n = 1, .longest = MIN(prompt, g->text.window) };
    if (!mtf_session_generator_open(&g->caches, g->session, &g->text, &slots, error))
        return false;
    g->brought = g_new0(MtfSlotTokens, mtf_generator_slots(g->caches.generator));
    return true;
}

/* With caches where the model allows it; else why not is said. */
static bool open_caches(Generation *g, int64_t prompt, GError **error) {
    GError *local = NULL, *why = NULL;
    if (g->session->options->no_cache)
        return true;
    make_generator(g, prompt, &local);
    if (mtf_agree(g->session->control, local, &why))
        return true;
    bool bad_input = g_error_matches(why, MTF_ERROR, MTF_ERROR_INPUT);
    if (bad_input && g->session->rank == 0)
        printf("  without caches: %s\n", why->message);
    mtf_session_generator_close(&g->caches);
    if (!bad_input)
        g_propagate_error(error, g_steal_pointer(&why));
    g_clear_error(&why);
    return bad_input;
}

static void close_generation(Generation *g) {
    mtf_session_generator_close(&g->caches);
    g_free(g->brought);
    if (g->drawn_from != NULL)
        g_array_unref(g->drawn_from);
    g_free(g->row);
    g_free(g->tokens);
}

/* Of a plan of inference --logits are those that tokens were drawn from. */
static bool wants_logits(const MtfSession *session) {
    return session->options->logits != NULL && mtf_graph_generates(mtf_session_graph(session));
}

static bool write_logits(const Generation *g, GError **error) {
    const MtfSession *session = g->session;
    const int64_t shape[] = { 1, session->options->generate, g->text.vocabulary };
    GError *local = NULL;
    if (g->drawn_from == NULL)
        return true;
    if (session->rank == 0)
        mtf_scores_save(session->options->logits, shape,
                        (const double *)(const void *)g->drawn_from->data, &local);
    return mtf_agree(session->control, local, error);
}

bool mtf_generation_check(MtfSession *session, const char *prompt, GError **error) {
    Generation g = { .session = session };
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    return open_generation(&g, prompt, ids, error);
}

char *mtf_generate(MtfSession *session, const char *prompt, GError **error) {
    Generation g = { .session = session };
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    if (!open_generation(&g, prompt, ids, error))
        return NULL;
    g.row = g_new0(double, g.text.vocabulary);
    g.tokens = g_new0(int, g.text.window);
    if (!open_caches(&g, ids->len, error)) {
        close_generation(&g);
        return NULL;
    }
    if (wants_logits(session))
        g.drawn_from = g_array_new(FALSE, FALSE, sizeof(double));
    for (int64_t i = 0; i < session->options->generate; i++) {
        int64_t known = fill_window(&g, ids);
        int token = next_token(&g, known, (int64_t)ids->len - known, i);
        g_array_append_val(ids, token);
    }
    char *text =
        write_logits(&g, error)
            ? mtf_model_text_decode(&g.words, (const int *)(const void *)ids->data, ids->len)
            : NULL;
    close_generation(&g);
    return text;
}
