// SPDX-License-Identifier: GPL-3.0-or-later
/* A graph that generates gives, token by token or in pieces, the scores that the graph it was made
 * from gives of the whole text: judged by the reference, which knows no kernels. */
#include "layouts/inference/generation_graph.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/drawn/random_model.h"
#include "tests/support/draws.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

#define BATCH 2
#define LENGTH 6
#define VOCABULARY 7

#define COMMON "'vocab_size': 7, "
#define SIZES                         \
    "'max_position_embeddings': 16, " \
    "'hidden_size': 8, 'intermediate_size': 12, 'num_hidden_layers': 2, 'num_attention_heads': 4, "

/* Learned positions and biases; rotary turns and shared heads; windows and soft caps; experts that drop
 * nobody. */
static const char *const configs[] = {
    "{'model_type': 'gpt2', " COMMON "'n_embd': 8, 'n_layer': 2, 'n_head': 2, 'n_positions': 16}",
    "{'model_type': 'llama', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu'}",
    "{'model_type': 'mistral', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'sliding_window': 3}",
    "{'model_type': 'mixtral', " COMMON SIZES
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', "
    "'num_local_experts': 4, 'num_experts_per_tok': 2}",
};

static double token(int example, int place) {
    return (3 * example + place * place + place) % VOCABULARY;
}

/* The scores [batch, length, vocabulary] of the whole text; the caller frees them. */
static double *whole_scores(const MtfGraph *graph) {
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    double *tokens = mtf_reference_find(reference, "tokens");
    for (int i = 0; i < BATCH * LENGTH; i++)
        tokens[i] = token(i / LENGTH, i % LENGTH);
    mtf_reference_run(reference, 0);
    return g_memdup2(mtf_reference_find(reference, "logits"),
                     sizeof(double) * BATCH * LENGTH * VOCABULARY);
}

static double *values_of(const MtfReference *reference, int tensor) {
    assert_true(tensor >= 0);
    return reference->values[tensor];
}

/* Caches and all other variables, as far as the two graphs share names and sizes. */
static void carry_over(MtfReference *to, const MtfReference *from) {
    for (int t = 0; t < (int)to->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(to->graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE)
            memcpy(to->values[t], mtf_reference_find(from, tensor->name),
                   sizeof(double) * (size_t)mtf_graph_elements(to->graph, &tensor->shape));
    }
}

/* Of a piece of `tokens` the second example brings one token less in the first piece, none in a second of one. */
static int brings(int example, int piece, int tokens) {
    bool is_less = example == 1 && (piece == 0 ? tokens > 1 : piece == 1 && tokens == 1);
    return is_less ? tokens - 1 : tokens;
}

/* Reads `pieces[0]`, then pieces[1] … tokens. Whether all scores are those of the whole text; says which is not. */
static bool is_like_the_whole(const MtfGraph *graph, const int *pieces, int context) {
    g_autofree double *expected = whole_scores(graph);
    g_autoptr(MtfReference) before = NULL;
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_graph_free);
    int position[BATCH] = { 0 };
    for (int piece = 0; pieces[piece] > 0; piece++) {
        GError *error = NULL;
        MtfGenerationSizes sizes = { .length = pieces[piece], .context = context };
        MtfGraph *step = mtf_generation_graph(graph, &sizes, &error);
        if (step == NULL)
            fail_msg("%s", error->message);
        g_ptr_array_add(made, step);
        MtfReference *reference = mtf_reference_new(step, 3);
        if (before != NULL)
            carry_over(reference, before);
        double *tokens = values_of(reference, mtf_generation_input(step, MTF_FEED_TOKENS));
        double *begin = values_of(reference, mtf_generation_input(step, MTF_FEED_POSITION));
        double *last = values_of(reference, mtf_generation_input(step, MTF_FEED_LAST));
        for (int b = 0; b < BATCH; b++) {
            int n = brings(b, piece, pieces[piece]);
            begin[b] = position[b];
            last[b] = n - 1;
            for (int i = 0; i < pieces[piece]; i++)
                tokens[b * pieces[piece] + i] = i < n ? token(b, position[b] + i) : 0;
            position[b] += n;
        }
        mtf_reference_run(reference, 0);
        mtf_reference_update(reference);
        const double *scores = values_of(reference, mtf_generation_scores(step));
        for (int i = 0; i < BATCH * VOCABULARY; i++) {
            int b = i / VOCABULARY,
                at = (b * LENGTH + position[b] - 1) * VOCABULARY + i % VOCABULARY;
            if (brings(b, piece, pieces[piece]) == 0 || fabs(scores[i] - expected[at]) < 1e-9)
                continue;
            print_message("%s: example %d behind token %d: %g, not %g\n", graph->name, b,
                          position[b] - 1, scores[i], expected[at]);
            mtf_reference_free(reference);
            return false;
        }
        mtf_reference_free(before);
        before = reference;
    }
    return true;
}

static void graph_generates_like_the_whole(const MtfGraph *graph, const int *pieces, int context) {
    assert_true(is_like_the_whole(graph, pieces, context));
}

static void generates_like_the_whole(const char *config, const int *pieces, int context) {
    g_autoptr(MtfGraph) graph = mtf_test_model(config, BATCH, LENGTH);
    graph_generates_like_the_whole(graph, pieces, context);
}

TEST(token_by_token_it_is_the_whole_text) {
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++)
        generates_like_the_whole(configs[i], (int[]){ 1, 1, 1, 1, 1, 1, 0 }, 9);
}

TEST(prompts_of_different_lengths_are_read_in_pieces) {
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++)
        generates_like_the_whole(configs[i], (int[]){ 3, 1, 2, 0 }, 8);
}

/* BLOOM, which adds a slope of distances, with a soft cap or a window beside it. */
static void attention_with_a_bias_generates(double softcap, double window) {
    g_autoptr(MtfGraph) graph =
        mtf_test_model("{'model_type': 'bloom', " COMMON "'hidden_size': 8, 'n_layer': 2, "
                       "'n_head': 2}",
                       BATCH, LENGTH);
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (mtf_graph_operation(graph, o)->kind == MTF_OP_ATTENTION) {
            assert_int_equal(mtf_graph_operation(graph, o)->n_inputs, 4);
            mtf_graph_operation(graph, o)->attributes.softcap = softcap;
            mtf_graph_operation(graph, o)->attributes.window = window;
        }
    graph_generates_like_the_whole(graph, (int[]){ 3, 1, 2, 0 }, 8);
}

TEST(scores_are_capped_before_something_is_added) {
    attention_with_a_bias_generates(0.3, 0);
}

TEST(what_lies_before_a_window_is_hidden_beside_a_bias) {
    attention_with_a_bias_generates(0, 2);
}

/* Two convolutions of three and two places, the second three places apart, and a loop: h' = forget h + x. */
#define RECURRENT(padding)                                                                                \
    "{'meshtf_graph': 1, 'name': 'recurrent', 'dimensions': {'batch': 2, 'length': 6, 'after': 6, "       \
    "'again': 6, 'taps': 3, 'two': 2, 'd': 4, 'd_in': 4, 'vocab': 7}, 'inputs': ["                        \
    "{'name': 'tokens', 'dims': ['batch', 'length'], 'dtype': 'i32', 'feed': 'tokens'}, "                 \
    "{'name': 'labels', 'dims': ['batch', 'length'], 'dtype': 'i32', 'feed': 'next_tokens'}], "           \
    "'variables': [{'name': 'table', 'dims': ['vocab', 'd'], 'init': {'normal': 1}}, "                    \
    "{'name': 'w', 'dims': ['taps', 'd'], 'init': {'normal': 1}}, "                                       \
    "{'name': 'u', 'dims': ['two', 'd', 'd_in'], 'init': {'normal': 1}}, "                                \
    "{'name': 'forget', 'dims': ['d'], 'init': {'uniform': 0.9}}, "                                       \
    "{'name': 'head', 'dims': ['d', 'vocab'], 'init': {'normal': 1}}], 'operations': ["                   \
    "{'name': 'x', 'op': 'embedding', 'inputs': ['table', 'tokens'], 'dims': ['batch', 'length', 'd']}, " \
    "{'name': 'c', 'op': 'conv', 'inputs': ['x', 'w'], 'dims': ['batch', 'after', 'd'], "                 \
    "'windows': [{'from': 'length', 'to': 'after', 'kernel': 'taps', " padding "}]}, "                    \
    "{'name': 'c_here', 'op': 'rename', 'inputs': ['c'], 'from': 'after', 'to': 'length'}, "              \
    "{'name': 'b', 'op': 'rename', 'inputs': ['c_here'], 'from': 'd', 'to': 'd_in'}, "                    \
    "{'name': 'e', 'op': 'conv', 'inputs': ['b', 'u'], 'dims': ['batch', 'again', 'd'], "                 \
    "'windows': [{'from': 'length', 'to': 'again', 'kernel': 'two', 'dilation': 3, 'before': 3, "         \
    "'after': 0}]}, "                                                                                     \
    "{'name': 'y', 'op': 'rename', 'inputs': ['e'], 'from': 'again', 'to': 'length'}, "                   \
    "{'name': 'half', 'op': 'constant', 'value': 0.5, 'dims': ['batch', 'd']}, "                          \
    "{'loop': {'name': 'time', 'dimension': 'length', 'carry': [{'name': 'h', 'init': 'half', "           \
    "'next': 'sum'}], 'inputs': [{'name': 'now', 'of': 'y'}], 'outputs': [{'name': 'all', "               \
    "'of': 'sum'}], 'operations': ["                                                                      \
    "{'name': 'kept', 'op': 'multiply', 'inputs': ['h', 'forget']}, "                                     \
    "{'name': 'sum', 'op': 'add', 'inputs': ['kept', 'now']}]}}, "                                        \
    "{'name': 'logits', 'op': 'einsum', 'inputs': ['time/all', 'head'], "                                 \
    "'dims': ['batch', 'length', 'vocab']}, "                                                             \
    "{'name': 'losses', 'op': 'softmax_cross_entropy', 'inputs': ['logits', 'labels'], "                  \
    "'dims': ['batch', 'length']}, "                                                                      \
    "{'name': 'loss', 'op': 'reduce_mean', 'inputs': ['losses'], 'dims': []}], 'loss': 'loss'}"

TEST(convolutions_and_loops_go_on_where_they_were) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(RECURRENT("'before': 2, 'after': 0"));
    graph_generates_like_the_whole(graph, (int[]){ 1, 1, 1, 1, 1, 1, 0 }, 8);
    graph_generates_like_the_whole(graph, (int[]){ 3, 1, 2, 0 }, 8);
    graph_generates_like_the_whole(graph, (int[]){ 5, 1, 0 }, 8);
}

TEST(what_looks_ahead_cannot_generate) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(RECURRENT("'before': 1, 'after': 1"));
    g_autoptr(GError) error = NULL;
    assert_null(mtf_generation_graph(graph, &(MtfGenerationSizes){ .length = 1 }, &error));
    assert_non_null(strstr(error->message, "\"c\" reads what comes later"));
}

TEST(what_cannot_generate_is_told) {
    static const struct {
        const char *config, *says;
        int context;
    } cases[] = {
        { "{'model_type': 'gpt2', " COMMON
          "'n_embd': 8, 'n_layer': 1, 'n_head': 2, 'n_positions': 16}",
          "longer than the 16 positions", 17 },
        { "{'model_type': 'bert', " COMMON SIZES "'type_vocab_size': 2, 'hidden_act': 'gelu'}",
          "compares no scores", 8 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfGraph) graph = mtf_test_model(cases[i].config, BATCH, LENGTH);
        g_autoptr(GError) error = NULL;
        MtfGenerationSizes sizes = { .length = 1, .context = cases[i].context };
        assert_null(mtf_generation_graph(graph, &sizes, &error));
        assert_non_null(strstr(error->message, cases[i].says));
    }
}

/* A text model in which `operations` make h of x; `places` is a table of learned positions. */
static MtfGraph *text_model(const char *operations) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'text', 'dimensions': {'batch': 2, 'length': 6, 'memory': 6, 'd': 4, "
        "'vocab': 7, 'places': 9}, 'inputs': [{'name': 'tokens', 'dims': ['batch', 'length'], 'dtype': "
        "'i32', 'feed': 'tokens'}, {'name': 'next', 'dims': ['batch', 'length'], 'dtype': 'i32', 'feed': "
        "'next_tokens'}], 'variables': [{'name': 'table', 'dims': ['vocab', 'd'], 'init': {'normal': 1}}, "
        "{'name': 'places', 'dims': ['places', 'd'], 'init': {'normal': 1}}, {'name': 'head', 'dims': "
        "['d', 'vocab'], 'init': {'normal': 1}}], 'operations': [{'name': 'x', 'op': 'embedding', "
        "'inputs': ['table', 'tokens'], 'dims': ['batch', 'length', 'd']}, %s, {'name': 'logits', 'op': "
        "'einsum', 'inputs': ['h', 'head'], 'dims': ['batch', 'length', 'vocab']}, {'name': 'losses', "
        "'op': 'softmax_cross_entropy', 'inputs': ['logits', 'next'], 'dims': ['batch', 'length']}, "
        "{'name': 'loss', 'op': 'reduce_mean', 'inputs': ['losses'], 'dims': []}], 'loss': 'loss'}",
        operations);
    return mtf_test_graph(text);
}

#define ADDED ", {'name': 'h', 'op': 'add', 'inputs': ['x', 'm']}"

/* Scores that caches cannot give are refused: a mean over examples, whose texts are at other places; over all places of
 * the text, later ones as well; elements of a table that stand for places by their number. */
TEST(what_a_cache_does_not_hold_is_told) {
    static const char *const cases[][2] = {
        { "{'name': 'm', 'op': 'reduce_mean', 'inputs': ['x'], 'dims': ['length', 'd']}" ADDED,
          "\"m\" mixes examples" },
        { "{'name': 'k', 'op': 'rename', 'inputs': ['x'], 'from': 'length', 'to': 'memory'}, "
          "{'name': 'm', 'op': 'reduce_mean', 'inputs': ['k'], 'dims': ['batch', 'd']}" ADDED,
          "\"m\" takes all places of the text together" },
        { "{'name': 'm', 'op': 'slice', 'inputs': ['places'], 'from': 'places', 'to': 'length'}" ADDED,
          "\"m\" looks along the text" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfGraph) graph = text_model(cases[i][0]);
        g_autoptr(GError) error = NULL;
        assert_null(mtf_generation_graph(graph, &(MtfGenerationSizes){ .length = 1 }, &error));
        if (strstr(error->message, cases[i][1]) == NULL)
            fail_msg("%s", error->message);
    }
}

TEST(rotary_positions_begin_where_they_are_told_to) {
    g_autoptr(MtfGraph) graph = text_model(
        "{'name': 'three', 'op': 'constant', 'value': 3, 'dims': [], 'dtype': 'i32'}, {'name': 'h', "
        "'op': 'rotary', 'inputs': ['x', 'three'], 'dimension': 'd', 'position': 'length'}");
    graph_generates_like_the_whole(graph, (int[]){ 3, 1, 2, 0 }, 8);
}

/* Leaves out what is dropped, as texts that go on do. Whether the rest draws no numbers: noise of a token at hand is
 * none of the whole text's. */
static bool is_certain(MtfGraph *graph) {
    bool certain = true;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        certain &= op->kind != MTF_OP_RANDOM_NORMAL && op->kind != MTF_OP_RANDOM_UNIFORM;
        op->attributes.rate = 0;
    }
    return certain;
}

/* Drawn models of texts: those that generate at all do so token by token and in pieces. */
TEST(drawn_models_generate_what_they_say_of_the_whole) {
    int generate = 0, wrong = 0, draws = mtf_draws(1200);
    for (int i = 0; i < draws; i++) {
        guint32 seed = mtf_first_seed() + (guint32)i;
        g_autoptr(MtfGraph) graph =
            mtf_random_text_model(seed, 1 + i % 5, BATCH, LENGTH, VOCABULARY);
        if (!is_certain(graph))
            continue;
        const MtfGenerationSizes sizes = { .length = 1, .context = 8 };
        g_autoptr(MtfGraph) step = mtf_generation_graph(graph, &sizes, NULL);
        if (step == NULL)
            continue;
        generate++;
        if (is_like_the_whole(graph, (int[]){ 1, 1, 1, 1, 1, 1, 0 }, 9) &&
            is_like_the_whole(graph, (int[]){ 3, 1, 2, 0 }, 8))
            continue;
        print_message("drawn text %u of %d operations does not\n", seed, 1 + i % 5);
        wrong++;
    }
    print_message("%d of %d drawn models generate\n", generate, draws);
    assert_true(generate > draws / 10);
    assert_int_equal(wrong, 0);
}
