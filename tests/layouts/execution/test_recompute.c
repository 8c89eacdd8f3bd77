// SPDX-License-Identifier: GPL-3.0-or-later
/* What is recomputed, and when. That it gives the same bits is shown in
 * tests/runtime/session/test_recomputed_bits.c. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/execution/recompute.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/training_case.h"

#include <string.h>

/* Blocks of two products with an activation between them and a residual connection; the batch is
 * large and the weights are small. */
static MtfGraph *training(const char *activation, int layers) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 256, 'd': 8, 'e': 32}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'operations': [{'repeat': "
        "{'name': 'layer', 'count': %d, 'carry': [{'name': 'h', 'init': 'x', 'next': 'n'}], "
        "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': 'ones'}, {'name': 'c', 'dims': "
        "['e'], 'init': 'ones'}, {'name': 'v', 'dims': ['e', 'd'], 'init': 'ones'}], 'operations': "
        "[{'name': 'p', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['b', 'e']}, {'name': 'k', "
        "'op': 'add', 'inputs': ['p', 'c']}, {'name': 'a', 'op': '%s', 'inputs': ['k']}, {'name': "
        "'q', 'op': 'einsum', 'inputs': ['a', 'v'], 'dims': ['b', 'd']}, {'name': 'n', 'op': 'add', "
        "'inputs': ['h', 'q']}]}}, {'name': 'sq', 'op': 'square', 'inputs': ['layer/h']}, {'name': "
        "'l', 'op': 'reduce_mean', 'inputs': ['sq'], 'dims': []}], 'loss': 'l', 'optimizer': "
        "{'kind': 'sgd', 'rate': 0.1}}",
        layers, activation);
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    return mtf_training_graph(forward, NULL);
}

static MtfGraph *recomputed(const char *activation, int layers, MtfRecompute recompute) {
    MtfGraph *graph = training(activation, layers);
    assert_true(mtf_graph_recompute(graph, &(MtfKept){ .recompute = recompute }, 1, NULL));
    return graph;
}

static bool has(const MtfGraph *graph, const char *operation) {
    return mtf_graph_find_operation(graph, operation) >= 0;
}

/* gelu's gradient reads k, so a is there for one cheap pass. relu's reads a itself: keeping k for
 * it would gain nothing. Products are never cheap. */
TEST(cheap_results_are_dropped_where_that_gains) {
    g_autoptr(MtfGraph) gelu = recomputed("gelu", 3, MTF_RECOMPUTE_CHEAP);
    assert_true(has(gelu, "recompute/layer/1/a"));
    assert_false(mtf_test_is_read_back(gelu, "layer/1/a"));
    assert_false(has(gelu, "recompute/layer/1/k"));
    assert_false(has(gelu, "recompute/layer/1/p"));
    g_autoptr(MtfGraph) relu = recomputed("relu", 3, MTF_RECOMPUTE_CHEAP);
    assert_false(has(relu, "recompute/layer/1/a"));
}

TEST(of_layers_only_what_the_next_one_reads_is_kept) {
    static const char *const inside[] = { "p", "k", "a" };
    g_autoptr(MtfGraph) graph = recomputed("gelu", 3, MTF_RECOMPUTE_LAYERS);
    for (int layer = 0; layer < 3; layer++)
        for (gsize i = 0; i < G_N_ELEMENTS(inside); i++) {
            g_autofree char *name = g_strdup_printf("layer/%d/%s", layer, inside[i]);
            g_autofree char *clone = g_strdup_printf("recompute/%s", name);
            assert_false(mtf_test_is_read_back(graph, name));
            assert_true(has(graph, clone));
        }
    assert_true(mtf_test_is_read_back(graph, "layer/0/n"));
    assert_false(has(graph, "recompute/layer/0/n"));
}

/* Layer 1 is recomputed when the gradient of its result is there, not before. */
TEST(one_layer_is_computed_again_at_a_time) {
    g_autoptr(MtfGraph) graph = recomputed("gelu", 3, MTF_RECOMPUTE_LAYERS);
    int later = mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "grad/layer/1/n"))->producer;
    int again = mtf_graph_find_operation(graph, "recompute/layer/1/p");
    int earlier = mtf_graph_find_operation(graph, "recompute/layer/0/p");
    assert_true(later >= 0 && later < again);
    assert_true(again < earlier);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        assert_true(!g_str_has_prefix(op->name, "recompute/") || op->phase == MTF_PHASE_BACKWARD);
    }
}

/* A layer holds k and a, 32 wide, and n, 8 wide. With cheap work repeated k and n are left, with
 * layers n and one layer's inside; 12 layers of 256 examples, to a tenth and the inside of two. */
TEST(memory_falls_by_what_is_dropped) {
    const double row = 256 * sizeof(float), two = 2 * (32 + 32 + 32 + 8) * row;
    g_autoptr(MtfGraph) whole = training("gelu", 12);
    g_autoptr(MtfGraph) cheap = recomputed("gelu", 12, MTF_RECOMPUTE_CHEAP);
    g_autoptr(MtfGraph) layers = recomputed("gelu", 12, MTF_RECOMPUTE_LAYERS);
    double weights = 12 * (2 * 8 * 32 + 32) * sizeof(float);
    assert_true((double)mtf_test_arena_bytes(whole) >= 12 * (32 + 32 + 8) * row);
    assert_true((double)mtf_test_arena_bytes(cheap) <= 1.1 * (12 * (32 + 8) * row + weights) + two);
    assert_true((double)mtf_test_arena_bytes(layers) <= 1.1 * (12 * 8 * row + weights) + two);
}

/* Those that wait longest for the backward pass; each saves its inside. */
TEST(only_the_first_layers_are_computed_again) {
    g_autoptr(MtfGraph) whole = training("gelu", 12);
    int64_t before = mtf_test_arena_bytes(whole), all = 0;
    for (int k = 1; k <= 12; k++) {
        g_autoptr(MtfGraph) graph = training("gelu", 12);
        assert_int_equal(mtf_graph_recomputable_layers(graph), 12);
        assert_true(
            mtf_graph_recompute(graph, &(MtfKept){ MTF_RECOMPUTE_LAYERS, k, 0, 0 }, 1, NULL));
        for (int layer = 0; layer < 12; layer++) {
            g_autofree char *clone = g_strdup_printf("recompute/layer/%d/a", layer);
            assert_int_equal(has(graph, clone), layer < k);
        }
        all = mtf_test_arena_bytes(graph);
        assert_true(all <= before);
        before = all;
    }
    g_autoptr(MtfGraph) layers = recomputed("gelu", 12, MTF_RECOMPUTE_LAYERS);
    assert_int_equal(all, mtf_test_arena_bytes(layers));
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = training("gelu", 12);
    assert_false(
        mtf_graph_recompute(graph, &(MtfKept){ MTF_RECOMPUTE_LAYERS, 13, 0, 0 }, 1, &error));
    assert_non_null(strstr(error->message, "repeats 12 layers"));
}

TEST(numbers_of_layers_and_other_words_are_read) {
    MtfRecompute recompute;
    int layers;
    assert_true(mtf_recompute_parse("layers:7", &recompute, &layers, NULL));
    assert_true(recompute == MTF_RECOMPUTE_LAYERS && layers == 7);
    g_autofree char *text = mtf_recompute_format(recompute, layers);
    assert_string_equal(text, "layers:7");
    assert_true(mtf_recompute_parse("selective", &recompute, &layers, NULL));
    assert_true(recompute == MTF_RECOMPUTE_CHEAP && layers == 0);
    assert_true(mtf_recompute_parse("full", &recompute, &layers, NULL));
    assert_true(recompute == MTF_RECOMPUTE_LAYERS && layers == 0);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_recompute_parse("layers:0", &recompute, &layers, &error));
}

/* Layers 0 and 1 are the first stage, 2 and 3 the second. What the first hands on is kept. */
TEST(each_stage_recomputes_what_it_is_told) {
    static const MtfRecompute each[] = { MTF_RECOMPUTE_LAYERS, MTF_RECOMPUTE_NONE };
    static const MtfRecompute other[] = { MTF_RECOMPUTE_NONE, MTF_RECOMPUTE_CHEAP };
    for (int turn = 0; turn < 2; turn++) {
        g_autoptr(MtfGraph) graph = training("gelu", 4);
        for (int i = 0; i < (int)graph->operations->len; i++) {
            MtfOperation *op = mtf_graph_operation(graph, i);
            op->stage = op->layer.block > 0 && op->layer.iteration < 2 ? 1 : 2;
        }
        const MtfRecompute *of = turn == 0 ? each : other;
        MtfKept kept[] = { { .recompute = of[0] }, { .recompute = of[1] } };
        assert_true(mtf_graph_recompute(graph, kept, 2, NULL));
        for (int l = 0; l < 4; l++) {
            g_autofree char *product = g_strdup_printf("recompute/layer/%d/p", l);
            g_autofree char *gelu = g_strdup_printf("recompute/layer/%d/a", l);
            assert_true(has(graph, product) == (turn == 0 && l < 2));
            assert_true(has(graph, gelu) == (turn == 0 ? l < 2 : l >= 2));
        }
        assert_false(has(graph, "recompute/layer/1/n"));
    }
    g_autofree char *text = mtf_recompute_format_stages(each, 2);
    assert_string_equal(text, "layers,none");
}

TEST(what_cannot_be_done_is_said) {
    g_autoptr(GError) error = NULL, word = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'flat', 'dimensions': {'b': 2}, 'inputs': [{'name': 'x', "
        "'dims': ['b'], 'feed': 'features'}], 'variables': [{'name': 'w', 'dims': ['b'], 'init': "
        "'ones'}], 'operations': [{'name': 'l', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': "
        "[]}], 'loss': 'l'}");
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    assert_false(
        mtf_graph_recompute(graph, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, &error));
    assert_string_equal(error->message,
                        "the graph \"flat\" repeats no block, so there are no layers "
                        "to recompute");
    MtfRecompute recompute;
    int count;
    g_autofree MtfRecompute *each = mtf_recompute_parse_stages("full,none,cheap", 3, NULL);
    assert_int_equal(each[0], MTF_RECOMPUTE_LAYERS);
    assert_int_equal(each[1], MTF_RECOMPUTE_NONE);
    assert_int_equal(each[2], MTF_RECOMPUTE_CHEAP);
    assert_null(mtf_recompute_parse_stages("layers,none", 3, NULL));
    assert_null(mtf_recompute_parse_stages("layers:2,none,none", 3, NULL));
    assert_null(mtf_recompute_parse_stages("layers,,none", 3, NULL));
    assert_false(mtf_recompute_parse("all", &recompute, &count, &word));
    assert_string_equal(
        word->message,
        "--recompute \"all\" must be none, cheap (selective), layers (full), layers:K "
        "for the first K or, of a search, auto");
}
