// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/kernel_work/row_length.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

static const char graph_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'l': 4, 'h': 3, 'd': 8, 'one': 1},"
    "'inputs': [{'name': 'x', 'dims': ['b', 'l', 'h', 'd'], 'feed': 'features'},"
    "{'name': 'y', 'dims': ['b', 'l', 'h', 'd'], 'feed': 'features'},"
    "{'name': 'bias', 'dims': ['h', 'd'], 'feed': 'features'},"
    "{'name': 'thin', 'dims': ['b', 'l', 'one'], 'feed': 'features'},"
    "{'name': 'narrow', 'dims': ['b', 'one'], 'feed': 'features'}],"
    "'operations': ["
    "{'name': 'alike', 'op': 'add', 'inputs': ['x', 'y']},"
    "{'name': 'biased', 'op': 'add', 'inputs': ['x', 'bias']},"
    "{'name': 'means', 'op': 'reduce_mean', 'inputs': ['x'], 'dims': ['b', 'l', 'h']},"
    "{'name': 'columns', 'op': 'reduce_sum', 'inputs': ['x'], 'dims': ['h', 'd']},"
    "{'name': 'dot', 'op': 'einsum', 'inputs': ['x', 'y'], 'dims': ['b', 'l']},"
    "{'name': 'spread', 'op': 'multiply', 'inputs': ['thin', 'narrow']},"
    "{'name': 'placed', 'op': 'rotary', 'inputs': ['x'], 'position': 'l', 'dimension': 'd'},"
    "{'name': 'turned', 'op': 'transpose', 'inputs': ['x'], 'dims': ['d', 'h', 'l', 'b']}]}";

/* The row length of an operation whose dimension `split` is halved. */
static double length_of(const char *name, const char *split) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(graph_text);
    for (int o = 0; o < (int)graph->operations->len; o++) {
        if (strcmp(mtf_graph_operation(graph, o)->name, name) != 0)
            continue;
        MtfIteration iteration;
        int64_t sizes[MTF_MAX_INDEXES];
        mtf_operation_iteration(graph, o, &iteration);
        for (int i = 0; i < iteration.n; i++)
            sizes[i] = iteration.index[i].size /
                       (iteration.index[i].dim == mtf_graph_find_dimension(graph, split) ? 2 : 1);
        return mtf_operation_row_length(graph, o, &iteration, sizes);
    }
    return -1;
}

TEST(a_row_is_what_lies_side_by_side_in_all_operands) {
    assert_true(length_of("biased", "b") == 24);
    assert_true(length_of("means", "b") == 8);
    assert_true(length_of("columns", "b") == 24);
    assert_true(length_of("dot", "b") == 24);
}

TEST(splitting_a_row_shortens_it) {
    assert_true(length_of("means", "d") == 4);
    assert_true(length_of("means", "l") == 8);
}

TEST(dimensions_of_one_place_are_no_part_of_it) {
    assert_true(length_of("spread", "h") == 4);
}

/* Of b and h: 2 * 3. */
TEST(vectors_of_one_position_are_a_row_of_rotary_ones) {
    assert_true(length_of("placed", "l") == 6);
    assert_true(length_of("placed", "b") == 3);
}

TEST(what_is_one_row_or_moves_has_none) {
    assert_true(length_of("alike", "b") == 0);
    assert_true(length_of("turned", "b") == 0);
}
