// SPDX-License-Identifier: GPL-3.0-or-later
/* Layers by the thousand that share memory, so many entries that one round over all of them takes seconds:
 *
 *     a0 ── a1 ── a2 ── …        each value of a node takes less memory than the one before, and costs more
 *     │  ╲  │  ╲  │  ╲
 *     b0 ── b1 ── b2 ── …
 */
#include "tests/support/cmocka.h"

#include "analyzer/solver/search/layout_solve.h"

#define LAYERS 2800
#define VALUES 128
#define MOST_GAP 0.03

typedef struct {
    int64_t costs[VALUES], usages[VALUES];
    int64_t edge[VALUES * VALUES];
} Shape;

static Shape *shape_new(GRand *rand) {
    Shape *shape = g_new(Shape, 1);
    for (int s = 0; s < VALUES; s++) {
        shape->costs[s] = 10000 + 150 * s + g_rand_int_range(rand, 0, 2000);
        shape->usages[s] = 1000 + 20 * (VALUES - s) + g_rand_int_range(rand, 0, 200);
    }
    for (int i = 0; i < VALUES * VALUES; i++)
        shape->edge[i] = g_rand_int_range(rand, 0, 1000);
    return shape;
}

static void join(MtfLayoutProblem *problem, int from, int to, const Shape *shape) {
    assert_true(mtf_layout_problem_add_edge(
                    problem, (MtfLayoutEdge){ .from = from, .to = to, .costs = shape->edge }) >= 0);
}

static MtfLayoutProblem *ladder(guint32 seed) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autofree Shape *a = shape_new(rand), *b = shape_new(rand), *c = shape_new(rand);
    MtfLayoutProblem *problem = mtf_layout_problem_new("ladder");
    int64_t usage = 0;
    for (int i = 0; i < 2 * LAYERS; i++) {
        const Shape *shape = i % 2 == 0 ? a : b;
        MtfLayoutNode node = { 0, 1, VALUES, shape->costs, shape->usages };
        assert_int_equal(mtf_layout_problem_add_node(problem, node), i);
        usage += shape->usages[VALUES / 2];
        if (i % 2 == 1)
            join(problem, i - 1, i, a);
        if (i > 1)
            join(problem, i - 2, i, b);
        if (i > 1 && i % 2 == 1)
            join(problem, i - 3, i, c);
    }
    mtf_layout_problem_set_limit(problem, usage);
    return problem;
}

static void count(double cost, double bound, void *user) {
    assert_true(bound <= cost);
    ++*(int *)user;
}

/* Messages come to rest on a quotient of the layers; rounds over all of them would say no more. */
TEST(what_came_to_rest_on_the_quotient_is_told_once) {
    g_autoptr(MtfLayoutProblem) problem = ladder(3);
    int told = 0;
    MtfSearchListener listener = { .bound = count, .user = &told };
    MtfSearchControl control;
    mtf_search_control_init(&control, 0);
    control.listener = &listener;
    MtfSolveOptions options = { .control = &control, .work = 60, .threads = 1 };
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_non_null(solution);
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, solution->choice);
    assert_true(mtf_layout_problem_allows(problem, &value) && value.cost == solution->cost);
    assert_true(solution->bound > 0 && solution->gap < MOST_GAP);
    assert_int_equal(told, 1);
}
