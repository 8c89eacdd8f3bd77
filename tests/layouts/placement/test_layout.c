// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/placement/layout.h"
#include "tests/support/cases/parse_graph.h"

static MtfGraph *new_graph(void) {
    return mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4, 'b': 6}, 'inputs': [{'name': 'x', "
        "'dims': ['a'], 'feed': 'features'}], 'variables': [{'name': 'v', 'dims': ['a'], 'init': "
        "'ones'}], 'operations': [{'name': 'y', 'op': 'relu', 'inputs': ['x']}]}");
}

static MtfLayout *new_layout(const MtfGraph *graph) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2;cols:2", 0, &mesh, NULL));
    return mtf_layout_new(graph, &mesh);
}

static void assert_refused(const MtfGraph *graph, const MtfLayout *layout, const char *message) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_layout_check(graph, layout, &error));
    assert_string_equal(error->message, message);
}

TEST(everything_whole_is_legal) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    assert_int_equal(layout->n_tensors, 3);
    assert_int_equal(layout->n_operations, 1);
    assert_true(mtf_layout_check(graph, layout, NULL));
}

TEST(a_result_may_be_kept_partial_but_nothing_else) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    layout->tensors[2].axis[1] = MTF_PARTIAL_SUM;
    assert_true(mtf_layout_check(graph, layout, NULL));
    layout->tensors[0].axis[0] = MTF_PARTIAL_SUM;
    assert_refused(graph, layout, "tensor \"x\" is no result and cannot be partial");
    layout->tensors[0].axis[0] = MTF_REPLICATED;
    layout->tensors[1].axis[1] = MTF_PARTIAL_MAX;
    assert_refused(graph, layout, "tensor \"v\" is no result and cannot be partial");
}

/* Else a sum that is added up once for the maximum and once for the comparison may differ from itself by a rounding. */
TEST(what_is_compared_to_the_bit_is_not_kept_partial) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4, 'b': 6}, 'inputs': [{'name': 'x', "
        "'dims': ['b', 'a'], 'feed': 'features'}], 'variables': [{'name': 'v', 'dims': ['a'], "
        "'init': 'ones'}], 'operations': [{'name': 'm', 'op': 'einsum', 'inputs': ['x', 'v'], "
        "'dims': ['b']}, {'name': 'n', 'op': 'tanh', 'inputs': ['m']}, {'name': 'y', 'op': "
        "'maximum', 'inputs': ['m', 'n']}, {'name': 'e', 'op': 'equal', 'inputs': ['y', 'm']}]}");
    g_autoptr(MtfLayout) layout = new_layout(graph);
    int m = mtf_graph_find_tensor(graph, "m"), n = mtf_graph_find_tensor(graph, "n");
    int y = mtf_graph_find_tensor(graph, "y");
    layout->tensors[n].axis[1] = layout->tensors[y].axis[1] = MTF_PARTIAL_SUM;
    assert_true(mtf_layout_check(graph, layout, NULL));
    layout->tensors[m].axis[1] = MTF_PARTIAL_SUM;
    assert_refused(graph, layout,
                   "tensor \"m\", which is read and compared, is kept as a partial "
                   "sum, which every reading rounds in its own way: search for a layout anew");
}

TEST(placements_and_strategies_are_checked) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    layout->tensors[1].axis[0] = 1;
    assert_refused(graph, layout,
                   "axis \"rows\" splits tensor \"v\" along \"b\", a dimension it "
                   "does not have");
    layout->tensors[1].axis[0] = MTF_REPLICATED;
    layout->operations[0].axis[1] = MTF_PARTIAL_INPUT;
    assert_refused(graph, layout,
                   "operation \"y\" is not linear in its input 0, so that input "
                   "cannot stay partial on axis \"cols\"");
}

TEST(a_copy_stands_alone) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    layout->rules = g_strdup("a:rows");
    layout->tensors[0].axis[0] = 0;
    g_autoptr(MtfLayout) copy = mtf_layout_copy(layout);
    layout->tensors[0].axis[0] = MTF_REPLICATED;
    layout->rules[0] = 'b';
    assert_string_equal(copy->rules, "a:rows");
    assert_int_equal(copy->tensors[0].axis[0], 0);
    assert_true(mtf_mesh_equal(&copy->mesh, &layout->mesh));
}

TEST(a_tensor_is_read_where_it_is_kept_unless_a_reading_says_otherwise) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    layout->tensors[2].axis[0] = 0;
    assert_int_equal(mtf_layout_phase_placement(layout, 2, MTF_PHASE_FORWARD)->axis[0], 0);
    MtfPlacement placement = mtf_placement_replicated();
    mtf_layout_set_gathered_copy(layout, 2, MTF_PHASE_BACKWARD, &placement);
    g_autoptr(MtfLayout) copy = mtf_layout_copy(layout);
    assert_true(mtf_layout_has_gathered_copy(copy, 2, MTF_PHASE_BACKWARD));
    assert_false(mtf_layout_has_gathered_copy(copy, 2, MTF_PHASE_FORWARD));
    assert_false(mtf_layout_has_gathered_copy(copy, 1, MTF_PHASE_BACKWARD));
}

TEST(readings_are_checked) {
    g_autoptr(MtfGraph) graph = new_graph();
    g_autoptr(MtfLayout) layout = new_layout(graph);
    MtfPlacement partial = mtf_placement_replicated();
    partial.axis[1] = MTF_PARTIAL_SUM;
    mtf_layout_set_gathered_copy(layout, 2, MTF_PHASE_FORWARD, &partial);
    assert_true(mtf_layout_check(graph, layout, NULL));
    mtf_layout_set_gathered_copy(layout, 1, MTF_PHASE_FORWARD, &partial);
    assert_refused(graph, layout, "tensor \"v\" is no result and cannot be partial");
}
