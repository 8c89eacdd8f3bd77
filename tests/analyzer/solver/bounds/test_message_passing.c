// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/bounds/dual_ascent.h"
#include "analyzer/solver/bounds/exact_bound.h"
#include "analyzer/solver/bounds/node_pairs.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/reduce/reductions.h"
#include "tests/support/problems/layout_problems.h"

#include <math.h>
#include <string.h>

#define ROUNDS 3000
#define MAX_NODES 16

/* A random problem that has a legal choice, as a consistent core; NULL otherwise. */
static MtfCore *random_core(GRand *rand, MtfInt128 *optimum, int *choice) {
    g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
    if (!mtf_test_exhaustive_search(problem, optimum, choice))
        return NULL;
    MtfCore *core = mtf_core_new(problem);
    mtf_reduce_rows(core);
    mtf_reduce_consistency(core);
    return core;
}

static void set_random_prices(MtfMessages *messages, const MtfCore *core, GRand *rand) {
    g_autofree double *price = g_new0(double, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        price[r] = g_rand_boolean(rand) ? g_rand_double(rand) * 3 : 0;
    mtf_messages_set_prices(messages, price);
}

TEST(every_price_gives_a_bound) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL)
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        for (int pass = 0; pass < 4; pass++) {
            set_random_prices(messages, core, rand);
            assert_true(mtf_messages_pass(messages) <= (double)optimum + 1e-9);
        }
    }
}

TEST(the_bound_never_falls_at_one_price) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL)
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        set_random_prices(messages, core, rand);
        double bound = mtf_messages_pass(messages);
        for (int pass = 0; pass < 5; pass++) {
            double next = mtf_messages_pass(messages);
            assert_true(next >= bound - 1e-6);
            bound = next;
        }
    }
}

/* Wherever a leap ends, in doubles and in whole numbers; and where it pays a later pass knows. */
TEST(after_a_leap_the_bound_is_a_bound) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(6);
    int worth = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL)
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        set_random_prices(messages, core, rand);
        double bound = mtf_messages_pass(messages);
        g_autofree double *from = mtf_messages_save(messages, NULL);
        mtf_messages_pass(messages);
        mtf_messages_leap(messages, from, g_rand_double_range(rand, 0, 20));
        double after = mtf_messages_pass(messages);
        g_autoptr(MtfExactBound) exact = mtf_exact_bound_new(messages);
        mtf_exact_bound_update(exact);
        assert_true(after <= (double)optimum + 1e-9);
        assert_true(mtf_exact_bound_cost(exact) <= optimum);
        worth += after > bound + 1e-6;
    }
    assert_true(worth > ROUNDS / 100);
}

#define SIDE 12

/* A grid whose nodes have wishes of their own and rather agree with their neighbours, so that messages have
 * far to go. */
static MtfCore *grid_core(GRand *rand) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("grid");
    int64_t none[3] = { 0 }, cost[9];
    for (int v = 0; v < SIDE * SIDE; v++) {
        for (int p = 0; p < 3; p++)
            cost[p] = g_rand_int_range(rand, 0, 100);
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 3, cost, none });
    }
    for (int e = 0; e < 2 * SIDE * (SIDE - 1); e++) {
        int line = e / 2 / (SIDE - 1), at = e / 2 % (SIDE - 1);
        int from = e % 2 == 0 ? line * SIDE + at : at * SIDE + line;
        for (int i = 0; i < 9; i++)
            cost[i] = i % 4 == 0 ? 0 : g_rand_int_range(rand, 10, 50);
        mtf_layout_problem_add_edge(problem,
                                    (MtfLayoutEdge){ from, from + (e % 2 == 0 ? 1 : SIDE), cost });
    }
    return mtf_core_new(problem);
}

/* 20 steps of the ascent are as many passes and those of ten leaps. */
TEST(leaps_are_worth_more_than_passes) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    int better = 0;
    for (int round = 0; round < 20; round++) {
        g_autoptr(MtfCore) core = grid_core(rand);
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        double plain = 0;
        for (int pass = 0; pass < 30; pass++)
            plain = mtf_messages_pass(messages);
        g_autoptr(MtfDual) dual = mtf_dual_new(core);
        int values[SIDE * SIDE];
        for (int step = 0; step < 20; step++)
            mtf_dual_step(dual, values);
        assert_true(mtf_dual_bound(dual) >= plain - 0.5);
        better += mtf_dual_bound(dual) > plain + 0.5;
    }
    assert_true(better > 2);
}

/* ---- The formula of message_passing.h, value by value, as the witness of what goes by classes ---- */

#define MOST_VALUES 9 /* of a node of the grid, joined or not */

typedef struct {
    const MtfCore *core;
    double (*to)[2][MOST_VALUES]; /* [edges] messages to its first node and to its second */
    double bound;
} Twin;

static const MtfCoreEdge *edge_of(const Twin *twin, int node, guint k) {
    return mtf_core_edge(twin->core, g_array_index(twin->core->nodes[node].edges, int, k));
}

/* Whether the node stands behind the other end of that edge of its. */
static bool is_earlier(const MtfCoreEdge *edge, int node) {
    return node < mtf_core_other_end(edge, node);
}

static double share_of(const Twin *twin, int node) {
    int ahead = 0, all = (int)twin->core->nodes[node].edges->len;
    for (int k = 0; k < all; k++)
        ahead += is_earlier(edge_of(twin, node, (guint)k), node);
    return 1.0 / MAX(1, MAX(ahead, all - ahead));
}

/* One message of a node whose values have those costs above the least. */
static void send_naively(Twin *twin, int node, guint k, const double *above) {
    const MtfCoreEdge *edge = edge_of(twin, node, k);
    int index = g_array_index(twin->core->nodes[node].edges, int, k);
    const double *in = twin->to[index][edge->b == node];
    double *out = twin->to[index][edge->a == node], least = INFINITY;
    int others = twin->core->nodes[mtf_core_other_end(edge, node)].values;
    double sent[MOST_VALUES];
    for (int q = 0; q < others; q++) {
        sent[q] = INFINITY;
        for (int p = 0; p < twin->core->nodes[node].values; p++)
            sent[q] = fmin(sent[q], share_of(twin, node) * above[p] - in[p] +
                                        (double)mtf_core_edge_cost(twin->core, edge, node, p, q));
        least = fmin(least, sent[q]);
    }
    for (int q = 0; q < others; q++)
        out[q] = sent[q] - least;
    twin->bound += least;
}

static void visit_naively(Twin *twin, int node, bool ahead) {
    const MtfCoreNode *at = &twin->core->nodes[node];
    double theta[MOST_VALUES], least = INFINITY;
    for (int p = 0; p < at->values; p++) {
        theta[p] = (double)at->cost[p];
        for (guint k = 0; k < at->edges->len; k++)
            theta[p] +=
                twin->to[g_array_index(at->edges, int, k)][edge_of(twin, node, k)->b == node][p];
        least = fmin(least, theta[p]);
    }
    for (int p = 0; p < at->values; p++)
        theta[p] -= least;
    twin->bound += least;
    for (guint k = 0; k < at->edges->len; k++)
        if (is_earlier(edge_of(twin, node, k), node) == ahead)
            send_naively(twin, node, k, theta);
}

static double pass_naively(Twin *twin) {
    int count = twin->core->node_count;
    for (int v = 0; v < count; v++)
        if (twin->core->nodes[v].alive)
            visit_naively(twin, v, true);
    twin->bound = (double)twin->core->constant;
    for (int v = count - 1; v >= 0; v--)
        if (twin->core->nodes[v].alive)
            visit_naively(twin, v, false);
    return twin->bound;
}

/* Most neighbours of a joined pair know one half of it, so that they share classes of its values. */
TEST(messages_by_classes_are_those_of_every_value) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    for (int round = 0; round < 20; round++) {
        g_autoptr(MtfCore) core = grid_core(rand);
        assert_true(mtf_core_pair_nodes(core, NULL, 1e6, MOST_VALUES) > SIDE);
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        g_autofree double(*to)[2][MOST_VALUES] = g_malloc0((core->edges->len + 1) * sizeof *to);
        Twin twin = { .core = core, .to = to };
        for (int pass = 0; pass < 5; pass++) {
            double bound = pass_naively(&twin);
            assert_true(fabs(mtf_messages_pass(messages) - bound) <= 1e-9 * fabs(bound));
        }
    }
}

/* Adds three nodes of two values and edges between them; `frustrated`: equal values cost 1, so that no choice of the three
 * costs as little as each edge alone. */
static void add_triangle(MtfLayoutProblem *problem, int first, bool frustrated) {
    int64_t none[2] = { 0 };
    for (int v = 0; v < 3; v++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, none, none });
    for (int v = 0; v < 3; v++)
        mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ first + v, first + (v + 1) % 3,
                                                              (int64_t[]){ 1, 0, 0, frustrated } });
}

/* There is room for one pair: the other triangle's would raise no bound. */
TEST(pairs_whose_triangles_raise_the_bound_come_first) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("triangles");
    add_triangle(problem, 0, false);
    add_triangle(problem, 3, true);
    add_triangle(problem, 6, false);
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    double room = (double)mtf_core_size(core).entries + 8;
    assert_int_equal(mtf_core_pair_nodes(core, NULL, room, MOST_VALUES), 1);
    int left = core->nodes[3].alive + core->nodes[4].alive + core->nodes[5].alive;
    assert_int_equal(left, 2);
    g_autoptr(MtfMessages) messages = mtf_messages_new(core);
    double bound = 0;
    for (int pass = 0; pass < 9; pass++)
        bound = mtf_messages_pass(messages);
    assert_true(fabs(bound - 1) < 1e-9);
}

/* On a path without memory the relaxation is tight: the bound is the optimum, 1 + 0 + 2 = 3. */
TEST(a_path_is_solved_by_the_bound) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("path");
    int64_t none[2] = { 0 };
    for (int v = 0; v < 3; v++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 0, 2, (int64_t[]){ v, 1 }, none });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 0, 1, (int64_t[]){ 9, 9, 9, 0 } });
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ 1, 2, (int64_t[]){ 0, 9, 9, 0 } });
    /* (1,1,1): 1 + 1 + 1 + 0 + 0 = 3; (0,0,0): 0 + 1 + 2 + 9 + 0 = 12 */
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    g_autoptr(MtfMessages) messages = mtf_messages_new(core);
    assert_true(fabs(mtf_messages_pass(messages) - 3) < 1e-9);
    int values[3];
    assert_true(mtf_messages_decode(messages, values));
    assert_int_equal(mtf_core_cost(core, values), 3);
}

TEST(pruning_keeps_every_choice_within_the_cutoff) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    int pruned = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES], values[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL || !mtf_core_project(core, choice, values))
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        set_random_prices(messages, core, rand);
        mtf_messages_pass(messages);
        g_autoptr(MtfExactBound) exact = mtf_exact_bound_new(messages);
        mtf_exact_bound_update(exact);
        pruned += mtf_exact_bound_prune(exact, core, (int64_t)optimum);
        assert_true(mtf_core_cost(core, values) == optimum);
    }
    assert_true(pruned > ROUNDS / 20);
}

TEST(baked_messages_change_no_cost) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES], values[MAX_NODES];
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL || !mtf_core_project(core, choice, values))
            continue;
        g_autoptr(MtfMessages) messages = mtf_messages_new(core);
        set_random_prices(messages, core, rand);
        mtf_messages_pass(messages);
        mtf_messages_reparametrize(messages, core);
        assert_true(mtf_core_cost(core, values) == optimum);
    }
}

TEST(ascent_with_shrinking_keeps_an_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int round = 0; round < ROUNDS; round++) {
        MtfInt128 optimum;
        int choice[MAX_NODES], values[MAX_NODES] = { 0 };
        g_autoptr(MtfCore) core = random_core(rand, &optimum, choice);
        if (core == NULL)
            continue;
        g_autoptr(MtfDual) dual = mtf_dual_new(core);
        for (int i = 0; i < 12; i++) {
            mtf_dual_step(dual, values);
            assert_true(mtf_dual_bound(dual) <= (double)optimum + 1e-9);
            if (i % 4 == 3 && !core->infeasible)
                mtf_dual_shrink(dual, (int64_t)optimum, NULL);
            assert_false(core->infeasible);
        }
    }
}
