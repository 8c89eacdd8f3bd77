// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a graph is cut into stages of equal work. */
#include "analyzer/training/stage_cut.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cmocka.h"

/* A constant, a loop of STEPS steps, and products of 18, 6 x WIDTH and 6 x WIDTH points behind it. */
#define GRAPH(steps, width)                                                                        \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 2, 't': " steps ", 'd': 3, 'e': " width  \
    ", 'f': 3, 'g': 3}, 'inputs': [{'name': 'x', 'dims': ['n', 't', 'd'], 'feed': 'features'}], "  \
    "'variables': [{'name': 'w', 'dims': ['d', 'f'], 'init': 'ones'}, {'name': 'v', 'dims': "      \
    "['f', 'e'], 'init': 'ones'}, {'name': 'u', 'dims': ['e', 'g'], 'init': 'ones'}], "            \
    "'operations': [{'name': 'zero', 'op': 'constant', 'value': 0, 'dims': ['n', 'd']}, {'loop': " \
    "{'name': 'steps', 'dimension': 't', 'carry': [{'name': 's', 'init': 'zero', 'next': 'ns'}], " \
    "'inputs': [{'name': 'now', 'of': 'x'}], 'operations': [{'name': 'ns', 'op': 'add', "          \
    "'inputs': ['s', 'now']}]}}, {'name': 'a', 'op': 'einsum', 'inputs': ['steps/s', 'w'], "       \
    "'dims': ['n', 'f']}, {'name': 'b', 'op': 'einsum', 'inputs': ['a', 'v'], 'dims': ['n', "      \
    "'e']}, {'name': 'c', 'op': 'einsum', 'inputs': ['b', 'u'], 'dims': ['n', 'g']}]}"

/* The stage of the operation of that name where the graph is cut into `stages`. */
static int stage_of(const char *text, int stages, const char *operation) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    assert_true(mtf_cut_stages(graph, stages, NULL));
    return mtf_graph_operation(graph, mtf_graph_find_operation(graph, operation))->stage;
}

/* b and c have 6 x 50 points each, before them are 18 of a product and less of a loop: nothing is near the half but
 * the place between them. */
TEST(a_cut_lies_nearest_to_the_balance) {
    assert_int_equal(stage_of(GRAPH("9", "50"), 2, "a"), 1);
    assert_int_equal(stage_of(GRAPH("9", "50"), 2, "b"), 1);
    assert_int_equal(stage_of(GRAPH("9", "50"), 2, "c"), 2);
}

/* Every operation of four stages has one; the constant alone would be the first. */
TEST(a_constant_alone_is_no_stage) {
    static const char *const first[] = { "zero", "steps/ns", "a", "b", "c" };
    static const int stages[] = { 1, 1, 2, 3, 4 };
    for (int i = 0; i < 5; i++)
        assert_int_equal(stage_of(GRAPH("9", "50"), 4, first[i]), stages[i]);
    g_autoptr(MtfGraph) graph = mtf_test_graph(GRAPH("9", "50"));
    g_autoptr(GError) error = NULL;
    assert_false(mtf_cut_stages(graph, 5, &error));
    assert_string_equal(error->message,
                        "graph \"g\" has too few places outside of its loops for 5 stages");
}

/* An iteration has fewer points than a product of 18, 200 of them have more. */
TEST(a_loop_works_in_every_iteration) {
    assert_int_equal(stage_of(GRAPH("1", "1"), 2, "a"), 1);
    assert_int_equal(stage_of(GRAPH("200", "1"), 2, "a"), 2);
}
