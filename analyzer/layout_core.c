// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_core.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_TOTAL ((MtfInt128)1 << 60)

/* One step back. KEPT: values of `node` were renumbered, map[new] = old. CONTRACTED: `node` follows
 * neighbour a, map[value of a] = its value. ELIMINATED: map[value of a * width + value of b] = its
 * value, with a or both neighbours -1 when there are fewer. */
typedef struct Step {
    enum { STEP_KEPT, STEP_CONTRACTED, STEP_ELIMINATED } kind;
    int node, a, b, width;
    int count; /* of map */
    int16_t *map;
} Step;

MtfCoreEdge *mtf_core_edge(const MtfCore *core, int edge) {
    return &g_array_index(core->edges, MtfCoreEdge, edge);
}

int mtf_core_other_end(const MtfCoreEdge *edge, int node) {
    return edge->a == node ? edge->b : edge->a;
}

int64_t mtf_core_edge_cost(const MtfCore *core, const MtfCoreEdge *edge, int node, int p, int q) {
    gsize width = (gsize)core->nodes[edge->b].values;
    return edge->a == node ? edge->cost[(gsize)p * width + (gsize)q]
                           : edge->cost[(gsize)q * width + (gsize)p];
}

int64_t mtf_core_add(int64_t a, int64_t b) {
    if (a >= MTF_CORE_IMPOSSIBLE || b >= MTF_CORE_IMPOSSIBLE)
        return MTF_CORE_IMPOSSIBLE;
    return a + b;
}

static int edge_id_at(const MtfCoreNode *node, guint k) {
    return g_array_index(node->edges, int, k);
}

int mtf_core_find_edge(const MtfCore *core, int u, int v) {
    if (core->nodes[u].edges->len > core->nodes[v].edges->len) {
        int swap = u;
        u = v;
        v = swap;
    }
    const MtfCoreNode *node = &core->nodes[u];
    for (guint k = 0; k < node->edges->len; k++) {
        int e = edge_id_at(node, k);
        if (mtf_core_other_end(mtf_core_edge(core, e), u) == v)
            return e;
    }
    return -1;
}

/* Adds a matrix [values of u][values of v], which it takes over, to the edge between u and v. */
static void add_matrix(MtfCore *core, int u, int v, int64_t *matrix) {
    int e = mtf_core_find_edge(core, u, v);
    if (e < 0) {
        MtfCoreEdge edge = { u, v, matrix };
        int index = (int)core->edges->len;
        g_array_append_val(core->edges, edge);
        g_array_append_val(core->nodes[u].edges, index);
        g_array_append_val(core->nodes[v].edges, index);
        return;
    }
    MtfCoreEdge *edge = mtf_core_edge(core, e);
    int rows = core->nodes[edge->a].values, columns = core->nodes[edge->b].values;
    for (int p = 0; p < rows; p++)
        for (int q = 0; q < columns; q++) {
            int64_t *cell = &edge->cost[(gsize)p * (gsize)columns + (gsize)q];
            gsize other = edge->a == u ? (gsize)p * (gsize)columns + (gsize)q
                                       : (gsize)q * (gsize)rows + (gsize)p;
            *cell = mtf_core_add(*cell, matrix[other]);
        }
    g_free(matrix);
}

static void forget_edge(MtfCoreNode *node, int edge) {
    for (guint k = 0; k < node->edges->len; k++) {
        if (edge_id_at(node, k) != edge)
            continue;
        g_array_remove_index_fast(node->edges, k);
        return;
    }
}

static void remove_edge(MtfCore *core, int index) {
    MtfCoreEdge *edge = mtf_core_edge(core, index);
    forget_edge(&core->nodes[edge->a], index);
    forget_edge(&core->nodes[edge->b], index);
    g_clear_pointer(&edge->cost, g_free);
    edge->a = edge->b = -1;
}

static void free_pieces(GArray *pieces) {
    for (guint k = 0; k < pieces->len; k++)
        g_free(g_array_index(pieces, MtfCorePiece, k).usage);
    g_array_set_size(pieces, 0);
}

static void kill_node(MtfCore *core, int index) {
    MtfCoreNode *node = &core->nodes[index];
    while (node->edges->len > 0)
        remove_edge(core, edge_id_at(node, node->edges->len - 1));
    free_pieces(node->pieces);
    g_clear_pointer(&node->cost, g_free);
    node->alive = false;
}

/* ---- making the core ---- */

/* The shift that brings a sum of sizes below 2^60. */
static int shift_for(MtfInt128 total) {
    int shift = 0;
    while ((total >> shift) >= LARGEST_TOTAL)
        shift++;
    return shift;
}

static MtfInt128 largest_possible(const int64_t *costs, gsize count) {
    int64_t largest = 0;
    for (gsize i = 0; i < count; i++)
        if (costs[i] < MTF_IMPOSSIBLE)
            largest = MAX(largest, ABS(costs[i]));
    return largest;
}

static gsize matrix_size(const MtfLayoutProblem *problem, const MtfLayoutEdge *edge) {
    return (gsize)mtf_layout_problem_node(problem, edge->from)->strategies *
           (gsize)mtf_layout_problem_node(problem, edge->to)->strategies;
}

static void choose_shifts(MtfCore *core, const MtfLayoutProblem *problem) {
    MtfInt128 costs = 0, usages = 0;
    for (int v = 0; v < core->node_count; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        costs += largest_possible(node->costs, (gsize)node->strategies);
        usages += largest_possible(node->usages, (gsize)node->strategies);
    }
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        costs += largest_possible(edge->costs, matrix_size(problem, edge));
    }
    core->cost_shift = shift_for(costs);
    core->usage_shift = shift_for(usages);
}

/* Divides by 2^shift, rounding down. */
static int64_t shifted(int64_t value, int shift) {
    int64_t unit = INT64_C(1) << shift;
    int64_t quotient = value / unit;
    return quotient - (value % unit < 0);
}

static int64_t *take_costs(const int64_t *costs, gsize count, int shift) {
    int64_t *copy = g_new(int64_t, count);
    for (gsize i = 0; i < count; i++)
        copy[i] = costs[i] >= MTF_IMPOSSIBLE ? MTF_CORE_IMPOSSIBLE : shifted(costs[i], shift);
    return copy;
}

static void add_node(MtfCore *core, int index, const MtfLayoutNode *from) {
    core->nodes[index] = (MtfCoreNode){
        .alive = true,
        .values = from->strategies,
        .cost = take_costs(from->costs, (gsize)from->strategies, core->cost_shift),
        .pieces = g_array_new(FALSE, FALSE, sizeof(MtfCorePiece)),
        .edges = g_array_new(FALSE, FALSE, sizeof(int)),
    };
}

static void add_edge(MtfCore *core, const MtfLayoutProblem *problem, const MtfLayoutEdge *from) {
    gsize size = matrix_size(problem, from);
    add_matrix(core, from->from, from->to, take_costs(from->costs, size, core->cost_shift));
}

/* An interval begins (+1) or ends (-1). */
typedef struct Border {
    int64_t time;
    int change;
} Border;

static int compare_borders(const void *left, const void *right) {
    const Border *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->change - b->change;
}

static bool uses_memory(const MtfLayoutNode *node) {
    return node->start < node->end && largest_possible(node->usages, (gsize)node->strategies) > 0;
}

/* A clique is maximal where a begin is followed by an end. Fills row_time in increasing order. */
static void find_rows(MtfCore *core, const MtfLayoutProblem *problem) {
    g_autofree Border *borders = g_new(Border, 2 * (gsize)core->node_count + 1);
    gsize count = 0;
    for (int v = 0; v < core->node_count; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        if (!uses_memory(node))
            continue;
        borders[count++] = (Border){ node->start, 1 };
        borders[count++] = (Border){ node->end, -1 };
    }
    qsort(borders, count, sizeof *borders, compare_borders);
    core->row_time = g_new(int64_t, count + 1);
    for (gsize i = 0; i + 1 < count; i++)
        if (borders[i].change > 0 && borders[i + 1].change < 0)
            core->row_time[core->rows++] = borders[i].time;
    core->room = g_new(int64_t, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        core->room[r] = mtf_layout_problem_limit(problem) >> core->usage_shift;
}

/* The first row whose time is at least `time`. */
static int row_at_time(const MtfCore *core, int64_t time) {
    int low = 0, high = core->rows;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (core->row_time[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_pieces(MtfCore *core, const MtfLayoutProblem *problem) {
    for (int v = 0; v < core->node_count; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        if (!uses_memory(node))
            continue;
        MtfCorePiece piece = { row_at_time(core, node->start), row_at_time(core, node->end), NULL };
        piece.usage = g_new(int64_t, node->strategies);
        for (int s = 0; s < node->strategies; s++)
            piece.usage[s] = node->usages[s] >> core->usage_shift;
        g_array_append_val(core->nodes[v].pieces, piece);
    }
}

MtfCore *mtf_core_new(const MtfLayoutProblem *problem) {
    MtfCore *core = g_new0(MtfCore, 1);
    core->node_count = mtf_layout_problem_node_count(problem);
    core->nodes = g_new0(MtfCoreNode, core->node_count + 1);
    core->edges = g_array_new(FALSE, FALSE, sizeof(MtfCoreEdge));
    core->trail = g_array_new(FALSE, FALSE, sizeof(Step));
    choose_shifts(core, problem);
    for (int v = 0; v < core->node_count; v++)
        add_node(core, v, mtf_layout_problem_node(problem, v));
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++)
        add_edge(core, problem, mtf_layout_problem_edge(problem, e));
    if (mtf_layout_problem_limit(problem) != MTF_NO_LIMIT) {
        find_rows(core, problem);
        add_pieces(core, problem);
    }
    return core;
}

void mtf_core_free(MtfCore *core) {
    if (core == NULL)
        return;
    for (int v = 0; v < core->node_count; v++) {
        free_pieces(core->nodes[v].pieces);
        g_array_unref(core->nodes[v].pieces);
        g_array_unref(core->nodes[v].edges);
        g_free(core->nodes[v].cost);
    }
    for (guint e = 0; e < core->edges->len; e++)
        g_free(mtf_core_edge(core, (int)e)->cost);
    for (guint i = 0; i < core->trail->len; i++)
        g_free(g_array_index(core->trail, Step, i).map);
    g_array_unref(core->edges);
    g_array_unref(core->trail);
    g_free(core->nodes);
    g_free(core->room);
    g_free(core->row_time);
    g_free(core);
}

/* ---- the steps ---- */

/* Rebuilds the matrix of an edge for new values of `node`: row p of it is old row from[p]. */
static void reindex_matrix(const MtfCore *core, MtfCoreEdge *edge, int node, const int *from,
                           int count) {
    int other = core->nodes[mtf_core_other_end(edge, node)].values;
    int64_t *matrix = g_new(int64_t, (gsize)count * (gsize)other);
    for (int p = 0; p < count; p++)
        for (int q = 0; q < other; q++) {
            gsize at = edge->a == node ? (gsize)p * (gsize)other + (gsize)q
                                       : (gsize)q * (gsize)count + (gsize)p;
            matrix[at] = mtf_core_edge_cost(core, edge, node, from[p], q);
        }
    g_free(edge->cost);
    edge->cost = matrix;
}

static int64_t *reindexed(const int64_t *old, const int *from, int count) {
    int64_t *list = g_new(int64_t, count);
    for (int p = 0; p < count; p++)
        list[p] = old[from[p]];
    return list;
}

static int16_t *narrowed(const int *map, int count) {
    int16_t *narrow = g_new(int16_t, count);
    for (int i = 0; i < count; i++)
        narrow[i] = (int16_t)map[i];
    return narrow;
}

static void renumber_values(MtfCore *core, int index, const int *from, int count) {
    MtfCoreNode *node = &core->nodes[index];
    for (guint k = 0; k < node->edges->len; k++)
        reindex_matrix(core, mtf_core_edge(core, edge_id_at(node, k)), index, from, count);
    int64_t *cost = reindexed(node->cost, from, count);
    g_free(node->cost);
    node->cost = cost;
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        int64_t *usage = reindexed(piece->usage, from, count);
        g_free(piece->usage);
        piece->usage = usage;
    }
    Step step = { STEP_KEPT, index, -1, -1, 0, count, narrowed(from, count) };
    g_array_append_val(core->trail, step);
    node->values = count;
}

void mtf_core_keep_values(MtfCore *core, int node, const bool *keep) {
    g_autofree int *from = g_new(int, core->nodes[node].values);
    int count = 0;
    for (int p = 0; p < core->nodes[node].values; p++)
        if (keep[p])
            from[count++] = p;
    if (count == 0)
        core->infeasible = true;
    else if (count < core->nodes[node].values)
        renumber_values(core, node, from, count);
}

/* Adds a piece to a node, into the piece of the same rows when there is one. Takes `usage`. */
static void add_piece(MtfCoreNode *node, int first, int last, int64_t *usage) {
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->first != first || piece->last != last)
            continue;
        for (int p = 0; p < node->values; p++)
            piece->usage[p] += usage[p];
        g_free(usage);
        return;
    }
    MtfCorePiece piece = { first, last, usage };
    g_array_append_val(node->pieces, piece);
}

/* The follower's matrix with `other`, seen from the leader: row p is the follower's row map[p]. */
static int64_t *moved_matrix(const MtfCore *core, const MtfCoreEdge *edge, int follower,
                             const int *map, int count) {
    int columns = core->nodes[mtf_core_other_end(edge, follower)].values;
    int64_t *matrix = g_new(int64_t, (gsize)count * (gsize)columns);
    for (int p = 0; p < count; p++)
        for (int q = 0; q < columns; q++)
            matrix[(gsize)p * (gsize)columns + (gsize)q] =
                mtf_core_edge_cost(core, edge, follower, map[p], q);
    return matrix;
}

/* Moves the costs of one edge of the follower to the leader and removes the edge. */
static void move_edge(MtfCore *core, int leader, int follower, int index, const int *map) {
    MtfCoreEdge *edge = mtf_core_edge(core, index);
    int other = mtf_core_other_end(edge, follower);
    MtfCoreNode *node = &core->nodes[leader];
    if (other == leader) {
        for (int p = 0; p < node->values; p++)
            node->cost[p] =
                mtf_core_add(node->cost[p], mtf_core_edge_cost(core, edge, leader, p, map[p]));
        remove_edge(core, index);
        return;
    }
    int64_t *matrix = moved_matrix(core, edge, follower, map, node->values);
    remove_edge(core, index);
    add_matrix(core, leader, other, matrix);
}

void mtf_core_contract(MtfCore *core, int leader, int follower, const int *map) {
    MtfCoreNode *into = &core->nodes[leader], *node = &core->nodes[follower];
    for (int p = 0; p < into->values; p++)
        into->cost[p] = mtf_core_add(into->cost[p], node->cost[map[p]]);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        add_piece(into, piece->first, piece->last, reindexed(piece->usage, map, into->values));
    }
    while (node->edges->len > 0)
        move_edge(core, leader, follower, edge_id_at(node, node->edges->len - 1), map);
    Step step = {
        STEP_CONTRACTED, follower, leader, -1, 0, into->values, narrowed(map, into->values)
    };
    g_array_append_val(core->trail, step);
    kill_node(core, follower);
}

/* The best value of `node` when its edges (NULL when it has fewer than two) end at the given
 * values, and its cost. */
static int best_value(const MtfCore *core, int node, const MtfCoreEdge *const edges[2],
                      const int ends[2], int64_t *least) {
    int best = 0;
    *least = MTF_CORE_IMPOSSIBLE;
    for (int s = 0; s < core->nodes[node].values; s++) {
        int64_t cost = core->nodes[node].cost[s];
        for (int e = 0; e < 2; e++)
            if (edges[e] != NULL)
                cost = mtf_core_add(cost, mtf_core_edge_cost(core, edges[e], node, s, ends[e]));
        if (cost >= *least)
            continue;
        *least = cost;
        best = s;
    }
    return best;
}

/* Folds the table of a node's best costs into what is left of its neighbourhood. */
static void fold_table(MtfCore *core, int a, int b, int64_t *table) {
    if (b >= 0) {
        add_matrix(core, a, b, table);
        return;
    }
    if (a < 0)
        core->constant += table[0];
    for (int p = 0; a >= 0 && p < core->nodes[a].values; p++)
        core->nodes[a].cost[p] = mtf_core_add(core->nodes[a].cost[p], table[p]);
    g_free(table);
}

void mtf_core_eliminate(MtfCore *core, int index) {
    MtfCoreNode *node = &core->nodes[index];
    g_assert(node->pieces->len == 0 && node->edges->len <= 2);
    guint degree = node->edges->len;
    const MtfCoreEdge *const edges[2] = {
        degree > 0 ? mtf_core_edge(core, edge_id_at(node, 0)) : NULL,
        degree > 1 ? mtf_core_edge(core, edge_id_at(node, 1)) : NULL,
    };
    int a = edges[0] != NULL ? mtf_core_other_end(edges[0], index) : -1;
    int b = edges[1] != NULL ? mtf_core_other_end(edges[1], index) : -1;
    int height = a >= 0 ? core->nodes[a].values : 1, width = b >= 0 ? core->nodes[b].values : 1;
    Step step = { STEP_ELIMINATED, index, a, b, width, height * width, NULL };
    step.map = g_new(int16_t, step.count);
    int64_t *table = g_new(int64_t, step.count);
    for (int p = 0; p < height; p++)
        for (int q = 0; q < width; q++)
            step.map[p * width + q] =
                (int16_t)best_value(core, index, edges, (int[2]){ p, q }, &table[p * width + q]);
    if (a < 0 && table[0] >= MTF_CORE_IMPOSSIBLE) {
        core->infeasible = true;
        table[0] = 0;
    }
    g_array_append_val(core->trail, step);
    kill_node(core, index);
    fold_table(core, a, b, table);
}

/* ---- forth and back ---- */

static void lift_step(const Step *step, int *choice) {
    switch (step->kind) {
    case STEP_KEPT:
        choice[step->node] = step->map[choice[step->node]];
        break;
    case STEP_CONTRACTED:
        choice[step->node] = step->map[choice[step->a]];
        break;
    case STEP_ELIMINATED: {
        int p = step->a >= 0 ? choice[step->a] : 0, q = step->b >= 0 ? choice[step->b] : 0;
        choice[step->node] = step->map[p * step->width + q];
        break;
    }
    }
}

void mtf_core_lift(const MtfCore *core, const int *values, int *choice) {
    if (choice != values)
        memcpy(choice, values, (gsize)core->node_count * sizeof *choice);
    for (guint i = core->trail->len; i > 0; i--)
        lift_step(&g_array_index(core->trail, Step, i - 1), choice);
}

bool mtf_core_project(const MtfCore *core, const int *choice, int *values) {
    memcpy(values, choice, (gsize)core->node_count * sizeof *choice);
    for (guint i = 0; i < core->trail->len; i++) {
        const Step *step = &g_array_index(core->trail, Step, i);
        if (step->kind == STEP_CONTRACTED && values[step->node] != step->map[values[step->a]])
            return false;
        if (step->kind != STEP_KEPT)
            continue;
        int at = 0;
        while (at < step->count && step->map[at] != values[step->node])
            at++;
        if (at == step->count)
            return false;
        values[step->node] = at;
    }
    return true;
}

int64_t mtf_core_cost(const MtfCore *core, const int *values) {
    int64_t sum = core->constant;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            sum = mtf_core_add(sum, core->nodes[v].cost[values[v]]);
    for (guint e = 0; e < core->edges->len; e++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
        if (edge->a >= 0)
            sum = mtf_core_add(
                sum, mtf_core_edge_cost(core, edge, edge->a, values[edge->a], values[edge->b]));
    }
    return sum;
}

void mtf_core_use(const MtfCore *core, const int *values, int64_t *use) {
    g_autofree int64_t *change = g_new0(int64_t, core->rows + 1);
    for (int v = 0; v < core->node_count; v++) {
        const MtfCoreNode *node = &core->nodes[v];
        for (guint k = 0; node->alive && k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            change[piece->first] += piece->usage[values[v]];
            change[piece->last] -= piece->usage[values[v]];
        }
    }
    int64_t sum = 0;
    for (int r = 0; r < core->rows; r++) {
        sum += change[r];
        use[r] = sum;
    }
}

bool mtf_core_allows(const MtfCore *core, const int *values) {
    g_autofree int64_t *use = g_new(int64_t, core->rows + 1);
    mtf_core_use(core, values, use);
    for (int r = 0; r < core->rows; r++)
        if (use[r] > core->room[r])
            return false;
    return mtf_core_cost(core, values) < MTF_CORE_IMPOSSIBLE;
}

MtfCoreSize mtf_core_size(const MtfCore *core) {
    MtfCoreSize size = { 0 };
    for (int v = 0; v < core->node_count; v++) {
        if (!core->nodes[v].alive)
            continue;
        size.nodes++;
        size.values += core->nodes[v].values;
    }
    for (guint e = 0; e < core->edges->len; e++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, (int)e);
        if (edge->a < 0)
            continue;
        size.edges++;
        size.entries += (int64_t)core->nodes[edge->a].values * core->nodes[edge->b].values;
    }
    return size;
}
