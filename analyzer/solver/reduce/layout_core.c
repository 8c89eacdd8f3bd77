// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/layout_core.h"

#include "analyzer/solver/reduce/core_certificate.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_TOTAL ((MtfInt128)1 << 60)

/* One step back. KEPT: values of `node` were renumbered, map[new] = old. CONTRACTED: `node` follows
 * neighbour a, map[value of a] = its value. ELIMINATED: map[value of a * width + value of b] = its
 * value, with a or both neighbours -1 when there are fewer. */
typedef struct TrailRecord {
    enum { TRAIL_KEPT, TRAIL_CONTRACTED, TRAIL_ELIMINATED } kind;
    int node, a, b, width;
    int count;          /* of map */
    const int16_t *map; /* a shared block */
} TrailRecord;

MtfCoreEdge *mtf_core_edge(const MtfCore *core, int edge) {
    return &g_array_index(core->edges, MtfCoreEdge, edge);
}

bool mtf_core_next_edge(const MtfCore *core, int *edge) {
    int count = (int)core->edges->len;
    for (++*edge; *edge < count; ++*edge)
        if (mtf_core_edge(core, *edge)->a >= 0)
            return true;
    return false;
}

gsize mtf_core_edge_entries(const MtfCore *core, const MtfCoreEdge *edge) {
    return (gsize)core->nodes[edge->a].values * (gsize)core->nodes[edge->b].values;
}

int mtf_core_other_end(const MtfCoreEdge *edge, int node) {
    return edge->a == node ? edge->b : edge->a;
}

int64_t mtf_core_edge_cost(const MtfCore *core, const MtfCoreEdge *edge, int node, int p, int q) {
    gsize width = (gsize)core->nodes[edge->b].values;
    return edge->a == node ? edge->cost[(gsize)p * width + (gsize)q]
                           : edge->cost[(gsize)q * width + (gsize)p];
}

MtfCoreView mtf_core_view(const MtfCore *core, const MtfCoreEdge *edge, int node) {
    int other = mtf_core_other_end(edge, node);
    gsize width = (gsize)core->nodes[edge->b].values;
    bool first = edge->a == node;
    return (MtfCoreView){ .costs = edge->cost,
                          .rows = core->nodes[node].values,
                          .columns = core->nodes[other].values,
                          .down = first ? width : 1,
                          .across = first ? 1 : width };
}

int64_t *mtf_core_new_costs(gsize count) {
    return mtf_shared_alloc(count * sizeof(int64_t));
}

void mtf_core_set_cost(MtfCore *core, int node, int64_t *cost) {
    const int64_t *old = core->nodes[node].cost;
    core->nodes[node].cost = mtf_shared_keep(core->shared, cost);
    mtf_shared_unref(core->shared, old);
}

void mtf_core_set_matrix(MtfCore *core, int edge, int64_t *matrix) {
    const int64_t *old = mtf_core_edge(core, edge)->cost;
    mtf_core_edge(core, edge)->cost = mtf_shared_keep(core->shared, matrix);
    mtf_shared_unref(core->shared, old);
}

void mtf_core_set_usage(MtfCore *core, MtfCorePiece *piece, int64_t *usage) {
    const int64_t *old = piece->usage;
    piece->usage = mtf_shared_keep(core->shared, usage);
    mtf_shared_unref(core->shared, old);
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

/* Replaces the matrix of an edge; `matrix` (a reference, taken over) is seen from `node`. */
static void replace_matrix(MtfCore *core, MtfCoreEdge *edge, int node, const int64_t *matrix) {
    mtf_shared_unref(core->shared, edge->cost);
    edge->b = mtf_core_other_end(edge, node);
    edge->a = node;
    edge->cost = matrix;
}

static int append_edge(MtfCore *core, MtfCoreEdge edge) {
    int index = (int)core->edges->len;
    g_array_append_val(core->edges, edge);
    g_array_append_val(core->nodes[edge.a].edges, index);
    g_array_append_val(core->nodes[edge.b].edges, index);
    return index;
}

int mtf_core_join(MtfCore *core, int a, int b, const int64_t *cost) {
    return append_edge(core, (MtfCoreEdge){ a, b, mtf_shared_ref(cost) });
}

/* Adds a matrix [values of u][values of v] (a reference, taken over) to the edge between u and v.
 */
static void add_matrix(MtfCore *core, int u, int v, const int64_t *matrix) {
    int e = mtf_core_find_edge(core, u, v);
    MtfCoreEdge edge = { u, v, matrix };
    if (e >= 0) {
        MtfCoreEdge *old = mtf_core_edge(core, e);
        MtfCoreView before = mtf_core_view(core, old, u), more = mtf_core_view(core, &edge, u);
        replace_matrix(core, old, u, mtf_matrix_sum(core->shared, &before, &more));
        mtf_shared_unref(core->shared, matrix);
        return;
    }
    append_edge(core, edge);
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
    mtf_shared_unref(core->shared, edge->cost);
    edge->cost = NULL;
    edge->a = edge->b = -1;
}

void mtf_core_drop_edge(MtfCore *core, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(core, index);
    mtf_certificate_two(core->certificate, "part", edge->a, edge->b);
    remove_edge(core, index);
}

static void free_pieces(MtfCore *core, GArray *pieces) {
    for (guint k = 0; k < pieces->len; k++)
        mtf_shared_unref(core->shared, g_array_index(pieces, MtfCorePiece, k).usage);
    g_array_set_size(pieces, 0);
}

static void kill_node(MtfCore *core, int index) {
    MtfCoreNode *node = &core->nodes[index];
    while (node->edges->len > 0)
        remove_edge(core, edge_id_at(node, node->edges->len - 1));
    free_pieces(core, node->pieces);
    mtf_shared_unref(core->shared, node->cost);
    node->cost = NULL;
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

static int64_t largest_possible(const int64_t *costs, gsize count) {
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

/* The sum of the largest entry of every edge; each shared matrix is looked through once. */
static MtfInt128 largest_edges(const MtfLayoutProblem *problem) {
    g_autoptr(GHashTable) known = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    MtfInt128 sum = 0;
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        int64_t *largest = g_hash_table_lookup(known, edge->costs);
        if (largest == NULL) {
            largest = g_new(int64_t, 1);
            *largest = largest_possible(edge->costs, matrix_size(problem, edge));
            g_hash_table_insert(known, (gpointer)edge->costs, largest);
        }
        sum += *largest;
    }
    return sum;
}

static void choose_shifts(MtfCore *core, const MtfLayoutProblem *problem) {
    MtfInt128 costs = largest_edges(problem), usages = 0;
    for (int v = 0; v < core->node_count; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, v);
        costs += largest_possible(node->costs, (gsize)node->strategies);
        usages += largest_possible(node->usages, (gsize)node->strategies);
    }
    core->cost_shift = shift_for(costs);
    core->usage_shift = shift_for(usages);
}

/* Divides by 2^shift, rounding down. */
static int64_t shifted(int64_t value, int shift) {
    int64_t unit = INT64_C(1) << shift;
    int64_t eliminated = value / unit;
    return eliminated - (value % unit < 0);
}

static const int64_t *take_costs(MtfCore *core, const int64_t *costs, gsize count) {
    int64_t *copy = mtf_core_new_costs(count);
    for (gsize i = 0; i < count; i++)
        copy[i] =
            costs[i] >= MTF_IMPOSSIBLE ? MTF_CORE_IMPOSSIBLE : shifted(costs[i], core->cost_shift);
    return mtf_shared_keep(core->shared, copy);
}

static void add_node(MtfCore *core, int index, const MtfLayoutNode *from) {
    core->nodes[index] = (MtfCoreNode){
        .alive = true,
        .values = from->strategies,
        .cost = take_costs(core, from->costs, (gsize)from->strategies),
        .pieces = g_array_new(FALSE, FALSE, sizeof(MtfCorePiece)),
        .edges = g_array_new(FALSE, FALSE, sizeof(int)),
    };
}

/* Adds all edges; each of the problem's shared matrices is taken once. */
static void add_edges(MtfCore *core, const MtfLayoutProblem *problem) {
    g_autoptr(GHashTable) taken = g_hash_table_new(NULL, NULL);
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        const int64_t *costs = g_hash_table_lookup(taken, edge->costs);
        if (costs == NULL) {
            costs = take_costs(core, edge->costs, matrix_size(problem, edge));
            g_hash_table_insert(taken, (gpointer)edge->costs, (gpointer)costs);
        }
        add_matrix(core, edge->from, edge->to, mtf_shared_ref(costs));
    }
    GHashTableIter iter;
    gpointer costs;
    g_hash_table_iter_init(&iter, taken);
    while (g_hash_table_iter_next(&iter, NULL, &costs))
        mtf_shared_unref(core->shared, costs);
    mtf_shared_forget(core->shared);
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
    core->capacity = g_new(int64_t, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        core->capacity[r] = mtf_layout_problem_limit(problem) >> core->usage_shift;
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
        int64_t *usage = mtf_core_new_costs((gsize)node->strategies);
        for (int s = 0; s < node->strategies; s++)
            usage[s] = node->usages[s] >> core->usage_shift;
        piece.usage = mtf_shared_keep(core->shared, usage);
        g_array_append_val(core->nodes[v].pieces, piece);
    }
}

MtfCore *mtf_core_new_empty(int count) {
    MtfCore *core = g_new0(MtfCore, 1);
    core->node_count = count;
    core->nodes = g_new0(MtfCoreNode, count + 1);
    core->edges = g_array_new(FALSE, FALSE, sizeof(MtfCoreEdge));
    core->trail = g_array_new(FALSE, FALSE, sizeof(TrailRecord));
    core->shared = mtf_shared_new();
    for (int v = 0; v < count; v++) {
        core->nodes[v].pieces = g_array_new(FALSE, FALSE, sizeof(MtfCorePiece));
        core->nodes[v].edges = g_array_new(FALSE, FALSE, sizeof(int));
    }
    return core;
}

MtfCore *mtf_core_new(const MtfLayoutProblem *problem) {
    MtfCore *core = g_new0(MtfCore, 1);
    core->node_count = mtf_layout_problem_node_count(problem);
    core->nodes = g_new0(MtfCoreNode, core->node_count + 1);
    core->edges = g_array_new(FALSE, FALSE, sizeof(MtfCoreEdge));
    core->trail = g_array_new(FALSE, FALSE, sizeof(TrailRecord));
    core->shared = mtf_shared_new();
    choose_shifts(core, problem);
    for (int v = 0; v < core->node_count; v++)
        add_node(core, v, mtf_layout_problem_node(problem, v));
    add_edges(core, problem);
    if (mtf_layout_problem_limit(problem) != MTF_NO_LIMIT) {
        find_rows(core, problem);
        add_pieces(core, problem);
    }
    return core;
}

static void copy_node(MtfCore *core, const MtfCore *from, int index) {
    const MtfCoreNode *old = &from->nodes[index];
    MtfCoreNode *node = &core->nodes[index];
    node->alive = true;
    node->values = old->values;
    node->cost = mtf_shared_ref(old->cost);
    for (guint k = 0; k < old->pieces->len; k++) {
        MtfCorePiece piece = g_array_index(old->pieces, MtfCorePiece, k);
        mtf_shared_ref(piece.usage);
        g_array_append_val(node->pieces, piece);
    }
}

/* The nodes v with keep[v], all for NULL, without edges. */
static MtfCore *excerpt_nodes(const MtfCore *from, const bool *keep) {
    MtfCore *core = g_memdup2(from, sizeof *from);
    core->nodes = g_new0(MtfCoreNode, core->node_count + 1);
    core->edges = g_array_new(FALSE, FALSE, sizeof(MtfCoreEdge));
    core->trail = g_array_new(FALSE, FALSE, sizeof(TrailRecord));
    core->shared = mtf_shared_join(from->shared);
    core->certificate = NULL;
    core->capacity = g_memdup2(from->capacity, ((gsize)from->rows + 1) * sizeof *core->capacity);
    core->row_time = g_memdup2(from->row_time, ((gsize)from->rows + 1) * sizeof *core->row_time);
    for (int v = 0; v < core->node_count; v++) {
        core->nodes[v].pieces = g_array_new(FALSE, FALSE, sizeof(MtfCorePiece));
        core->nodes[v].edges = g_array_new(FALSE, FALSE, sizeof(int));
        if (keep == NULL ? from->nodes[v].alive : keep[v])
            copy_node(core, from, v);
    }
    return core;
}

MtfCore *mtf_core_copy(const MtfCore *from) {
    MtfCore *core = excerpt_nodes(from, NULL);
    g_array_append_vals(core->edges, from->edges->data, from->edges->len);
    for (int v = 0; v < core->node_count; v++)
        g_array_append_vals(core->nodes[v].edges, from->nodes[v].edges->data,
                            from->nodes[v].edges->len);
    for (int e = -1; mtf_core_next_edge(core, &e);)
        mtf_shared_ref(mtf_core_edge(core, e)->cost);
    return core;
}

MtfCore *mtf_core_excerpt(const MtfCore *from, const bool *keep) {
    MtfCore *core = excerpt_nodes(from, keep);
    for (int e = -1; mtf_core_next_edge(from, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(from, e);
        if (keep[edge->a] && keep[edge->b])
            mtf_core_join(core, edge->a, edge->b, edge->cost);
    }
    return core;
}

void mtf_core_free(MtfCore *core) {
    if (core == NULL)
        return;
    for (int v = 0; v < core->node_count; v++) {
        g_array_unref(core->nodes[v].pieces);
        g_array_unref(core->nodes[v].edges);
    }
    g_array_unref(core->edges);
    g_array_unref(core->trail);
    g_free(core->nodes);
    g_free(core->capacity);
    g_free(core->row_time);
    mtf_shared_free(core->shared);
    g_free(core);
}

/* ---- the steps ---- */

static int64_t *reindexed(const int64_t *old, const int16_t *from, int count) {
    int64_t *list = mtf_core_new_costs((gsize)count);
    for (int p = 0; p < count; p++)
        list[p] = old[from[p]];
    return list;
}

void mtf_core_keep_listed(MtfCore *core, int index, const int16_t *list, int count) {
    MtfCoreNode *node = &core->nodes[index];
    mtf_certify_keep(core, index, list, count);
    const int16_t *from = mtf_shared_copy(core->shared, list, (gsize)count * sizeof *list);
    for (guint k = 0; k < node->edges->len; k++) {
        MtfCoreEdge *edge = mtf_core_edge(core, edge_id_at(node, k));
        MtfCoreView view = mtf_core_view(core, edge, index);
        replace_matrix(core, edge, index, mtf_matrix_pick(core->shared, &view, from, count));
    }
    mtf_core_set_cost(core, index, reindexed(node->cost, from, count));
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        mtf_core_set_usage(core, piece, reindexed(piece->usage, from, count));
    }
    TrailRecord record = { TRAIL_KEPT, index, -1, -1, 0, count, from };
    g_array_append_val(core->trail, record);
    node->values = count;
}

void mtf_core_keep_values(MtfCore *core, int node, const bool *keep) {
    g_autofree int16_t *from = g_new(int16_t, core->nodes[node].values);
    int count = 0;
    for (int p = 0; p < core->nodes[node].values; p++)
        if (keep[p])
            from[count++] = (int16_t)p;
    if (count == 0) {
        mtf_certify_keep(core, node, from, 0);
        core->infeasible = true;
    } else if (count < core->nodes[node].values)
        mtf_core_keep_listed(core, node, from, count);
}

/* Adds a piece to a node, into the piece of the same rows when there is one. Takes over `usage`,
 * which is not yet shared. */
static void add_piece(MtfCore *core, MtfCoreNode *node, int first, int last, int64_t *usage) {
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->first != first || piece->last != last)
            continue;
        for (int p = 0; p < node->values; p++)
            usage[p] += piece->usage[p];
        mtf_core_set_usage(core, piece, usage);
        return;
    }
    MtfCorePiece piece = { first, last, mtf_shared_keep(core->shared, usage) };
    g_array_append_val(node->pieces, piece);
}

/* Moves the costs of one edge of the follower to the leader and removes the edge. */
static void move_edge(MtfCore *core, int leader, int follower, int index, const int16_t *map) {
    MtfCoreEdge *edge = mtf_core_edge(core, index);
    int other = mtf_core_other_end(edge, follower), values = core->nodes[leader].values;
    if (other == leader) {
        int64_t *cost = mtf_core_new_costs((gsize)values);
        for (int p = 0; p < values; p++)
            cost[p] = mtf_core_add(core->nodes[leader].cost[p],
                                   mtf_core_edge_cost(core, edge, leader, p, map[p]));
        mtf_core_set_cost(core, leader, cost);
        remove_edge(core, index);
        return;
    }
    MtfCoreView view = mtf_core_view(core, edge, follower);
    const int64_t *matrix = mtf_matrix_pick(core->shared, &view, map, values);
    remove_edge(core, index);
    add_matrix(core, leader, other, matrix);
}

/* Adds the follower's costs and memory to the leader's. */
static void move_costs(MtfCore *core, int leader, int follower, const int16_t *map) {
    MtfCoreNode *into = &core->nodes[leader], *node = &core->nodes[follower];
    int64_t *cost = mtf_core_new_costs((gsize)into->values);
    for (int p = 0; p < into->values; p++)
        cost[p] = mtf_core_add(into->cost[p], node->cost[map[p]]);
    mtf_core_set_cost(core, leader, cost);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        add_piece(core, into, piece->first, piece->last,
                  reindexed(piece->usage, map, into->values));
    }
}

void mtf_core_contract(MtfCore *core, int leader, int follower, const int16_t *list) {
    MtfCoreNode *node = &core->nodes[follower];
    int values = core->nodes[leader].values;
    mtf_certify_join(core, leader, follower, NULL, list, values);
    const int16_t *map = mtf_shared_copy(core->shared, list, (gsize)values * sizeof *list);
    move_costs(core, leader, follower, map);
    while (node->edges->len > 0)
        move_edge(core, leader, follower, edge_id_at(node, node->edges->len - 1), map);
    TrailRecord record = { TRAIL_CONTRACTED, follower, leader, -1, 0, values, map };
    g_array_append_val(core->trail, record);
    kill_node(core, follower);
}

/* ---- tied nodes ---- */

/* A matrix between two leaders, and how many times it stands there. */
typedef struct TiedEdge {
    int a, b; /* leaders, a <= b */
    bool turned;
    const int64_t *cost;
    int times;
} TiedEdge;

static guint tied_edge_hash(gconstpointer data) {
    const TiedEdge *edge = data;
    guint hash = (guint)edge->a * 2654435761U ^ (guint)edge->b * 40503U ^ g_direct_hash(edge->cost);
    return hash * 2 + edge->turned;
}

static gboolean tied_edge_equal(gconstpointer left, gconstpointer right) {
    const TiedEdge *x = left, *y = right;
    return x->a == y->a && x->b == y->b && x->turned == y->turned && x->cost == y->cost;
}

/* The different edges between leaders, in the order in which they turn up (TiedEdge, owned). */
static GPtrArray *find_tied_edges(const MtfCore *core, const int *leader) {
    g_autoptr(GHashTable) known = g_hash_table_new(tied_edge_hash, tied_edge_equal);
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        int a = leader[edge->a], b = leader[edge->b];
        TiedEdge key = { MIN(a, b), MAX(a, b), a > b, edge->cost, 1 };
        TiedEdge *same = g_hash_table_lookup(known, &key);
        if (same != NULL) {
            same->times++;
            continue;
        }
        TiedEdge *fresh = g_memdup2(&key, sizeof key);
        g_ptr_array_add(list, fresh);
        g_hash_table_add(known, fresh);
    }
    return list;
}

static const int64_t *multiple(MtfCore *core, const int64_t *costs, gsize count, int times) {
    int64_t *result = mtf_core_new_costs(count);
    for (gsize i = 0; i < count; i++)
        result[i] =
            costs[i] >= MTF_CORE_IMPOSSIBLE ? MTF_CORE_IMPOSSIBLE : (int64_t)times * costs[i];
    return mtf_shared_keep(core->shared, result);
}

/* Both ends take one value: the diagonal is a cost of the node. */
static void add_loop(MtfCore *core, const TiedEdge *edge) {
    MtfCoreNode *node = &core->nodes[edge->a];
    int64_t *cost = mtf_core_new_costs((gsize)node->values);
    for (int p = 0; p < node->values; p++) {
        int64_t loop = edge->cost[(gsize)p * (gsize)node->values + (gsize)p];
        cost[p] = loop >= MTF_CORE_IMPOSSIBLE ? MTF_CORE_IMPOSSIBLE
                                              : mtf_core_add(node->cost[p], edge->times * loop);
    }
    mtf_core_set_cost(core, edge->a, cost);
}

static void add_tied_edge(MtfCore *core, const TiedEdge *edge) {
    gsize count = (gsize)core->nodes[edge->a].values * (gsize)core->nodes[edge->b].values;
    if (edge->a == edge->b)
        add_loop(core, edge);
    else
        add_matrix(core, edge->turned ? edge->b : edge->a, edge->turned ? edge->a : edge->b,
                   multiple(core, edge->cost, count, edge->times));
}

/* Adds what a follower costs and uses to its leader, and says on the trail that it follows. */
static void add_follower(MtfCore *core, const MtfCoreNode *node, int follower, int leader) {
    int values = node->values;
    g_autofree int16_t *same = g_new(int16_t, values);
    for (int p = 0; p < values; p++)
        same[p] = (int16_t)p;
    int64_t *cost = mtf_core_new_costs((gsize)values);
    for (int p = 0; p < values; p++)
        cost[p] = mtf_core_add(core->nodes[leader].cost[p], node->cost[p]);
    mtf_core_set_cost(core, leader, cost);
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCorePiece piece = g_array_index(node->pieces, MtfCorePiece, k);
        add_piece(core, &core->nodes[leader], piece.first, piece.last,
                  reindexed(piece.usage, same, values));
    }
    TrailRecord record = { TRAIL_CONTRACTED, follower, leader, -1, 0, values, NULL };
    record.map = mtf_shared_copy(core->shared, same, (gsize)values * sizeof *same);
    g_array_append_val(core->trail, record);
}

MtfCore *mtf_core_tie(const MtfCore *from, const int *leader) {
    g_assert(from->trail->len == 0);
    g_autofree bool *keep = g_new0(bool, from->node_count + 1);
    for (int v = 0; v < from->node_count; v++)
        keep[v] = from->nodes[v].alive && leader[v] == v;
    MtfCore *core = excerpt_nodes(from, keep);
    for (int v = 0; v < from->node_count; v++)
        if (from->nodes[v].alive && leader[v] != v)
            add_follower(core, &from->nodes[v], v, leader[v]);
    g_autoptr(GPtrArray) edges = find_tied_edges(from, leader);
    for (guint i = 0; i < edges->len; i++)
        add_tied_edge(core, g_ptr_array_index(edges, i));
    return core;
}

/* Reductions the table of a node's best costs (a reference, taken over) into its neighbourhood. */
static void add_eliminated(MtfCore *core, int a, int b, const int64_t *table) {
    if (b >= 0) {
        add_matrix(core, a, b, table);
        return;
    }
    if (a < 0)
        core->constant += table[0];
    else {
        int values = core->nodes[a].values;
        int64_t *cost = mtf_core_new_costs((gsize)values);
        for (int p = 0; p < values; p++)
            cost[p] = mtf_core_add(core->nodes[a].cost[p], table[p]);
        mtf_core_set_cost(core, a, cost);
    }
    mtf_shared_unref(core->shared, table);
}

void mtf_core_eliminate(MtfCore *core, int index) {
    MtfCoreNode *node = &core->nodes[index];
    g_assert(node->pieces->len == 0 && node->edges->len <= 2);
    mtf_certificate_one(core->certificate, "eliminate", index);
    MtfCoreView views[2] = { { 0 }, { 0 } };
    int ends[2] = { -1, -1 };
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, edge_id_at(node, k));
        views[k] = mtf_core_view(core, edge, index);
        ends[k] = mtf_core_other_end(edge, index);
    }
    MtfCoreElimination eliminated =
        mtf_matrix_eliminate(core->shared, node->cost, node->values, &views[0], &views[1]);
    int height = MAX(1, views[0].columns), width = MAX(1, views[1].columns);
    TrailRecord record = { TRAIL_ELIMINATED, index, ends[0], ends[1], width, height * width,
                           eliminated.choice };
    g_array_append_val(core->trail, record);
    kill_node(core, index);
    if (ends[0] < 0 && eliminated.table[0] >= MTF_CORE_IMPOSSIBLE) {
        core->infeasible = true;
        mtf_shared_unref(core->shared, eliminated.table);
        return;
    }
    add_eliminated(core, ends[0], ends[1], eliminated.table);
}

/* ---- forth and back ---- */

static void lift_record(const TrailRecord *record, int *choice) {
    switch (record->kind) {
    case TRAIL_KEPT:
        choice[record->node] = record->map[choice[record->node]];
        break;
    case TRAIL_CONTRACTED:
        choice[record->node] = record->map[choice[record->a]];
        break;
    case TRAIL_ELIMINATED: {
        int p = record->a >= 0 ? choice[record->a] : 0, q = record->b >= 0 ? choice[record->b] : 0;
        choice[record->node] = record->map[p * record->width + q];
        break;
    }
    }
}

void mtf_core_lift_steps(const MtfCore *core, guint from, guint to, const int *values,
                         int *choice) {
    if (choice != values)
        memcpy(choice, values, (gsize)core->node_count * sizeof *choice);
    for (guint i = from; i > to; i--)
        lift_record(&g_array_index(core->trail, TrailRecord, i - 1), choice);
}

void mtf_core_lift(const MtfCore *core, const int *values, int *choice) {
    mtf_core_lift_steps(core, core->trail->len, 0, values, choice);
}

bool mtf_core_project(const MtfCore *core, const int *choice, int *values) {
    memcpy(values, choice, (gsize)core->node_count * sizeof *choice);
    for (guint i = 0; i < core->trail->len; i++) {
        const TrailRecord *record = &g_array_index(core->trail, TrailRecord, i);
        if (record->kind == TRAIL_CONTRACTED &&
            values[record->node] != record->map[values[record->a]])
            return false;
        if (record->kind != TRAIL_KEPT)
            continue;
        int at = 0;
        while (at < record->count && record->map[at] != values[record->node])
            at++;
        if (at == record->count)
            return false;
        values[record->node] = at;
    }
    return true;
}
