// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/bounds/exact_bound.h"
#include "analyzer/solver/reduce/reductions.h"
#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/bound_checker.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 2500
#define MAX_NODES 16

/* Factors from 1 to 2e13: with them costs reach 1e15. */
static int64_t factor_of(int round) {
    static const int64_t factors[] = { 1, 1000, INT64_C(2500000007), INT64_C(250000000013),
                                       INT64_C(20000000000021) };
    return factors[round % 5];
}

typedef struct Setup {
    MtfCore *core;
    MtfMessages *messages;
    MtfExactBound *exact;
    MtfInt128 optimum;
    int choice[MAX_NODES];
} Setup;

/* A consistent core of a problem that has a legal choice, some passes at prices drawn at random. */
static bool setup_init(Setup *setup, GRand *rand, int round) {
    int64_t factor = factor_of(round);
    g_autoptr(MtfLayoutProblem) problem = mtf_test_magnified_problem(rand, factor, round % 3);
    if (!mtf_test_exhaustive_search(problem, &setup->optimum, setup->choice))
        return false;
    setup->core = mtf_core_new(problem);
    mtf_reduce_rows(setup->core);
    mtf_reduce_consistency(setup->core);
    setup->messages = mtf_messages_new(setup->core);
    g_autofree double *price = g_new0(double, setup->core->rows + 1);
    for (int r = 0; r < setup->core->rows; r++)
        price[r] = g_rand_boolean(rand) ? g_rand_double(rand) * 3 * (double)factor : 0;
    mtf_messages_set_prices(setup->messages, price);
    for (int pass = 0; pass < 6; pass++)
        mtf_messages_pass(setup->messages);
    setup->exact = mtf_exact_bound_new(setup->messages);
    mtf_exact_bound_update(setup->exact);
    return true;
}

static void setup_clear(Setup *setup) {
    mtf_exact_bound_free(setup->exact);
    mtf_messages_free(setup->messages);
    mtf_core_free(setup->core);
}

TEST(every_bound_holds_in_exact_arithmetic_and_below_the_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(21);
    int tight = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Setup setup;
        if (!setup_init(&setup, rand, round))
            continue;
        int64_t bound = mtf_exact_bound_cost(setup.exact);
        assert_true(bound <= setup.optimum);
        assert_true(mtf_test_bound_holds(setup.core, setup.exact, bound));
        tight += bound == setup.optimum;
        setup_clear(&setup);
    }
    assert_true(tight > ROUNDS / 10);
}

TEST(the_checker_refuses_a_bound_that_is_one_too_high) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(22);
    int refused = 0, rounds = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        Setup setup;
        if (!setup_init(&setup, rand, round))
            continue;
        /* a false proof of an optimum one unit above the true one */
        assert_false(mtf_test_bound_holds(setup.core, setup.exact, (int64_t)setup.optimum + 1));
        refused +=
            !mtf_test_bound_holds(setup.core, setup.exact, mtf_exact_bound_cost(setup.exact) + 1);
        rounds++;
        setup_clear(&setup);
    }
    /* payments rounded down may hide a unit now and then */
    assert_true(refused > rounds * 9 / 10);
}

/* Legal choices that leave memory over would be credited for it, and the sum exceed the optimum. */
TEST(the_checker_refuses_a_certificate_with_a_price_below_zero) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(26);
    int forged = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        Setup setup;
        if (!setup_init(&setup, rand, round))
            continue;
        g_autofree double *price = g_new0(double, setup.core->rows + 1);
        for (int r = 0; r < setup.core->rows; r++)
            price[r] = -(double)factor_of(round);
        mtf_messages_set_prices(setup.messages, price);
        mtf_exact_bound_update(setup.exact);
        for (int r = 0; r < setup.core->rows; r++)
            if (mtf_exact_bound_price(setup.exact, r) < 0) {
                assert_false(mtf_test_bound_holds(setup.core, setup.exact, INT64_MIN / 4));
                forged++;
                break;
            }
        setup_clear(&setup);
    }
    assert_true(forged > ROUNDS / 100);
}

/* What doubles say of the same messages agrees but for roundings. */
TEST(the_bound_is_what_the_passes_reach) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(23);
    for (int round = 0; round < ROUNDS / 4; round++) {
        Setup setup;
        if (!setup_init(&setup, rand, round))
            continue;
        double bound = mtf_messages_pass(setup.messages);
        mtf_exact_bound_update(setup.exact);
        double whole = (double)mtf_exact_bound_cost(setup.exact);
        assert_true(whole >= bound - 1e-3 - 1e-9 * (double)factor_of(round));
        setup_clear(&setup);
    }
}

TEST(a_regret_is_what_taking_the_value_adds_at_least) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(24);
    for (int round = 0; round < ROUNDS / 2; round++) {
        Setup setup;
        int values[MAX_NODES];
        if (!setup_init(&setup, rand, round))
            continue;
        bool there = mtf_core_project(setup.core, setup.choice, values);
        int64_t slack = mtf_exact_bound_slack(setup.exact, (int64_t)setup.optimum);
        assert_true(slack >= 0);
        for (int v = 0; there && v < setup.core->node_count; v++)
            if (setup.core->nodes[v].alive)
                assert_true(mtf_exact_bound_regrets(setup.exact, v)[values[v]] <= slack);
        setup_clear(&setup);
    }
}

/* Claims of the whole solver where costs come close to 1e15 and choices differ by single units. */
TEST(claims_about_huge_costs_match_exhaustive_search) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(25);
    int fitting = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            mtf_test_magnified_problem(rand, factor_of(round), round % 3);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        MtfSolveOptions options = { .no_infeasibility = true };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_int_equal(solution != NULL, fits);
        if (!fits)
            continue;
        assert_true(solution->cost == optimum);
        assert_true(solution->bound == optimum);
        fitting++;
    }
    assert_true(fitting > ROUNDS / 3);
}
