// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/reduce/core_components.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"
#include "tests/support/problems/layout_problems.h"

#include <string.h>

#define ROUNDS 4000
#define MAX_NODES 16

/* Exhaustive search over the living nodes of a core. */
static bool next_values(const MtfCore *core, int *values) {
    for (int v = 0; v < core->node_count; v++) {
        if (!core->nodes[v].alive)
            continue;
        if (++values[v] < core->nodes[v].values)
            return true;
        values[v] = 0;
    }
    return false;
}

static bool search_core(const MtfCore *core, int64_t *cost, int *best) {
    int values[MAX_NODES] = { 0 };
    bool found = false;
    if (core->infeasible)
        return false;
    do {
        if (!mtf_core_allows(core, values))
            continue;
        int64_t here = mtf_core_cost(core, values);
        if (found && here >= *cost)
            continue;
        found = true;
        *cost = here;
        memcpy(best, values, sizeof values);
    } while (next_values(core, values));
    return found;
}

/* The core's optimum, lifted, must be a legal choice of the problem at the problem's optimum. */
static void assert_same_optimum(const MtfLayoutProblem *problem, const MtfCore *core) {
    MtfInt128 cost = 0;
    int64_t core_cost = 0;
    int choice[MAX_NODES], values[MAX_NODES] = { 0 };
    bool possible = mtf_test_exhaustive_search(problem, &cost, choice);
    bool found = search_core(core, &core_cost, values);
    assert_int_equal(possible, found);
    if (!possible)
        return;
    assert_true(cost == core_cost);
    mtf_core_lift(core, values, choice);
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
    assert_true(mtf_layout_problem_allows(problem, &value));
    assert_true(value.cost == cost);
}

/* Runs `reduce` on random problems, every eighth one of repeated cells; it must keep the optimum,
 * and must do something at times. */
static void check(bool (*reduce)(MtfCore *), guint32 seed) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    int changes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            round % 8 == 7 ? mtf_test_repeated_problem(rand) : mtf_test_random_problem(rand);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        if (round % 2 == 1)
            mtf_reduce_rows(core);
        for (int again = 0; again < 3 && !core->infeasible; again++)
            changes += reduce(core);
        assert_same_optimum(problem, core);
    }
    assert_true(changes > ROUNDS / 20);
}

static bool reduce_nothing(MtfCore *core) {
    (void)core;
    return true;
}

TEST(making_a_core_keeps_the_optimum) {
    check(reduce_nothing, 1);
}

TEST(consistency_keeps_the_optimum) {
    check(mtf_reduce_consistency, 2);
}

static bool contract_consistent(MtfCore *core) {
    mtf_reduce_consistency(core);
    return !core->infeasible && mtf_reduce_contraction(core);
}

TEST(contraction_keeps_the_optimum) {
    check(mtf_reduce_contraction, 3);
    check(contract_consistent, 4);
}

/* In what is left no node of one value has an edge. */
static bool separate(MtfCore *core) {
    bool changed = mtf_reduce_separation(core);
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive && core->nodes[v].values == 1)
            for (guint k = 0; k < core->nodes[v].edges->len; k++) {
                int e = g_array_index(core->nodes[v].edges, int, k);
                MtfCoreView view = mtf_core_view(core, mtf_core_edge(core, e), v);
                bool impossible = false;
                for (int q = 0; q < view.columns; q++)
                    impossible |= mtf_view_cost(&view, 0, q) >= MTF_CORE_IMPOSSIBLE;
                assert_true(impossible);
            }
    return changed;
}

TEST(separation_keeps_the_optimum) {
    check(separate, 12);
}

/* 3 5 4 / 7 9 8 is 3 or 7 of one end and 0, 2 or 1 of the other. */
TEST(an_edge_that_is_a_sum_of_its_ends_goes) {
    for (int64_t last = 8; last <= 9; last++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("sum");
        mtf_layout_problem_add_node(
            problem, (MtfLayoutNode){ 0, 1, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 9, 5 } });
        mtf_layout_problem_add_node(
            problem, (MtfLayoutNode){ 0, 1, 3, (int64_t[]){ 0, 0, 0 }, (int64_t[]){ 9, 5, 2 } });
        mtf_layout_problem_add_edge(problem,
                                    (MtfLayoutEdge){ 0, 1, (int64_t[]){ 3, 5, 4, 7, 9, last } });
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        assert_int_equal(mtf_reduce_separation(core), last == 8);
        assert_int_equal(mtf_core_size(core).edges, last != 8);
        if (last == 8)
            assert_true(core->nodes[0].cost[0] == 3 && core->nodes[0].cost[1] == 7 &&
                        core->nodes[1].cost[0] == 0 && core->nodes[1].cost[1] == 2 &&
                        core->nodes[1].cost[2] == 1);
    }
}

TEST(elimination_keeps_the_optimum) {
    check(mtf_reduce_elimination, 5);
}

TEST(dominance_keeps_the_optimum) {
    check(mtf_reduce_dominance, 6);
}

TEST(rows_keep_the_optimum) {
    check(mtf_reduce_rows, 7);
}

#define MOST_TIMES 32

/* The nodes in memory at a time, as bits. */
static guint live_at(const MtfLayoutProblem *problem, int64_t time) {
    guint live = 0;
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        bool uses = false;
        for (int s = 0; s < node->strategies; s++)
            uses |= node->usages[s] > 0;
        if (uses && node->start <= time && time < node->end)
            live |= 1U << v;
    }
    return live;
}

/* All sets of nodes that are in memory together and part of no larger such set; returns how many.
 */
static int maximal_cliques(const MtfLayoutProblem *problem, guint *cliques) {
    int count = 0;
    for (int64_t time = 0; time < MOST_TIMES; time++) {
        guint live = live_at(problem, time);
        bool maximal = live != 0;
        for (int64_t other = 0; other < MOST_TIMES; other++)
            maximal &= live_at(problem, other) == live || (live_at(problem, other) & live) != live;
        for (int i = 0; i < count; i++)
            maximal &= cliques[i] != live;
        if (maximal)
            cliques[count++] = live;
    }
    return count;
}

static guint nodes_in_row(const MtfCore *core, int row) {
    guint nodes = 0;
    for (int v = 0; v < core->node_count; v++)
        for (guint k = 0; k < core->nodes[v].pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(core->nodes[v].pieces, MtfCorePiece, k);
            nodes |= piece->first <= row && row < piece->last ? 1U << v : 0;
        }
    return nodes;
}

/* A row each and no others, in the order of time. */
TEST(rows_are_the_maximal_cliques_of_the_intervals) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    int several = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        mtf_layout_problem_set_limit(problem, 1000);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        guint cliques[MOST_TIMES] = { 0 };
        int count = maximal_cliques(problem, cliques);
        assert_int_equal(core->rows, count);
        several += count > 1;
        for (int r = 0; r < count; r++) {
            assert_int_equal(nodes_in_row(core, r), cliques[r]);
            assert_int_equal(live_at(problem, core->row_time[r]), cliques[r]);
        }
    }
    assert_true(several > ROUNDS / 4);
}

static bool reduce_everything(MtfCore *core) {
    mtf_reduce_all(core, NULL);
    return true;
}

TEST(all_together_keep_the_optimum) {
    check(reduce_everything, 8);
}

TEST(a_wrong_reduction_is_caught) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("two");
    mtf_layout_problem_add_node(
        problem, (MtfLayoutNode){ 0, 0, 2, (int64_t[]){ 5, 3 }, (int64_t[]){ 0, 0 } });
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    mtf_core_keep_values(core, 0, (bool[]){ true, false }); /* loses the optimum, 3 */
    int64_t cost = 0;
    int values[MAX_NODES] = { 0 };
    assert_true(search_core(core, &cost, values));
    assert_true(cost == 5);
}

/* The optimum of the whole is the sum of those of the components, and their values together are it.
 */
TEST(components_are_solved_apart) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(10);
    int several = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_reduce_rows(core);
        if (core->infeasible)
            continue;
        int component[MAX_NODES], values[MAX_NODES] = { 0 };
        int64_t sum = core->constant, cost = 0, least = 0;
        bool possible = true;
        int count = mtf_core_components(core, component);
        for (int i = 0; i < count; i++) {
            g_autoptr(MtfCore) part = mtf_core_component(core, component, i);
            int best[MAX_NODES] = { 0 };
            possible = possible && search_core(part, &cost, best);
            sum += cost;
            for (int v = 0; v < core->node_count; v++)
                values[v] = component[v] == i ? best[v] : values[v];
        }
        int best[MAX_NODES];
        assert_int_equal(search_core(core, &least, best), possible);
        several += possible && count > 1;
        if (!possible)
            continue;
        assert_int_equal(sum, least);
        assert_true(mtf_core_allows(core, values));
        assert_int_equal(mtf_core_cost(core, values), least);
    }
    assert_true(several > ROUNDS / 20);
}

/* One chain of `cells` nodes with two strategies, equal costs and equal matrices. */
static MtfLayoutProblem *chain(int cells) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("chain");
    for (int c = 0; c < cells; c++) {
        mtf_layout_problem_add_node(
            problem, (MtfLayoutNode){ 0, 1, 2, (int64_t[]){ 4, 7 }, (int64_t[]){ 9, 5 } });
        if (c > 0)
            mtf_layout_problem_add_edge(problem,
                                        (MtfLayoutEdge){ c - 1, c, (int64_t[]){ 0, 3, 2, 1 } });
    }
    return problem;
}

TEST(equal_matrices_are_stored_once) {
    g_autoptr(MtfLayoutProblem) problem = chain(100);
    const int64_t *costs = mtf_layout_problem_edge(problem, 0)->costs;
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    for (int e = 0; e < 99; e++) {
        assert_ptr_equal(mtf_layout_problem_edge(problem, e)->costs, costs);
        assert_ptr_equal(mtf_core_edge(core, e)->cost, mtf_core_edge(core, 0)->cost);
    }
}

/* Elimination repeated layers loses nothing: by hand, all 0 costs 4 a node and 0 an edge. */
TEST(the_quotient_of_a_chain_costs_what_the_chain_does) {
    static const int cells[] = { 12, 24, 48, 96, 192, 384 };
    for (gsize i = 0; i < G_N_ELEMENTS(cells); i++) {
        g_autoptr(MtfLayoutProblem) problem = chain(cells[i]);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_reduce_all(core, NULL);
        assert_int_equal(mtf_core_size(core).nodes, 0);
        assert_int_equal(core->constant, 4 * cells[i]);
    }
}

TEST(a_choice_projects_onto_the_core_at_its_cost) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    int projected = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_reduce_all(core, NULL);
        MtfInt128 cost;
        int choice[MAX_NODES], values[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &cost, choice) ||
            !mtf_core_project(core, choice, values))
            continue;
        assert_true(mtf_core_cost(core, values) <= cost);
        projected++;
    }
    assert_true(projected > ROUNDS / 10);
}

/* Sums of 2^53 over 600 nodes pass 2^60: costs are rounded down by a shift and stay a bound. */
TEST(huge_costs_are_shifted_and_not_overflowed) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("huge");
    int64_t cost = MTF_LAYOUT_MAX_COST;
    for (int v = 0; v < 600; v++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 1, 1, &cost, &cost });
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    mtf_reduce_all(core, NULL);
    assert_true(core->cost_shift > 0);
    assert_true((MtfInt128)core->constant << core->cost_shift <= (MtfInt128)600 * cost);
    assert_true((MtfInt128)(core->constant + 600) << core->cost_shift >= (MtfInt128)600 * cost);
}
