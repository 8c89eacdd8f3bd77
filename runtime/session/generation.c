// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/generation.h"

#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "layouts/inference/generation_graph.h"
#include "layouts/inference/generation_layout.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/serving/generator.h"
#include "runtime/session/scores.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STREAM "generate"

/* Where a program has what generation needs. */
typedef struct {
    MtfSession *session;
    MtfTraffic *uncounted;
    MtfScores scores;
    int64_t window, vocabulary;
    double *row; /* scores of one position */
    int *tokens; /* the window, then filling */
    /* With caches; else NULL. */
    MtfGraph *graph;
    MtfLayout *layout;
    MtfGenerator *generator;
    MtfSlotTokens *brought; /* by slot; the first has the text */
    int64_t first;          /* token of the text that the window begins with */
} Generation;

/* Of a plan of inference: what its caches hold, and its scores. */
static void find_kept_scores(Generation *g) {
    const MtfGraph *graph = g->session->plan->graph;
    const MtfTensor *scores = mtf_graph_tensor(graph, mtf_generation_scores(graph));
    const MtfTensor *last = mtf_graph_tensor(graph, mtf_generation_input(graph, MTF_FEED_LAST));
    g->window = mtf_graph_size(graph, mtf_generation_context(graph));
    g->vocabulary =
        mtf_graph_elements(graph, &scores->shape) / mtf_graph_elements(graph, &last->shape);
}

static bool find_scores(Generation *g, GError **error) {
    if (mtf_graph_generates(g->session->plan->graph)) {
        find_kept_scores(g);
        return true;
    }
    if (!mtf_scores_find(g->session->program, "--generate", &g->scores, error))
        return false;
    if (!g->scores.of_next_tokens || g->scores.length < 0)
        return mtf_input_error(error, "--generate: no operation of this model compares scores with "
                                      "next tokens of an example and a place");
    g->window = g->scores.window;
    g->vocabulary = g->scores.vocabulary;
    return true;
}

/* ---- One token ----------------------------------------------------------------------------- */

/* Puts the window into every example of the inputs; masks let all through. */
static void fill_inputs(const Generation *g) {
    const MtfGraph *graph = g->session->plan->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        const MtfOperand *slice = mtf_worker_tensor(g->session->worker, t);
        if (tensor->source != MTF_SOURCE_INPUT || slice == NULL)
            continue;
        int64_t elements = mtf_slice_elements(slice);
        for (int64_t i = 0; i < elements; i++) {
            int64_t place = mtf_slice_global_index(slice, i) % g->window;
            mtf_slice_set(slice, i,
                          tensor->feed == MTF_FEED_TOKENS        ? g->tokens[place]
                          : tensor->feed == MTF_FEED_NEXT_TOKENS ? 0
                                                                 : 1);
        }
    }
}

int64_t mtf_draw_score(const double *scores, int64_t n, double temperature, double share) {
    double highest = -INFINITY, total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        highest = fmax(highest, scores[i]);
    for (int64_t i = 0; i < n; i++)
        total += exp((scores[i] - highest) / temperature);
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        double part = exp((scores[i] - highest) / temperature);
        sum += part;
        if (part > 0)
            last = i;
        if (sum > share * total)
            return i;
    }
    return last;
}

/* The scores behind the first `known` of the window, from all of it. */
static void compute_scores(Generation *g, int64_t known) {
    fill_inputs(g);
    mtf_scores_compute(g->session, &g->scores, g->uncounted);
    mtf_scores_collect(g->session, &g->scores, 0, known - 1, known, g->row);
}

/* The same from what is new; from all of it where the window has moved on. */
static void feed_scores(Generation *g, int64_t known, int64_t first) {
    if (first != g->first)
        mtf_generator_clear(g->generator, 0);
    g->first = first;
    int64_t filled = mtf_generator_filled(g->generator, 0);
    g->brought[0] = (MtfSlotTokens){ g->tokens + filled, known - filled };
    mtf_generator_feed(g->generator, g->brought);
    const float *scores = mtf_generator_scores(g->generator, 0);
    for (int64_t i = 0; i < g->vocabulary; i++)
        g->row[i] = (double)scores[i];
}

/* The token after the first `known` of the window, which begins with token `first` of the text. */
static int next_token(Generation *g, int64_t known, int64_t first, int64_t number) {
    MtfSession *session = g->session;
    if (g->generator != NULL)
        feed_scores(g, known, first);
    else
        compute_scores(g, known);
    MtfRandom random =
        mtf_random_stream((uint64_t)session->options->seed, STREAM, (uint64_t)number);
    double share = mtf_random_uniform(&random, 0);
    int64_t token = mtf_draw_score(g->row, g->vocabulary, session->options->temperature, share);
    return (int)mtf_agree_first(session->control, (double)token);
}

/* ---- All tokens ---------------------------------------------------------------------------- */

/* The prompt as the tokenizer has it, with what the model expects before a text. */
static bool encode_prompt(const Generation *g, const char *prompt, GArray *ids, GError **error) {
    const MtfTokenizer *tokenizer = g->session->tokenizer;
    if (!mtf_tokenizer_encode(tokenizer, prompt, true, ids, error))
        return false;
    for (guint i = 0; i < ids->len; i++)
        if (g_array_index(ids, int, i) >= g->vocabulary)
            return mtf_input_error(error,
                                   "--tokenizer: token %d of the prompt is not one of the model's "
                                   "%" PRId64,
                                   g_array_index(ids, int, i), g->vocabulary);
    return true;
}

static bool take_prompt(Generation *g, const char *prompt, GArray *ids, GError **error) {
    if (g->session->tokenizer != NULL && prompt != NULL)
        return encode_prompt(g, prompt, ids, error);
    gsize bytes = prompt != NULL ? strlen(prompt) : 0;
    for (gsize i = 0; i < bytes; i++) {
        int id = (unsigned char)prompt[i];
        if (g->vocabulary > 256 || id >= g->vocabulary)
            return mtf_input_error(
                error, "--prompt: the model's vocabulary of %" PRId64 " ids is not one of bytes%s",
                g->vocabulary, g->vocabulary > 256 ? "" : " up to those of the prompt");
        g_array_append_val(ids, id);
    }
    if (ids->len > 0)
        return true;
    if (g->session->data == NULL)
        return mtf_input_error(error, "--prompt TEXT is missing: a plan of inference reads no data "
                                      "that a text could begin with");
    g_autofree int *held = g_new(int, g->window);
    int64_t n = mtf_data_held_tokens(g->session->data, held, MAX(1, g->window / 4), error);
    if (n > 0)
        g_array_append_vals(ids, held, (guint)n);
    return n > 0;
}

/* The last tokens, as many as leave room in the window; how many they are. */
static int64_t fill_window(Generation *g, const GArray *ids) {
    int64_t all = ids->len;
    int64_t half = MAX(1, g->window / 2);
    int64_t first = all <= g->window ? 0 : (all - g->window + half - 1) / half * half;
    first = MIN(first, all - 1);
    for (int64_t i = 0; i < g->window; i++)
        g->tokens[i] = first + i < all ? g_array_index(ids, int, first + i) : 0;
    return all - first;
}

static char *format_tokens(const Generation *g, const GArray *ids) {
    if (g->session->tokenizer != NULL)
        return mtf_tokenizer_decode(g->session->tokenizer, (const int *)(const void *)ids->data,
                                    ids->len);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < ids->len; i++) {
        int id = g_array_index(ids, int, i);
        if (g->vocabulary > 256)
            g_string_append_printf(text, "%s%d", i > 0 ? " " : "", id);
        else
            g_string_append_c(text,
                              g_ascii_isprint(id) || id == '\n' || id >= 128 ? (char)id : '?');
    }
    return g_string_free(text, FALSE);
}

static bool open_generation(Generation *g, const char *prompt, GArray *ids, GError **error) {
    GError *local = NULL;
    if (find_scores(g, &local))
        take_prompt(g, prompt, ids, &local);
    return mtf_agree(g->session->control, local, error);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* The plan's own graph and layout, or what follows from those of training for one text. */
static bool make_graph(Generation *g, GError **error) {
    const MtfPlan *plan = g->session->plan;
    MtfGenerationSizes sizes = { .batch = 1, .length = 1, .context = g->window };
    if (mtf_graph_generates(plan->graph)) {
        g->graph = mtf_graph_copy(plan->graph);
        g->layout = mtf_layout_copy(plan->layout);
        return true;
    }
    g->graph = mtf_generation_graph(plan->graph, &sizes, error);
    if (g->graph != NULL)
        g->layout = mtf_generation_layout(g->graph, plan->graph, plan->layout);
    return g->graph != NULL;
}

/* Programs for one text in the layout of the plan. Fails where the model cannot generate from
 * caches. */
static bool make_generator(Generation *g, int64_t prompt, GError **error) {
    MtfSession *session = g->session;
    if (!make_graph(g, error))
        return false;
    MtfGeneratorSettings settings = { .control = session->control,
                                      .graph = g->graph,
                                      .layout = g->layout,
                                      .longest = MIN(prompt, g->window),
                                      .seed = (uint64_t)session->options->seed,
                                      .no_overlap = session->options->no_overlap };
    g->generator = mtf_generator_new(&settings, error);
    if (g->generator == NULL)
        return false;
    mtf_generator_take_variables(g->generator, session->worker);
    g->brought = g_new0(MtfSlotTokens, mtf_generator_slots(g->generator));
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
    g_clear_pointer(&g->generator, mtf_generator_free);
    if (!bad_input)
        g_propagate_error(error, g_steal_pointer(&why));
    g_clear_error(&why);
    return bad_input;
}

static void close_generation(Generation *g) {
    mtf_generator_free(g->generator);
    mtf_layout_free(g->layout);
    mtf_graph_free(g->graph);
    g_free(g->brought);
    mtf_traffic_free(g->uncounted);
    g_free(g->row);
    g_free(g->tokens);
}

char *mtf_generate(MtfSession *session, const char *prompt, GError **error) {
    Generation g = { .session = session };
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    if (!open_generation(&g, prompt, ids, error))
        return NULL;
    g.uncounted = mtf_traffic_new(session->program);
    g.row = g_new0(double, g.vocabulary);
    g.tokens = g_new0(int, g.window);
    if (!open_caches(&g, ids->len, error)) {
        close_generation(&g);
        return NULL;
    }
    for (int64_t i = 0; i < session->options->generate; i++) {
        int64_t known = fill_window(&g, ids);
        int token = next_token(&g, known, (int64_t)ids->len - known, i);
        g_array_append_val(ids, token);
    }
    char *text = format_tokens(&g, ids);
    close_generation(&g);
    return text;
}
