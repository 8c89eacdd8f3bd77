// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/layout_problems.h"

#include <string.h>

#define MAX_NODES 7
#define MAX_STRATEGIES 4
#define MAX_CELLS (MAX_STRATEGIES * MAX_STRATEGIES)

static int64_t random_cost(GRand *rand, double impossible) {
    if (g_rand_double(rand) < impossible)
        return MTF_IMPOSSIBLE;
    return g_rand_int_range(rand, -3, g_rand_boolean(rand) ? 5 : 40);
}

static void add_random_node(MtfLayoutProblem *problem, GRand *rand, double impossible) {
    int64_t costs[MAX_STRATEGIES], usages[MAX_STRATEGIES];
    bool constant = g_rand_int_range(rand, 0, 4) == 0;
    MtfLayoutNode node = { .strategies = g_rand_int_range(rand, 1, MAX_STRATEGIES + 1),
                           .costs = costs,
                           .usages = usages };
    node.start = g_rand_int_range(rand, 0, 10);
    node.end = node.start + (g_rand_boolean(rand) ? g_rand_int_range(rand, 0, 8) : 0);
    for (int s = 0; s < node.strategies; s++) {
        costs[s] = random_cost(rand, impossible / 3);
        usages[s] = constant && s > 0 ? usages[0] : g_rand_int_range(rand, 0, 12);
    }
    mtf_layout_problem_add_node(problem, node);
}

/* A matrix of random costs, or (one in three) a follow edge: each row has one possible entry. */
static void add_random_edge(MtfLayoutProblem *problem, GRand *rand, double impossible) {
    int count = mtf_layout_problem_node_count(problem);
    int from = g_rand_int_range(rand, 0, count);
    int to = (from + g_rand_int_range(rand, 1, count)) % count;
    int rows = mtf_layout_problem_node(problem, from)->strategies;
    int columns = mtf_layout_problem_node(problem, to)->strategies;
    bool follows = g_rand_int_range(rand, 0, 3) == 0;
    int64_t costs[MAX_CELLS];
    for (int p = 0; p < rows; p++) {
        int only = g_rand_int_range(rand, 0, columns);
        for (int q = 0; q < columns; q++)
            costs[p * columns + q] =
                follows && q != only ? MTF_IMPOSSIBLE : random_cost(rand, impossible);
    }
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ from, to, costs });
}

MtfLayoutProblem *mtf_test_random_problem(GRand *rand) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("random");
    int nodes = g_rand_int_range(rand, 1, MAX_NODES + 1);
    double impossible = g_rand_boolean(rand) ? 0 : g_rand_double(rand) * 0.4;
    for (int v = 0; v < nodes; v++)
        add_random_node(problem, rand, impossible);
    int edges = nodes < 2 ? 0 : g_rand_int_range(rand, 0, 2 * nodes);
    for (int e = 0; e < edges; e++)
        add_random_edge(problem, rand, impossible);
    if (g_rand_int_range(rand, 0, 3) > 0)
        mtf_layout_problem_set_limit(problem, g_rand_int_range(rand, 0, 8 * nodes));
    return problem;
}

/* The next choice in counting order; false after the last. */
static bool next_choice(const MtfLayoutProblem *problem, int *choice) {
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        if (++choice[v] < mtf_layout_problem_node(problem, v)->strategies)
            return true;
        choice[v] = 0;
    }
    return false;
}

bool mtf_test_exhaustive_search(const MtfLayoutProblem *problem, MtfInt128 *cost, int *choice) {
    int at[MAX_NODES] = { 0 };
    bool found = false;
    do {
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, at);
        if (!mtf_layout_problem_allows(problem, &value) || (found && value.cost >= *cost))
            continue;
        found = true;
        *cost = value.cost;
        memcpy(choice, at, (gsize)mtf_layout_problem_node_count(problem) * sizeof *choice);
    } while (next_choice(problem, at));
    return found;
}

int64_t mtf_test_least_peak(const MtfLayoutProblem *problem) {
    int at[MAX_NODES] = { 0 };
    int64_t least = -1;
    do {
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, at);
        if (value.impossible == 0 && (least < 0 || value.peak < least))
            least = (int64_t)value.peak;
    } while (next_choice(problem, at));
    return least;
}
