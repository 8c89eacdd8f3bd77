// SPDX-License-Identifier: GPL-3.0-or-later
/* Impossible-value consistency: a value whose own cost is impossible, or that has no possible
 * partner value across some edge, or that alone overfills a row, is part of no legal choice.
 * Removing it may take the last partner from a neighbour's value, so neighbours are looked at
 * again until nothing changes (arc consistency). */
#include "analyzer/reductions.h"

static bool has_partner(const MtfCore *core, const MtfCoreEdge *edge, int node, int p) {
    int count = core->nodes[mtf_core_other_end(edge, node)].values;
    for (int q = 0; q < count; q++)
        if (mtf_core_edge_cost(core, edge, node, p, q) < MTF_CORE_IMPOSSIBLE)
            return true;
    return false;
}

/* Whether value p fits beside nodes that use nothing, which is the least they can use. */
static bool fits(const MtfCore *core, const MtfCoreNode *node, int p) {
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->usage[p] == 0)
            continue;
        for (int r = piece->first; r < piece->last; r++)
            if (piece->usage[p] > core->room[r])
                return false;
    }
    return true;
}

static bool can_take(const MtfCore *core, int index, int p) {
    const MtfCoreNode *node = &core->nodes[index];
    if (node->cost[p] >= MTF_CORE_IMPOSSIBLE)
        return false;
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        if (!has_partner(core, edge, index, p))
            return false;
    }
    return fits(core, node, p);
}

/* Removes the node's dead values; true when there were any. */
static bool sweep_node(MtfCore *core, int index) {
    int values = core->nodes[index].values, kept = 0;
    g_autofree bool *keep = g_new(bool, values);
    for (int p = 0; p < values; p++) {
        keep[p] = can_take(core, index, p);
        kept += keep[p];
    }
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
    bool changed = false;
    while (!g_queue_is_empty(queue) && !core->infeasible) {
        int v = GPOINTER_TO_INT(g_queue_pop_head(queue));
        queued[v] = false;
        if (!sweep_node(core, v))
            continue;
        changed = true;
        push_neighbours(core, v, queue, queued);
    }
    return changed;
}
