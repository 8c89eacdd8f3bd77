// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/forest_move.h"

#include <math.h>

#define NOT_CHOSEN (-1)

typedef struct Forest {
    const MtfCore *core;
    const double *prefix; /* [rows + 1] sums of prices before a row */
    int *values;
    int *tree;      /* [node] union-find parent; NOT_CHOSEN outside the forest */
    int *order;     /* chosen nodes, parents before children */
    int *up_edge;   /* [node] the edge to its parent, or -1 */
    bool *reached;  /* [node] */
    double **costs; /* [node][value] beside the rest and best below */
    int **best;     /* [node][value of its parent] its best value */
    int count;
} Forest;

static int find_tree(int *tree, int v) {
    while (tree[v] != v) {
        tree[v] = tree[tree[v]];
        v = tree[v];
    }
    return v;
}

static const MtfCoreEdge *edge_of(const MtfCore *core, int node, guint k) {
    return mtf_core_edge(core, g_array_index(core->nodes[node].edges, int, k));
}

/* Chooses the node unless it would close a cycle: two neighbours in one tree. */
static void choose_node(Forest *forest, int node) {
    const MtfCore *core = forest->core;
    guint degree = core->nodes[node].edges->len;
    g_autofree int *roots = g_new(int, degree + 1);
    guint count = 0;
    for (guint k = 0; k < degree; k++) {
        int other = mtf_core_other_end(edge_of(core, node, k), node);
        if (forest->tree[other] == NOT_CHOSEN)
            continue;
        int root = find_tree(forest->tree, other);
        for (guint i = 0; i < count; i++)
            if (roots[i] == root)
                return;
        roots[count++] = root;
    }
    forest->tree[node] = node;
    for (guint i = 0; i < count; i++)
        forest->tree[roots[i]] = node;
}

static void choose_nodes(Forest *forest, GRand *rand) {
    const MtfCore *core = forest->core;
    g_autofree int *nodes = g_new(int, core->node_count + 1);
    int count = 0;
    for (int v = 0; v < core->node_count; v++) {
        forest->tree[v] = NOT_CHOSEN;
        if (core->nodes[v].alive)
            nodes[count++] = v;
    }
    for (int i = count - 1; i > 0; i--) {
        int j = g_rand_int_range(rand, 0, i + 1), swap = nodes[i];
        nodes[i] = nodes[j];
        nodes[j] = swap;
    }
    for (int i = 0; i < count; i++)
        choose_node(forest, nodes[i]);
}

/* Appends the chosen neighbours of a node that are not reached yet, with their edge up. */
static void reach_below(Forest *forest, int node) {
    const MtfCore *core = forest->core;
    for (guint k = 0; k < core->nodes[node].edges->len; k++) {
        int e = g_array_index(core->nodes[node].edges, int, k);
        int other = mtf_core_other_end(mtf_core_edge(core, e), node);
        if (forest->tree[other] == NOT_CHOSEN || forest->reached[other])
            continue;
        forest->reached[other] = true;
        forest->up_edge[other] = e;
        forest->order[forest->count++] = other;
    }
}

static void order_nodes(Forest *forest) {
    for (int root = 0; root < forest->core->node_count; root++) {
        if (forest->tree[root] == NOT_CHOSEN || forest->reached[root])
            continue;
        int at = forest->count;
        forest->reached[root] = true;
        forest->up_edge[root] = -1;
        forest->order[forest->count++] = root;
        for (; at < forest->count; at++)
            reach_below(forest, forest->order[at]);
    }
}

static double as_double(int64_t cost) {
    return cost >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)cost;
}

/* Own cost, priced memory, and edges to nodes outside the forest. */
static void start_costs(Forest *forest, int index) {
    const MtfCore *core = forest->core;
    const MtfCoreNode *node = &core->nodes[index];
    double *costs = forest->costs[index];
    for (int p = 0; p < node->values; p++)
        costs[p] = as_double(node->cost[p]);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        double price = forest->prefix[piece->last] - forest->prefix[piece->first];
        for (int p = 0; price > 0 && p < node->values; p++)
            costs[p] += price * (double)piece->usage[p];
    }
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = edge_of(core, index, k);
        int other = mtf_core_other_end(edge, index);
        for (int p = 0; forest->tree[other] == NOT_CHOSEN && p < node->values; p++)
            costs[p] += as_double(mtf_core_edge_cost(core, edge, index, p, forest->values[other]));
    }
}

/* Adds to the parent's costs what the node's best value costs beside each of the parent's. */
static void send_up(Forest *forest, int index) {
    const MtfCore *core = forest->core;
    const MtfCoreEdge *edge = mtf_core_edge(core, forest->up_edge[index]);
    int parent = mtf_core_other_end(edge, index);
    int *best = forest->best[index] = g_new0(int, core->nodes[parent].values);
    for (int q = 0; q < core->nodes[parent].values; q++) {
        double least = INFINITY;
        for (int p = 0; p < core->nodes[index].values; p++) {
            double cost =
                forest->costs[index][p] + as_double(mtf_core_edge_cost(core, edge, index, p, q));
            if (cost >= least)
                continue;
            least = cost;
            best[q] = p;
        }
        forest->costs[parent][q] += least;
    }
}

static void take_values(Forest *forest, int index) {
    if (forest->up_edge[index] >= 0) {
        const MtfCoreEdge *edge = mtf_core_edge(forest->core, forest->up_edge[index]);
        int parent = mtf_core_other_end(edge, index);
        forest->values[index] = forest->best[index][forest->values[parent]];
        return;
    }
    const double *costs = forest->costs[index];
    int best = forest->values[index];
    for (int p = 0; p < forest->core->nodes[index].values; p++)
        if (costs[p] < costs[best])
            best = p;
    forest->values[index] = best;
}

static void solve_trees(Forest *forest) {
    for (int i = 0; i < forest->count; i++) {
        int v = forest->order[i];
        forest->costs[v] = g_new(double, forest->core->nodes[v].values);
        start_costs(forest, v);
    }
    for (int i = forest->count - 1; i >= 0; i--)
        if (forest->up_edge[forest->order[i]] >= 0)
            send_up(forest, forest->order[i]);
    for (int i = 0; i < forest->count; i++)
        take_values(forest, forest->order[i]);
}

void mtf_forest_move(const MtfCore *core, GRand *rand, const double *price, int *values) {
    gsize count = (gsize)core->node_count + 1;
    g_autofree double *prefix = g_new0(double, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        prefix[r + 1] = prefix[r] + price[r];
    g_autofree int *tree = g_new(int, count), *order = g_new(int, count);
    g_autofree int *up_edge = g_new(int, count);
    g_autofree bool *reached = g_new0(bool, count);
    g_autofree double **costs = g_new0(double *, count);
    g_autofree int **best = g_new0(int *, count);
    Forest forest = { core, prefix, values, tree, order, up_edge, reached, costs, best, 0 };
    choose_nodes(&forest, rand);
    order_nodes(&forest);
    solve_trees(&forest);
    for (int v = 0; v < core->node_count; v++) {
        g_free(costs[v]);
        g_free(best[v]);
    }
}
