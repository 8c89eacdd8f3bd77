// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/kernel_work/eager.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

/* product + bias -> relu -> product -> + x -> norm over rows -> product, trained. */
static const char rows_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'd': 8, 'e': 8},"
    "'inputs': [{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}],"
    "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': 'ones'},"
    "{'name': 'v', 'dims': ['e', 'd'], 'init': 'ones'}, {'name': 'u', 'dims': ['d', 'e'], 'init': 'ones'},"
    "{'name': 'bias', 'dims': ['e'], 'init': 'zeros'}, {'name': 'scale', 'dims': ['d'], 'init': 'ones'}],"
    "'operations': ["
    "{'name': 'product', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['b', 'e']},"
    "{'name': 'biased', 'op': 'add', 'inputs': ['product', 'bias']},"
    "{'name': 'active', 'op': 'relu', 'inputs': ['biased']},"
    "{'name': 'second', 'op': 'einsum', 'inputs': ['active', 'v'], 'dims': ['b', 'd']},"
    "{'name': 'sum', 'op': 'add', 'inputs': ['x', 'second']},"
    "{'name': 'normed', 'op': 'layer_norm', 'inputs': ['sum', 'scale'], 'dimension': 'd'},"
    "{'name': 'last', 'op': 'einsum', 'inputs': ['normed', 'u'], 'dims': ['b', 'e']},"
    "{'name': 'square', 'op': 'square', 'inputs': ['last']},"
    "{'name': 'loss', 'op': 'reduce_mean', 'inputs': ['square'], 'dims': []}],"
    "'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";

/* product -> norm over the batch -> relu -> product, trained. */
static const char batch_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'd': 8, 'e': 8},"
    "'inputs': [{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}],"
    "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': 'ones'},"
    "{'name': 'v', 'dims': ['e', 'd'], 'init': 'ones'}, {'name': 'scale', 'dims': ['e'], 'init': 'ones'}],"
    "'operations': ["
    "{'name': 'product', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['b', 'e']},"
    "{'name': 'mean', 'op': 'reduce_mean', 'inputs': ['product'], 'dims': ['e']},"
    "{'name': 'variance', 'op': 'variance', 'inputs': ['product', 'mean'], 'dims': ['e']},"
    "{'name': 'normed', 'op': 'normalize', 'inputs': ['product', 'mean', 'variance', 'scale']},"
    "{'name': 'active', 'op': 'relu', 'inputs': ['normed']},"
    "{'name': 'last', 'op': 'einsum', 'inputs': ['active', 'v'], 'dims': ['b', 'd']},"
    "{'name': 'square', 'op': 'square', 'inputs': ['last']},"
    "{'name': 'loss', 'op': 'reduce_mean', 'inputs': ['square'], 'dims': []}],"
    "'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";

static MtfGraph *marked(const char *text) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    MtfGraph *graph = mtf_training_graph(forward, NULL);
    assert_non_null(graph);
    mtf_graph_mark_eager(graph);
    return graph;
}

static const MtfEagerMarks *marks(const MtfGraph *graph, const char *name) {
    int operation = mtf_graph_find_operation(graph, name);
    assert_true(operation >= 0);
    return &mtf_graph_operation(graph, operation)->eager;
}

static bool is_skipped(const MtfEagerMarks *m) {
    return m->joined && m->skipped[0] == ~0U && m->skipped[1] == ~0U;
}

TEST(a_product_casts_what_is_float32_and_adds_its_bias) {
    g_autoptr(MtfGraph) graph = marked(rows_text);
    assert_int_equal(marks(graph, "product")->cast[0], 1);
    assert_int_equal(marks(graph, "product")->cast[1], 0);
    assert_true(is_skipped(marks(graph, "biased")));
    assert_int_equal(marks(graph, "second")->cast[0], 0); /* relu of a product is narrow */
    assert_int_equal(marks(graph, "last")->cast[0], 1);
}

TEST(a_map_is_as_wide_as_the_widest_it_reads) {
    g_autoptr(MtfGraph) graph = marked(rows_text);
    assert_false(marks(graph, "active")->joined);
    assert_int_equal(marks(graph, "active")->wide[1], 0);
    assert_int_equal(marks(graph, "sum")->wide[0], 1);
    assert_int_equal(marks(graph, "sum")->wide[1], 1);
}

TEST(a_norm_over_rows_is_one_call_in_float32) {
    g_autoptr(MtfGraph) graph = marked(rows_text);
    assert_true(is_skipped(marks(graph, "normed/mean")));
    assert_true(is_skipped(marks(graph, "normed/variance")));
    const MtfEagerMarks *norm = marks(graph, "normed");
    assert_false(norm->joined || norm->over_batch);
    assert_true(norm->wide[0] & 1 && norm->wide[1] & 1);
    assert_int_equal(norm->cast[0], 0);
}

/* The sum's gradient is float32, and narrowed once for both products that read it; what is passed to the
 * norm was a product's, and is widened; so are gradients of variables. */
TEST(gradients_have_the_types_of_their_tensors) {
    g_autoptr(MtfGraph) graph = marked(rows_text);
    assert_int_equal(marks(graph, "grad/normed")->cast[1], 1);
    assert_int_equal(marks(graph, "grad/w")->cast[1], 1);
    assert_int_equal(marks(graph, "grad/active")->cast[1], 0);
    unsigned first = marks(graph, "grad/v")->cast[0], second = marks(graph, "grad/active")->cast[0];
    assert_true((first == 0) != (second == 0));
    int parts = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        parts += op->origin == MTF_ORIGIN_BACKWARD && strcmp(op->of, "normed") == 0 &&
                 is_skipped(&op->eager);
    }
    assert_int_equal(parts, 2); /* a sum and a product that the norm's gradient makes use of */
    assert_false(marks(graph, "grad/sum")->joined);
    assert_int_equal(marks(graph, "grad/sum")->wide[1], 1);
}

TEST(a_norm_over_the_batch_reads_it_twice_and_stays_narrow) {
    g_autoptr(MtfGraph) graph = marked(batch_text);
    assert_true(marks(graph, "mean")->joined && marks(graph, "mean")->over_batch);
    assert_int_equal(marks(graph, "mean")->skipped[0], 0);
    assert_true(is_skipped(marks(graph, "variance")));
    const MtfEagerMarks *norm = marks(graph, "normed");
    assert_true(norm->over_batch && !norm->joined);
    assert_int_equal(norm->wide[0] | norm->wide[1] | norm->cast[0], 0);
    assert_true(marks(graph, "grad/product")->over_batch);
    assert_true(marks(graph, "grad/scale")->over_batch);
    assert_int_equal(marks(graph, "grad/product")->cast[1], 0);
    assert_false(marks(graph, "grad/normed")->over_batch);
}

/* float32 is read and bfloat16 written, by a kernel of its own; a norm would take the variable. */
TEST(a_variable_is_narrowed_for_products) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'd': 8, 'e': 8},"
        "'inputs': [{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}],"
        "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': 'ones'}], 'operations': ["
        "{'name': 'half', 'op': 'cast', 'inputs': ['x'], 'dtype': 'bf16'},"
        "{'name': 'narrow', 'op': 'cast', 'inputs': ['w'], 'dtype': 'bf16'},"
        "{'name': 'product', 'op': 'einsum', 'inputs': ['half', 'narrow'], 'dims': ['b', 'e']}]}");
    mtf_graph_mark_eager(graph);
    assert_false(marks(graph, "narrow")->joined);
    assert_int_equal(marks(graph, "narrow")->wide[1], 0);
}
