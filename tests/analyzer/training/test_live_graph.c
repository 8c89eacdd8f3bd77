// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/live_graph.h"
#include "tests/support/cases/parse_graph.h"

/* The loss follows from a product; beside it stand a chain of two operations on a variable of their
 * own, and a variable that nothing reads. */
static const char *const with_dead_parts =
    "{'meshtf_graph': 1, 'name': 'p', 'dimensions': {'batch': 4, 'in': 3},"
    " 'inputs': [{'name': 'x', 'dims': ['batch', 'in'], 'feed': 'features'}],"
    " 'variables': [{'name': 'w', 'dims': ['in'], 'init': 'ones'},"
    "  {'name': 'idle', 'dims': ['in'], 'init': 'ones'},"
    "  {'name': 'spare', 'dims': ['in'], 'init': 'ones'}],"
    " 'operations': [{'name': 'early', 'op': 'multiply', 'inputs': ['x', 'idle']},"
    "  {'name': 'y', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch']},"
    "  {'name': 'late', 'op': 'relu', 'inputs': ['early']},"
    "  {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['y'], 'dims': []}],"
    " 'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";

TEST(what_the_loss_does_not_need_is_dead) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(with_dead_parts);
    MtfDeadParts dead = mtf_dead_parts(graph);
    assert_int_equal(dead.operations->len, 2);
    assert_string_equal(dead.operations->pdata[0], "early");
    assert_string_equal(dead.operations->pdata[1], "late");
    assert_int_equal(dead.variables->len, 2);
    assert_string_equal(dead.variables->pdata[0], "idle");
    assert_string_equal(dead.variables->pdata[1], "spare");
    mtf_dead_parts_clear(&dead);
}

TEST(dropped_parts_are_gone_and_the_rest_is_whole) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(with_dead_parts);
    mtf_graph_drop_dead(graph);
    assert_int_equal(graph->operations->len, 2);
    assert_int_equal(graph->tensors->len, 4);
    assert_int_equal(mtf_graph_find_tensor(graph, "idle"), -1);
    assert_int_equal(mtf_graph_find_tensor(graph, "late"), -1);
    assert_string_equal(mtf_graph_tensor(graph, graph->loss)->name, "loss");
    assert_int_equal(mtf_graph_parameters(graph), 3);
    MtfDeadParts dead = mtf_dead_parts(graph);
    assert_int_equal(dead.operations->len + dead.variables->len, 0);
    mtf_dead_parts_clear(&dead);
}

TEST(nothing_is_dead_without_a_loss) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(with_dead_parts);
    graph->loss = -1;
    mtf_graph_drop_dead(graph);
    assert_int_equal(graph->operations->len, 4);
}
