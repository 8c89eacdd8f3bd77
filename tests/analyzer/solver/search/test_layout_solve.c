// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/layout_problem_json.h"
#include "analyzer/solver/search/layout_solve.h"
#include "layouts/base/error.h"
#include "tests/support/problems/layout_problems.h"

#include <string.h>
#include <unistd.h>

#define ROUNDS 3000
#define MAX_NODES 16

static void assert_is_optimal(const MtfLayoutProblem *problem, const MtfLayoutSolution *solution,
                              MtfInt128 optimum) {
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, solution->choice);
    assert_true(mtf_layout_problem_allows(problem, &value));
    assert_true(value.cost == solution->cost);
    assert_true(solution->cost == optimum);
    assert_true(solution->bound == optimum);
    assert_true(solution->gap == 0);
}

/* Every eighth one is of repeated cells. */
static MtfLayoutProblem *some_problem(GRand *rand, int round) {
    return round % 8 == 7 ? mtf_test_repeated_problem(rand) : mtf_test_random_problem(rand);
}

TEST(random_problems_match_exhaustive_search) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    int fitting = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        g_autoptr(GError) error = NULL;
        MtfSolveOptions options = { .no_infeasibility = true };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, &error);
        if (!fits) {
            assert_null(solution);
            assert_int_equal(mtf_error_exit_status(error), 3);
            continue;
        }
        assert_non_null(solution);
        assert_is_optimal(problem, solution, optimum);
        fitting++;
    }
    assert_true(fitting > ROUNDS / 3);
}

/* Stopped after one round, the bound is never above the optimum nor the cost below it. */
TEST(a_bound_is_never_above_the_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
        MtfSolveOptions options = { .work = 1, .no_infeasibility = true };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_true(fits || solution == NULL);
        assert_true(solution == NULL || solution->bound <= optimum);
        assert_true(solution == NULL || solution->cost >= optimum);
    }
}

TEST(what_would_do_is_the_least_peak_when_nothing_fits) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    int misfits = 0;
    for (int round = 0; round < ROUNDS / 4; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInfeasibility infeasibility = { 0 };
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfLayoutSolution) solution =
            mtf_layout_solve(problem, NULL, &infeasibility, &error);
        int64_t least = mtf_test_least_peak(problem);
        if (solution == NULL) {
            assert_int_equal(mtf_error_exit_status(error), 3);
            assert_int_equal(infeasibility.possible, least >= 0);
            misfits++;
        }
        if (solution == NULL && infeasibility.possible) {
            assert_true(infeasibility.enough == least);
            assert_true(infeasibility.needed == least);
            assert_true(infeasibility.node_count > 0);
        }
        g_free(infeasibility.nodes);
    }
    assert_true(misfits > ROUNDS / 40);
}

TEST(a_start_is_kept_when_there_is_no_time) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    for (int round = 0; round < 300; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInt128 optimum;
        int choice[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        MtfSearchControl control;
        mtf_search_control_init(&control, 1e-9);
        MtfSolveOptions options = { .control = &control, .start = choice };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_non_null(solution);
        assert_true(solution->cost == optimum);
        assert_true(solution->bound <= optimum);
    }
}

/* The cheapest choice without a limit, where that is too large, leads to one that fits, though there is no time. */
TEST(a_start_that_is_too_large_is_repaired) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(14);
    int large = 0, repaired = 0;
    for (int round = 0; round < 2000; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        g_autoptr(MtfLayoutProblem) unlimited = mtf_layout_problem_copy(problem);
        mtf_layout_problem_set_limit(unlimited, MTF_NO_LIMIT);
        MtfInt128 least, optimum;
        int start[MAX_NODES], choice[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice) ||
            !mtf_test_exhaustive_search(unlimited, &least, start) || least == optimum)
            continue;
        large++;
        MtfSearchControl control;
        mtf_search_control_init(&control, 1e-9);
        MtfSolveOptions options = { .control = &control, .start = start, .work = 1 };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        if (solution == NULL)
            continue;
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, solution->choice);
        assert_true(mtf_layout_problem_allows(problem, &value));
        assert_true(value.cost == solution->cost && solution->cost >= optimum);
        repaired++;
    }
    assert_true(large > 30);
    assert_true(2 * repaired > large);
}

TEST(more_memory_is_never_dearer) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 100; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInt128 last = (MtfInt128)1 << 100;
        for (int64_t limit = 0; limit < 60; limit += 6) {
            mtf_layout_problem_set_limit(problem, limit);
            MtfSolveOptions options = { .no_infeasibility = true };
            g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
            assert_true(solution != NULL || last == (MtfInt128)1 << 100);
            if (solution == NULL)
                continue;
            assert_true(solution->cost <= last);
            last = solution->cost;
        }
    }
}

TEST(the_next_best_strategy_has_the_price_of_forbidding_the_best) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("pair");
    int64_t none[3] = { 0 };
    mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 3, (int64_t[]){ 5, 9, 7 }, none });
    mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, (int64_t[]){ 0, 0 }, none });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 0, 1, (int64_t[]){ 0, 4, 6, 0, 4, 4 } });
    /* best 5 + 0; without strategy 0 it is min(9 + 0, 7 + 4) = 9 */
    g_autoptr(MtfLayoutSolution) best = mtf_layout_solve(problem, NULL, NULL, NULL);
    g_autoptr(MtfLayoutSolution) next = mtf_layout_solve_next_best(problem, best, 0, NULL, NULL);
    assert_true(best->cost == 5 && next->cost == 9);
    assert_int_equal(next->choice[0], 1);
}

/* Each node follows one before it of as many strategies, or none. */
static void draw_leaders(GRand *rand, const MtfLayoutProblem *problem, int *leader) {
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        int other = g_rand_int_range(rand, 0, v + 1);
        bool same = mtf_layout_problem_node(problem, other)->strategies ==
                    mtf_layout_problem_node(problem, v)->strategies;
        leader[v] = same ? (other == v ? v : leader[other]) : v;
    }
}

/* The naive twin: every choice in which all nodes follow their leaders. */
static bool search_followers(const MtfLayoutProblem *problem, const int *leader, MtfInt128 *best) {
    int n = mtf_layout_problem_node_count(problem), choice[MAX_NODES] = { 0 };
    bool found = false;
    for (int v = 0; v < n;) {
        bool follows = true;
        for (int u = 0; u < n; u++)
            follows &= choice[u] == choice[leader[u]];
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
        if (follows && mtf_layout_problem_allows(problem, &value) &&
            (!found || value.cost < *best)) {
            found = true;
            *best = value.cost;
        }
        for (v = 0; v < n && ++choice[v] == mtf_layout_problem_node(problem, v)->strategies; v++)
            choice[v] = 0;
    }
    return found;
}

TEST(nodes_take_what_their_leaders_take) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    int dearer = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 0, alike = 0;
        int leader[MAX_NODES], choice[MAX_NODES];
        draw_leaders(rand, problem, leader);
        bool fits = search_followers(problem, leader, &alike);
        MtfSolveOptions options = { .leader = leader, .no_infeasibility = true };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_int_equal(solution != NULL, fits);
        if (!fits)
            continue;
        assert_is_optimal(problem, solution, alike);
        for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
            assert_int_equal(solution->choice[v], solution->choice[leader[v]]);
        dearer += mtf_test_exhaustive_search(problem, &optimum, choice) && optimum < alike;
    }
    assert_true(dearer > ROUNDS / 50);
}

TEST(an_empty_problem_costs_nothing) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("empty");
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, NULL, NULL, NULL);
    assert_non_null(solution);
    assert_true(solution->cost == 0 && solution->bound == 0);
}

/* Two choices around 2^65: the totals need 128 bits and the optimum is still found. */
TEST(costs_beyond_64_bits_are_solved) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("huge");
    int64_t usage[2] = { 0, 0 };
    for (int v = 0; v < 5000; v++) {
        int64_t costs[2] = { MTF_LAYOUT_MAX_COST, MTF_LAYOUT_MAX_COST - INT64_C(4096) * (v % 2) };
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, costs, usage });
    }
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, NULL, NULL, NULL);
    MtfInt128 optimum = (MtfInt128)5000 * MTF_LAYOUT_MAX_COST - (MtfInt128)2500 * 4096;
    assert_true(solution->cost == optimum);
    assert_true(solution->bound <= optimum);
}

TEST(the_same_work_gives_the_same_answer) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(6);
    for (int round = 0; round < 200; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfSolveOptions options = { .work = 2, .seed = 7, .no_infeasibility = true };
        g_autoptr(MtfLayoutSolution) one = mtf_layout_solve(problem, &options, NULL, NULL);
        g_autoptr(MtfLayoutSolution) two = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_int_equal(one == NULL, two == NULL);
        if (one == NULL)
            continue;
        gsize size = (gsize)mtf_layout_problem_node_count(problem) * sizeof(int);
        assert_memory_equal(one->choice, two->choice, size);
        assert_true(one->bound == two->bound);
    }
}

static void assert_file_optimum(const char *path, const char *optimum) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_load(path, NULL);
    assert_non_null(problem);
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, NULL, NULL, NULL);
    assert_non_null(solution);
    g_autofree char *cost = mtf_int128_format(solution->cost);
    assert_string_equal(cost, optimum);
    assert_true(solution->bound == solution->cost);
}

/* Another search finds something when this one asks for the time that `asks_left` counts down to. */
static int asks_left;
static _Atomic int64_t rival;

static bool find_better(void) {
    if (--asks_left <= 0)
        rival = 0;
    return false;
}

TEST(an_abandoned_search_has_no_answer_though_it_began_with_one) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 100; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        g_autoptr(MtfLayoutSolution) best = mtf_layout_solve(problem, NULL, NULL, NULL);
        MtfSearchControl control;
        mtf_search_control_init(&control, 0);
        control.interrupted = find_better;
        control.rival = &rival;
        rival = INT64_MAX;
        asks_left = 1 + round % 4;
        g_autoptr(GError) error = NULL;
        MtfSolveOptions options = { .control = &control,
                                    .no_infeasibility = true,
                                    .start = best != NULL ? best->choice : NULL };
        g_autoptr(MtfLayoutSolution) none = mtf_layout_solve(problem, &options, NULL, &error);
        if (asks_left > 0)
            continue; /* solved before it was asked so often */
        assert_null(none);
        assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_FAILED));
    }
}

TEST(the_contest_example_and_small_instance_are_proven_optimal) {
    if (access("../shared/data/iopddl/example.json", R_OK) != 0)
        skip();
    assert_file_optimum("../shared/data/iopddl/example.json", "445");
    assert_file_optimum("../shared/data/iopddl/asplos-2025-iopddl-G.json.gz", "217039");
}

/* Optima of ../shared/data/pase/README.md, there rounded away in their last digits. */
TEST(the_networks_of_pase_are_proven_optimal) {
    if (access("../shared/data/pase/rnnlm_p64.json.gz", R_OK) != 0)
        skip();
    assert_file_optimum("../shared/data/pase/rnnlm_p64.json.gz", "25062781091840");
    assert_file_optimum("../shared/data/pase/transformer_p4.json.gz", "63101251878912");
    assert_file_optimum("../shared/data/pase/inception3_p8.json.gz", "12514249638912");
}
