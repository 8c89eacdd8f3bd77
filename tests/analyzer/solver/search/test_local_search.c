// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/local_search.h"

#define ROUNDS 3000
#define MOST_VALUES 12

static int64_t random_cost(GRand *rand) {
    int kind = g_rand_int_range(rand, 0, 8);
    return kind == 0 ? MTF_CORE_IMPOSSIBLE : g_rand_int_range(rand, -40, 40);
}

/* Two nodes without memory, one edge of random costs. The values of no other pair are cheaper than
 * those of the answer: one edge is all there is, so its descent finds the optimum. */
TEST(a_pair_is_as_cheap_as_any_other) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < ROUNDS; round++) {
        int rows = g_rand_int_range(rand, 1, MOST_VALUES);
        int columns = g_rand_int_range(rand, 1, MOST_VALUES);
        int64_t none[MOST_VALUES] = { 0 }, a[MOST_VALUES], b[MOST_VALUES];
        int64_t edge[MOST_VALUES * MOST_VALUES];
        for (int p = 0; p < MOST_VALUES; p++) {
            a[p] = g_rand_int_range(rand, -20, 20);
            b[p] = g_rand_int_range(rand, -20, 20);
        }
        for (int i = 0; i < rows * columns; i++)
            edge[i] = i == 0 ? 100 : random_cost(rand);
        g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("pair");
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, rows, a, none });
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, columns, b, none });
        mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 0, 1, edge });
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autoptr(MtfLocalSearch) search = mtf_local_search_new(core, 1);
        int values[2] = { 0, 0 };
        assert_true(mtf_local_search_improve(search, values));
        int64_t least = a[0] + b[0] + 100;
        for (int p = 0; p < rows; p++)
            for (int q = 0; q < columns; q++)
                if (edge[p * columns + q] < MTF_CORE_IMPOSSIBLE)
                    least = MIN(least, a[p] + b[q] + edge[p * columns + q]);
        assert_true(mtf_core_cost(core, values) == least);
    }
}
