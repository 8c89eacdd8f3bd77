// SPDX-License-Identifier: GPL-3.0-or-later
/* What is left of a graph when most of its layers are cut out. */
#include "tests/support/cmocka.h"

#include "analyzer/rewriting/shallow_graph.h"
#include "tests/support/cases/parse_graph.h"

/* Layers of a product and a residual connection, and a loss of the last one's result. */
static MtfGraph *layers_of(int count) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 8, 'd': 4}, 'inputs': [{'name': 'x', "
        "'dims': ['b', 'd'], 'feed': 'features'}], 'operations': [{'repeat': {'name': 'layer', "
        "'count': %d, 'carry': [{'name': 'h', 'init': 'x', 'next': 'n'}], 'variables': [{'name': "
        "'v', 'dims': ['d'], 'init': 'ones'}], 'operations': [{'name': 'p', 'op': 'multiply', "
        "'inputs': ['h', 'v']}, {'name': 'n', 'op': 'add', 'inputs': ['h', 'p']}]}}, {'name': "
        "'sq', 'op': 'square', 'inputs': ['layer/h']}, {'name': 'l', 'op': 'reduce_mean', "
        "'inputs': ['sq'], 'dims': []}], 'loss': 'l'}",
        count);
    return mtf_test_graph(text);
}

static int input_of(const MtfGraph *graph, const char *operation, int k) {
    int i = mtf_graph_find_operation(graph, operation);
    assert_true(i >= 0);
    return mtf_graph_operation(graph, i)->inputs[k];
}

static bool has(const MtfGraph *graph, const char *tensor) {
    return mtf_graph_find_tensor(graph, tensor) >= 0;
}

/* Of 10 layers 0, 1 and 8, 9 stay: four of two operations and the two of the loss. */
TEST(the_first_and_the_last_layers_stay) {
    g_autoptr(MtfGraph) whole = layers_of(10);
    g_autoptr(MtfGraph) few = mtf_graph_shallow(whole, 4);
    assert_non_null(few);
    assert_int_equal(few->operations->len, 10);
    assert_int_equal(mtf_graph_parameters(few), 4 * 4);
    assert_true(has(few, "layer/1/n") && has(few, "layer/8/n") && has(few, "layer/9/v"));
    assert_false(has(few, "layer/2/n") || has(few, "layer/7/n") || has(few, "layer/5/v"));
    assert_int_equal(whole->operations->len, 22);
}

TEST(the_layer_behind_the_cut_reads_the_one_before_it) {
    g_autoptr(MtfGraph) whole = layers_of(10);
    g_autoptr(MtfGraph) few = mtf_graph_shallow(whole, 4);
    int before = mtf_graph_find_tensor(few, "layer/1/n");
    assert_int_equal(input_of(few, "layer/8/p", 0), before);
    assert_int_equal(input_of(few, "layer/8/n", 0), before);
    assert_int_equal(input_of(few, "layer/9/p", 0), mtf_graph_find_tensor(few, "layer/8/n"));
}

TEST(what_published_files_keep_of_cut_layers_goes_too) {
    g_autoptr(MtfGraph) whole = layers_of(10);
    for (int i = 0; i < 10; i++) {
        g_autofree char *name = g_strdup_printf("layer/%d/v", i);
        mtf_graph_tensor(whole, mtf_graph_find_tensor(whole, name))->stored = g_strdup(name);
    }
    g_autoptr(MtfGraph) few = mtf_graph_shallow(whole, 4);
    assert_int_equal(mtf_graph_parameters(few), 4 * 4);
}

TEST(a_graph_of_few_layers_has_none) {
    g_autoptr(MtfGraph) whole = layers_of(4);
    assert_null(mtf_graph_shallow(whole, 4));
    g_autoptr(MtfGraph) three = mtf_graph_shallow(whole, 3);
    assert_non_null(three);
}

/* What is not the next layer cannot read another one instead. */
TEST(a_graph_whose_middle_layers_are_read_elsewhere_has_none) {
    g_autoptr(MtfGraph) whole = layers_of(10);
    MtfOperation *square = mtf_graph_operation(whole, mtf_graph_find_operation(whole, "sq"));
    square->inputs[0] = mtf_graph_find_tensor(whole, "layer/5/n");
    assert_null(mtf_graph_shallow(whole, 4));
}
