// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/core_ilp.h"
#include "tests/support/problems/layout_problems.h"

#include <math.h>

#define ROUNDS 1500
#define MAX_NODES 16

TEST(the_program_finds_the_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES], values[MAX_NODES] = { 0 };
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        MtfIlpOptions options = { 0 };
        MtfCoreIlpAnswer answer;
        const int *start = fits && round % 2 == 0 ? choice : NULL;
        assert_true(mtf_core_ilp_solve(core, &options, start, values, &answer, NULL));
        assert_int_equal(answer.status, fits ? MTF_ILP_OPTIMAL : MTF_ILP_INFEASIBLE);
        if (!fits)
            continue;
        assert_true(mtf_core_allows(core, values));
        assert_true(mtf_core_cost(core, values) == optimum);
        assert_true(fabs(answer.bound - (double)optimum) < 1e-6);
    }
}

/* One binary for each value, one continuous variable for each matrix entry: 2 + 3 + 6. */
TEST(the_program_has_a_variable_for_each_value_and_entry) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("sizes");
    int64_t zero[6] = { 0 };
    mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 1, 2, zero, zero });
    mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 1, 3, zero, zero });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 0, 1, zero });
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    assert_int_equal(mtf_core_ilp_size(core), 11);
}
