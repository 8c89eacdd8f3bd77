// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/problems/layout_problems.h"

#include <string.h>

#define MAX_NODES 7
#define MOST_NODES 12 /* of a problem that is searched exhaustively */
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

/* The costs times `factor` and a little more; to be freed. */
static int64_t *magnified(const int64_t *costs, gsize count, GRand *rand, int64_t factor,
                          int spread) {
    int64_t *list = g_new(int64_t, count);
    for (gsize i = 0; i < count; i++)
        list[i] = costs[i] >= MTF_IMPOSSIBLE
                      ? MTF_IMPOSSIBLE
                      : costs[i] * factor + g_rand_int_range(rand, 0, spread + 1);
    return list;
}

MtfLayoutProblem *mtf_test_magnified_problem(GRand *rand, int64_t factor, int spread) {
    g_autoptr(MtfLayoutProblem) small = mtf_test_random_problem(rand);
    MtfLayoutProblem *problem = mtf_layout_problem_new("magnified");
    for (int v = 0; v < mtf_layout_problem_node_count(small); v++) {
        MtfLayoutNode node = *mtf_layout_problem_node(small, v);
        g_autofree int64_t *costs =
            magnified(node.costs, (gsize)node.strategies, rand, factor, spread);
        node.costs = costs;
        mtf_layout_problem_add_node(problem, node);
    }
    for (int e = 0; e < mtf_layout_problem_edge_count(small); e++) {
        MtfLayoutEdge edge = *mtf_layout_problem_edge(small, e);
        gsize count = (gsize)mtf_layout_problem_node(small, edge.from)->strategies *
                      (gsize)mtf_layout_problem_node(small, edge.to)->strategies;
        g_autofree int64_t *costs = magnified(edge.costs, count, rand, factor, spread);
        edge.costs = costs;
        mtf_layout_problem_add_edge(problem, edge);
    }
    mtf_layout_problem_set_limit(problem, mtf_layout_problem_limit(small));
    return problem;
}

/* ---- repeated cells ---- */

#define CELL_STRATEGIES 3

typedef struct Cell {
    int nodes, strategies;
    int64_t costs[2][CELL_STRATEGIES], usages[2][CELL_STRATEGIES];
    int lives[2]; /* 0 in its cell, 1 to the mirror, 2 always */
    int64_t matrices[3][CELL_STRATEGIES * CELL_STRATEGIES]; /* inside, to the next, over one */
    bool skips;
} Cell;

static Cell random_cell(GRand *rand, double impossible) {
    Cell cell = { .nodes = g_rand_int_range(rand, 1, 3),
                  .strategies = g_rand_int_range(rand, 2, CELL_STRATEGIES + 1),
                  .skips = g_rand_int_range(rand, 0, 3) == 0 };
    for (int n = 0; n < 2; n++) {
        cell.lives[n] = g_rand_int_range(rand, 0, 3);
        for (int s = 0; s < CELL_STRATEGIES; s++) {
            cell.costs[n][s] = random_cost(rand, 0);
            cell.usages[n][s] = g_rand_int_range(rand, 0, 12);
        }
    }
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < CELL_STRATEGIES * CELL_STRATEGIES; i++)
            cell.matrices[m][i] = random_cost(rand, impossible);
    return cell;
}

static void add_cell(MtfLayoutProblem *problem, const Cell *cell, int index, int cells) {
    int first = mtf_layout_problem_node_count(problem);
    for (int n = 0; n < cell->nodes; n++) {
        int64_t start = cell->lives[n] == 2 ? 0 : index;
        int64_t end = cell->lives[n] == 0 ? index + 1 : 2 * cells - start;
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ start, end, cell->strategies,
                                                              cell->costs[n], cell->usages[n] });
    }
    int last = first + cell->nodes - 1;
    if (cell->nodes == 2)
        mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ first, last, cell->matrices[0] });
    if (index > 0)
        mtf_layout_problem_add_edge(problem,
                                    (MtfLayoutEdge){ first - 1, first, cell->matrices[1] });
    if (index > 1 && cell->skips)
        mtf_layout_problem_add_edge(
            problem, (MtfLayoutEdge){ first - 2 * cell->nodes, last, cell->matrices[2] });
}

/* A node of its own beside `other`. */
static void add_end(MtfLayoutProblem *problem, GRand *rand, int other) {
    add_random_node(problem, rand, 0);
    int node = mtf_layout_problem_node_count(problem) - 1;
    int64_t costs[MAX_CELLS];
    for (int i = 0; i < MAX_CELLS; i++)
        costs[i] = random_cost(rand, 0.1);
    mtf_layout_problem_add_edge(problem, (MtfLayoutEdge){ node, other, costs });
}

MtfLayoutProblem *mtf_test_repeated_problem(GRand *rand) {
    MtfLayoutProblem *problem = mtf_layout_problem_new("repeated");
    Cell cell = random_cell(rand, g_rand_boolean(rand) ? 0 : g_rand_double(rand) * 0.3);
    int cells = g_rand_int_range(rand, 1, 6 / cell.nodes + 1);
    for (int c = 0; c < cells; c++)
        add_cell(problem, &cell, c, cells);
    if (g_rand_boolean(rand))
        add_end(problem, rand, 0);
    if (g_rand_boolean(rand))
        add_end(problem, rand, cell.nodes * cells - 1);
    if (g_rand_int_range(rand, 0, 3) > 0)
        mtf_layout_problem_set_limit(problem, g_rand_int_range(rand, 0, 9 * cell.nodes * cells));
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
    int at[MOST_NODES] = { 0 };
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
    int at[MOST_NODES] = { 0 };
    int64_t least = -1;
    do {
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, at);
        if (value.impossible == 0 && (least < 0 || value.peak < least))
            least = (int64_t)value.peak;
    } while (next_choice(problem, at));
    return least;
}
