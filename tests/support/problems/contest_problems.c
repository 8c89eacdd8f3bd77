// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/problems/contest_problems.h"

#define MAX_STRATEGIES 20
#define REACH 40 /* an edge goes to one of this many nodes before */

typedef struct {
    const MtfContestShape *shape;
    GRand *rand;
    MtfLayoutProblem *problem;
    int *choice;
} Draw;

static int64_t some_cost(Draw *draw) {
    return (int64_t)(g_rand_double(draw->rand) * (double)draw->shape->most_cost);
}

static int64_t some_entry(Draw *draw) {
    return g_rand_double(draw->rand) < draw->shape->impossible ? MTF_IMPOSSIBLE : some_cost(draw);
}

static int64_t some_usage(Draw *draw) {
    int kinds = draw->shape->usages;
    return kinds > 0 ? 1000 * g_rand_int_range(draw->rand, 1, kinds + 1)
                     : g_rand_int_range(draw->rand, 1, 1000000);
}

/* Dear strategies use less memory, mostly. The planted one uses least and is possible. */
static void draw_node(Draw *draw, int index, int strategies) {
    int64_t costs[MAX_STRATEGIES], usages[MAX_STRATEGIES];
    int planted = g_rand_int_range(draw->rand, 0, strategies);
    for (int s = 0; s < strategies; s++) {
        costs[s] = some_entry(draw);
        usages[s] = some_usage(draw);
        if (s > planted && usages[s] < usages[planted])
            usages[s] = usages[planted];
    }
    for (int s = 0; s < strategies; s++)
        usages[planted] = MIN(usages[planted], usages[s]);
    costs[planted] = some_cost(draw);
    draw->choice[index] = planted;
    int64_t start = g_rand_int_range(draw->rand, 0, (gint32)draw->shape->times);
    int64_t end = start + g_rand_int_range(draw->rand, 1, (gint32)draw->shape->life + 1);
    mtf_layout_problem_add_node(draw->problem, (MtfLayoutNode){ start, MIN(end, draw->shape->times),
                                                                strategies, costs, usages });
}

static int strategies_of(const Draw *draw, int node) {
    return mtf_layout_problem_node(draw->problem, node)->strategies;
}

/* The follower has as many strategies, in another order. */
static void draw_follow_edge(Draw *draw, int leader, int follower) {
    int n = strategies_of(draw, leader);
    int turn = (draw->choice[follower] - draw->choice[leader] + n) % n;
    int64_t matrix[MAX_STRATEGIES * MAX_STRATEGIES];
    for (int p = 0; p < n; p++)
        for (int q = 0; q < n; q++)
            matrix[p * n + q] = q == (p + turn) % n ? 0 : MTF_IMPOSSIBLE;
    mtf_layout_problem_add_edge(draw->problem, (MtfLayoutEdge){ leader, follower, matrix });
}

static void draw_edge(Draw *draw, int from, int to) {
    int rows = strategies_of(draw, from), columns = strategies_of(draw, to);
    int64_t matrix[MAX_STRATEGIES * MAX_STRATEGIES];
    for (int i = 0; i < rows * columns; i++)
        matrix[i] = g_rand_boolean(draw->rand) ? 0 : some_entry(draw);
    matrix[draw->choice[from] * columns + draw->choice[to]] = some_cost(draw);
    mtf_layout_problem_add_edge(draw->problem, (MtfLayoutEdge){ from, to, matrix });
}

static int some_node_before(Draw *draw, int index) {
    int back = g_rand_int_range(draw->rand, 1, REACH);
    return MAX(0, index - back);
}

static void draw_one(Draw *draw, int index) {
    int before = some_node_before(draw, index);
    bool follows = index > 0 && g_rand_double(draw->rand) < draw->shape->follows;
    draw_node(draw, index,
              follows ? strategies_of(draw, before)
                      : g_rand_int_range(draw->rand, 2, draw->shape->strategies + 1));
    if (follows)
        draw_follow_edge(draw, before, index);
    else if (index > 0)
        draw_edge(draw, before, index);
    if (index > 0 && !follows && g_rand_boolean(draw->rand))
        draw_edge(draw, some_node_before(draw, index), index);
}

MtfLayoutProblem *mtf_test_contest_problem(const MtfContestShape *shape, GRand *rand, int *choice) {
    Draw draw = { shape, rand, mtf_layout_problem_new("contest"), choice };
    for (int v = 0; v < shape->nodes; v++)
        draw_one(&draw, v);
    MtfLayoutValue value = mtf_layout_problem_evaluate(draw.problem, choice);
    g_assert(value.impossible == 0);
    if (shape->slack > 0)
        mtf_layout_problem_set_limit(draw.problem, (int64_t)((double)value.peak * shape->slack));
    return draw.problem;
}
