// SPDX-License-Identifier: GPL-3.0-or-later
/* Impossible-value consistency: a value whose own cost is impossible, or that has no possible
 * partner value across some edge, or that alone overfills a row, is part of no legal choice.
 * Removing it may take the last partner from a neighbour's value, so neighbours are looked at
 * again until nothing changes (arc consistency). */
#include "analyzer/solver/reduce/reductions.h"

/* The least room of any 2^k rows that follow one another, for looking up the least of a range:
 * least[k][r] = min capacity[r .. r + 2^k). */
typedef struct Capacities {
    GPtrArray *least;
} Capacities;

static Capacities capacities_of(const MtfCore *core) {
    Capacities capacities = { g_ptr_array_new_with_free_func(g_free) };
    const int64_t *below = core->capacity;
    for (int width = 1; width <= core->rows; width *= 2) {
        int64_t *level = g_new(int64_t, core->rows);
        for (int r = 0; r + width <= core->rows; r++)
            level[r] = width == 1 ? core->capacity[r] : MIN(below[r], below[r + width / 2]);
        g_ptr_array_add(capacities.least, level);
        below = level;
    }
    return capacities;
}

static int64_t least_capacity(const Capacities *capacities, int first, int last) {
    if (first >= last)
        return INT64_MAX;
    guint k = g_bit_storage((gulong)(last - first)) - 1;
    const int64_t *level = g_ptr_array_index(capacities->least, k);
    return MIN(level[first], level[last - (1 << k)]);
}

/* Forbids the values that do not fit beside nodes that use nothing, the least they can use. */
static void require_capacity(const Capacities *capacities, const MtfCoreNode *node, bool *keep) {
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        int64_t capacity = least_capacity(capacities, piece->first, piece->last);
        for (int p = 0; p < node->values; p++)
            keep[p] &= piece->usage[p] == 0 || piece->usage[p] <= capacity;
    }
}

/* Forbids the values without a possible partner across some edge. */
static void require_partners(MtfCore *core, int index, bool *keep) {
    const MtfCoreNode *node = &core->nodes[index];
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        MtfCoreView view = mtf_core_view(core, edge, index);
        const bool *possible = mtf_matrix_possible(core->shared, &view);
        for (int p = 0; p < node->values; p++)
            keep[p] &= possible[p];
        mtf_shared_unref(core->shared, possible);
    }
}

/* Removes the node's dead values; true when there were any. */
static bool sweep_node(MtfCore *core, const Capacities *capacities, int index) {
    const MtfCoreNode *node = &core->nodes[index];
    int values = node->values, kept = 0;
    g_autofree bool *keep = g_new(bool, values);
    for (int p = 0; p < values; p++)
        keep[p] = node->cost[p] < MTF_CORE_IMPOSSIBLE;
    require_partners(core, index, keep);
    require_capacity(capacities, node, keep);
    for (int p = 0; p < values; p++)
        kept += keep[p];
    if (kept == values)
        return false;
    mtf_core_keep_values(core, index, keep);
    return true;
}

static void push_neighbours(const MtfCore *core, int index, GQueue *queue, bool *queued) {
    const MtfCoreNode *node = &core->nodes[index];
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        int other = mtf_core_other_end(edge, index);
        if (queued[other])
            continue;
        queued[other] = true;
        g_queue_push_tail(queue, GINT_TO_POINTER(other));
    }
}

bool mtf_reduce_consistency(MtfCore *core) {
    g_autoptr(GQueue) queue = g_queue_new();
    g_autofree bool *queued = g_new0(bool, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++) {
        queued[v] = core->nodes[v].alive;
        if (queued[v])
            g_queue_push_tail(queue, GINT_TO_POINTER(v));
    }
    Capacities capacities = capacities_of(core);
    bool changed = false;
    while (!g_queue_is_empty(queue) && !core->infeasible) {
        int v = GPOINTER_TO_INT(g_queue_pop_head(queue));
        queued[v] = false;
        if (!sweep_node(core, &capacities, v))
            continue;
        changed = true;
        push_neighbours(core, v, queue, queued);
    }
    g_ptr_array_unref(capacities.least);
    mtf_shared_forget(core->shared);
    return changed;
}
