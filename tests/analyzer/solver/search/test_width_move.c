// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/search/width_move.h"
#include "tests/support/problems/layout_problems.h"

#include <math.h>

#define ROUNDS 400
#define MAX_NODES 16

/* Cost and priced memory, from the problem's numbers alone; infinite where something is impossible. */
static double priced(const MtfCore *core, const double *price, const int *values) {
    double sum = 0;
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        sum +=
            node->cost[values[v]] >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)node->cost[values[v]];
        for (guint k = 0; k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            for (int r = piece->first; r < piece->last; r++)
                sum += price[r] * (double)piece->usage[values[v]];
        }
    }
    for (guint e = 0; e < core->edges->len; e++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
        int64_t cost = mtf_core_edge_cost(core, edge, edge->a, values[edge->a], values[edge->b]);
        sum += cost >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)cost;
    }
    return sum;
}

/* The least that any choice comes to; with `others`, of each node's two values alone. */
static double least(const MtfCore *core, const double *price, const int *values,
                    const int *others) {
    int choice[MAX_NODES] = { 0 }, taken[MAX_NODES];
    double best = INFINITY;
    for (int v = 0; v >= 0;) {
        for (int u = 0; u < core->node_count; u++)
            taken[u] = others == NULL ? choice[u] : choice[u] == 0 ? values[u] : others[u];
        best = fmin(best, priced(core, price, taken));
        for (v = core->node_count - 1; v >= 0; v--) {
            if (++choice[v] < (others == NULL ? core->nodes[v].values : 2))
                break;
            choice[v] = 0;
        }
    }
    return best;
}

typedef struct Case {
    MtfLayoutProblem *problem;
    MtfCore *core;
    double *price;
    int values[MAX_NODES], others[MAX_NODES];
} Case;

static void draw(GRand *rand, Case *c) {
    c->problem = mtf_test_random_problem(rand);
    c->core = mtf_core_new(c->problem);
    c->price = g_new0(double, c->core->rows + 1);
    for (int r = 0; r < c->core->rows; r++)
        c->price[r] = g_rand_int_range(rand, 0, 3);
    for (int v = 0; v < c->core->node_count; v++) {
        c->values[v] = g_rand_int_range(rand, 0, c->core->nodes[v].values);
        c->others[v] = g_rand_int_range(rand, 0, c->core->nodes[v].values);
    }
}

static void clear(Case *c) {
    g_free(c->price);
    mtf_core_free(c->core);
    mtf_layout_problem_free(c->problem);
}

/* With tables as large as they come, repeated moves end at the optimum of cost and priced memory; with
 * small ones what is kept stands in the way, but nothing gets worse. */
TEST(moves_end_at_the_priced_optimum) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    int reached = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Case c;
        draw(rand, &c);
        double optimum = least(c.core, c.price, NULL, NULL),
               before = priced(c.core, c.price, c.values);
        for (int i = 0; i < 30; i++) {
            mtf_width_move(c.core, rand, c.price, round % 2 == 0 ? 1e9 : 12, NULL, c.values);
            double after = priced(c.core, c.price, c.values);
            assert_true(after <= before);
            before = after;
        }
        reached += before == optimum;
        assert_true(round % 2 == 1 || before == optimum);
        clear(&c);
    }
    assert_true(reached > ROUNDS * 3 / 4);
}

/* One move between two choices finds the best mixture, keeping no node that differs. */
TEST(two_choices_are_mixed_at_their_best) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    int mixed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Case c;
        draw(rand, &c);
        double best = least(c.core, c.price, c.values, c.others);
        double own = priced(c.core, c.price, c.values), other = priced(c.core, c.price, c.others);
        mtf_width_move(c.core, rand, c.price, 1e9, c.others, c.values);
        assert_true(priced(c.core, c.price, c.values) == best);
        mixed += best < own && best < other;
        clear(&c);
    }
    assert_true(mixed > ROUNDS / 10);
}
