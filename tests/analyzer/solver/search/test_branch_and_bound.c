// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/bounds/exact_bound.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/branch_and_bound.h"
#include "analyzer/solver/search/improvers.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 1500
#define MAX_NODES 16
#define WAITS 20 /* of half a millisecond: on a busy machine threads begin late */

static MtfBranching *new_branching(const MtfCore *core, GRand *rand, double *weights) {
    MtfMessages *messages = mtf_messages_new(core);
    g_autofree double *price = g_new0(double, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        price[r] = g_rand_boolean(rand) ? g_rand_double(rand) * 3 : 0;
    mtf_messages_set_prices(messages, price);
    return mtf_branching_new(messages, weights, 1);
}

/* Its last choice is the optimum, its end the proof; stopped anywhere, its bound is none too high. */
TEST(branching_ends_with_the_optimum_or_with_nothing) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            mtf_test_magnified_problem(rand, round % 2 == 0 ? 1 : INT64_C(10000000000019), 1);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES], values[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        double weights[MAX_NODES] = { 0 };
        g_autoptr(MtfBranching) branching = new_branching(core, rand, weights);
        int64_t cutoff = MTF_NO_CUTOFF;
        MtfBranchStatus status = MTF_BRANCH_OPEN;
        while (status != MTF_BRANCH_DONE) {
            status = mtf_branching_run(branching, cutoff, 400, values);
            if (status == MTF_BRANCH_FOUND) {
                assert_true(mtf_core_allows(core, values));
                assert_true(mtf_core_cost(core, values) <= cutoff);
                cutoff = mtf_core_cost(core, values) - 1;
            }
            int64_t bound = MIN(mtf_branching_bound(branching), cutoff + 1);
            assert_true(!fits || bound <= optimum);
        }
        assert_int_equal(fits, cutoff < MTF_NO_CUTOFF);
        assert_true(!fits || cutoff + 1 == optimum);
    }
}

/* What comes back is legal and cheaper than what they began with, or nothing. */
TEST(improvers_end_legal_and_cheaper) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);
    int improved = 0;
    for (int round = 0; round < ROUNDS / 5; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        int start[MAX_NODES];
        for (int tries = 0; tries < 50; tries++) {
            for (int v = 0; v < core->node_count; v++)
                start[v] = g_rand_int_range(rand, 0, core->nodes[v].values);
            if (mtf_core_allows(core, start))
                break;
        }
        if (!mtf_core_allows(core, start) || mtf_core_cost(core, start) == optimum)
            continue;
        g_autofree double *price = g_new0(double, core->rows + 1);
        g_autoptr(MtfImprovers) improvers =
            mtf_improvers_begin(core, 2, (guint64)round, start, price);
        mtf_improvers_tell(improvers, start, round % 3 == 0 ? start : NULL, price);
        int better[MAX_NODES];
        bool found = false;
        for (int waits = 0; waits < WAITS && !found; waits++) {
            g_usleep(500);
            found = mtf_improvers_take(improvers, better);
        }
        if (!found)
            continue;
        improved++;
        assert_true(mtf_core_allows(core, better));
        assert_true(mtf_core_cost(core, better) < mtf_core_cost(core, start));
        assert_true(mtf_core_cost(core, better) >= optimum);
    }
    assert_true(improved > ROUNDS / 20);
}

/* Of an optimum that they are told nothing comes back, whatever they had found before. */
TEST(improvers_take_over_what_they_are_told) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(43);
    int told = 0;
    for (int round = 0; round < ROUNDS / 20; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES], values[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        g_autofree double *price = g_new0(double, core->rows + 1);
        g_autoptr(MtfImprovers) improvers =
            mtf_improvers_begin(core, 2, (guint64)round, choice, price);
        mtf_improvers_tell(improvers, choice, choice, price);
        mtf_improvers_end(improvers);
        assert_false(mtf_improvers_take(improvers, values));
        told++;
    }
    assert_true(told > 0);
}
