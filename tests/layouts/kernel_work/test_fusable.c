// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/kernel_work/fusable.h"
#include "tests/support/cases/parse_graph.h"

/* product -> + bias -> + x -> relu -> product; the sum is read again after the second product. */
static const char graph_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'd': 8, 'e': 8},"
    "'inputs': [{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'},"
    "{'name': 'w', 'dims': ['d', 'e'], 'feed': 'features'},"
    "{'name': 'v', 'dims': ['e', 'd'], 'feed': 'features'},"
    "{'name': 'y', 'dims': ['b', 'e'], 'feed': 'features'},"
    "{'name': 'bias', 'dims': ['e'], 'feed': 'features'}],"
    "'operations': ["
    "{'name': 'product', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['b', 'e']},"
    "{'name': 'biased', 'op': 'add', 'inputs': ['product', 'bias']},"
    "{'name': 'sum', 'op': 'add', 'inputs': ['y', 'biased']},"
    "{'name': 'active', 'op': 'relu', 'inputs': ['sum']},"
    "{'name': 'second', 'op': 'einsum', 'inputs': ['active', 'v'], 'dims': ['b', 'd']},"
    "{'name': 'back', 'op': 'einsum', 'inputs': ['second', 'w'], 'dims': ['b', 'e']},"
    "{'name': 'residual', 'op': 'add', 'inputs': ['sum', 'back']}]}";

static const MtfOperation *operation(const MtfGraph *graph, const char *name) {
    return mtf_graph_operation(graph, mtf_graph_find_operation(graph, name));
}

TEST(what_a_neighbour_wrote_is_near) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(graph_text);
    mtf_graph_mark_near(graph, (MtfFramework){ 0 });
    assert_int_equal(operation(graph, "biased")->near_inputs, 0);
    assert_int_equal(operation(graph, "sum")->near_inputs, 1U << 1);
    assert_int_equal(operation(graph, "active")->near_inputs, 1U << 0);
}

TEST(what_is_read_elsewhere_is_written) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(graph_text);
    mtf_graph_mark_near(graph, (MtfFramework){ 0 });
    assert_int_equal(operation(graph, "biased")->near_outputs, 1);
    assert_int_equal(operation(graph, "sum")->near_outputs, 0);    /* read again by the residual */
    assert_int_equal(operation(graph, "active")->near_outputs, 0); /* a product reads it */
}

TEST(products_are_never_near_and_part_what_is) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(graph_text);
    mtf_graph_mark_near(graph, (MtfFramework){ 0 });
    assert_int_equal(operation(graph, "second")->near_inputs, 0);
    assert_int_equal(operation(graph, "residual")->near_inputs, 0);
    assert_false(operation(graph, "second")->near_redone);
}

/* h' = tanh(x_t + w h), and what is shown of it is kept: in an iteration the sum begins a kernel, to which the slice
 * before it, the map behind it and both that keep its result belong. */
static const char loop_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'t': 4, 'd': 8, 'e': 8},"
    "'inputs': [{'name': 'x', 'dims': ['t', 'd'], 'feed': 'features'},"
    "{'name': 'w', 'dims': ['d', 'e'], 'feed': 'features'}],"
    "'loops': [{'name': 'cell', 'dimension': 't'}],"
    "'operations': ["
    "{'name': 'zero', 'op': 'constant', 'dims': ['d'], 'value': 0},"
    "{'name': 'h', 'op': 'loop_begin', 'inputs': ['zero']},"
    "{'name': 'now', 'op': 'loop_slice', 'loop': 'cell', 'inputs': ['x'], 'dimension': 't'},"
    "{'name': 'product', 'op': 'einsum', 'loop': 'cell', 'inputs': ['h', 'w'], 'dims': ['e']},"
    "{'name': 'here', 'op': 'rename', 'loop': 'cell', 'inputs': ['product'], 'from': 'e', 'to': 'd'},"
    "{'name': 'sum', 'op': 'add', 'loop': 'cell', 'inputs': ['now', 'here']},"
    "{'name': 'squashed', 'op': 'tanh', 'loop': 'cell', 'inputs': ['sum']},"
    "{'name': 'moved', 'op': 'rename', 'loop': 'cell', 'inputs': ['squashed'], 'from': 'd', 'to': 'e'},"
    "{'name': 'half', 'op': 'constant', 'loop': 'cell', 'dims': [], 'value': 0.5},"
    "{'name': 'shown', 'op': 'multiply', 'loop': 'cell', 'inputs': ['half', 'moved']},"
    "{'name': 'all', 'op': 'loop_stack', 'loop': 'cell', 'inputs': ['shown'], 'dimension': 't'},"
    "{'name': 'last', 'op': 'loop_next', 'loop': 'cell', 'inputs': ['h', 'squashed']}]}";

TEST(what_a_loop_moves_is_no_kernel) {
    static const char *const moved[] = { "now", "here", "moved", "all", "last" };
    g_autoptr(MtfGraph) graph = mtf_test_graph(loop_text);
    mtf_graph_mark_near(graph, (MtfFramework){ 0 });
    for (gsize i = 0; i < G_N_ELEMENTS(moved); i++)
        assert_true(operation(graph, moved[i])->near_inputs & 1);
    assert_int_equal(operation(graph, "sum")->near_inputs, 0);
    assert_int_equal(operation(graph, "squashed")->near_inputs, 1);
    assert_int_equal(operation(graph, "shown")->near_inputs, 2); /* nobody wrote the constant */
    assert_int_equal(operation(graph, "product")->near_inputs, 0);
}

/* Attention of two heads with `added` to its scores, which comes of `source`, and another beside it with nothing. */
static MtfGraph *attending(const char *source, const char *added) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'h': 2, 'l': 4, 't': 4, 'd': 8},"
        "'inputs': [{'name': 'q', 'dims': ['b', 'l', 'h', 'd'], 'feed': 'features'},"
        "{'name': 'k', 'dims': ['b', 't', 'h', 'd'], 'feed': 'features'}%s],"
        "'variables': [{'name': 'table', 'dims': ['h', 'l', 't'],"
        "'init': {'normal': 1}}],"
        "'operations': ["
        "{'name': 'doubled', 'op': 'scale', 'inputs': ['%s'], 'factor': 2},"
        "{'name': 'self', 'op': 'attention', 'inputs': ['q', 'k', 'k'%s],"
        "'query': 'l', 'memory': 't', 'dimension': 'd', 'factor': 1},"
        "{'name': 'cross', 'op': 'attention', 'inputs': ['q', 'k', 'k'],"
        "'query': 'l', 'memory': 't', 'dimension': 'd', 'factor': 1}]}",
        ",{'name': 'mask', 'dims': ['b', 't'], 'feed': 'features'}", source, added);
    return mtf_test_graph(text);
}

static bool is_biased(const char *source, const char *added, const char *name) {
    g_autoptr(MtfGraph) graph = attending(source, added);
    mtf_graph_mark_near(graph, (MtfFramework){ 0 });
    assert_false(operation(graph, "doubled")->near_biased);
    return operation(graph, name)->near_biased;
}

/* Models have one kind of attention for all of it. */
TEST(what_is_learned_and_added_to_scores_marks_all_attention) {
    assert_true(is_biased("table", ", 'doubled'", "self"));
    assert_true(is_biased("table", ", 'doubled'", "cross"));
    assert_false(is_biased("table", "", "self"));
    assert_false(is_biased("mask", ", 'doubled'", "self"));
}
