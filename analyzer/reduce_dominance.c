// SPDX-License-Identifier: GPL-3.0-or-later
/* Dominance: value p of a node makes value r needless when it uses no more memory in any row and
 * costs no more whatever the neighbours choose:
 *
 *     cost[p] - cost[r] + sum over edges of max_q (edge[p][q] - edge[r][q])  <=  0
 *
 * A quick test comes first: the maximum of a difference is at least the difference of the minima,
 * so p needs  cost[p] + sum of row minima  no larger than that of r. */
#include "analyzer/reductions.h"

#define MAX_WORK 20000000 /* edge entries compared for one node */

static int64_t edge_minimum(const MtfCore *core, const MtfCoreEdge *edge, int node, int p) {
    int64_t least = MTF_CORE_IMPOSSIBLE;
    int count = core->nodes[mtf_core_other_end(edge, node)].values;
    for (int q = 0; q < count; q++)
        least = MIN(least, mtf_core_edge_cost(core, edge, node, p, q));
    return least;
}

static bool uses_no_more(const MtfCoreNode *node, int p, int r) {
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->usage[p] > piece->usage[r])
            return false;
    }
    return true;
}

/* The most that p costs more than r across one edge; impossible when only p is impossible. */
static int64_t worst_difference(const MtfCore *core, const MtfCoreEdge *edge, int node, int p,
                                int r) {
    int count = core->nodes[mtf_core_other_end(edge, node)].values;
    int64_t worst = -MTF_CORE_IMPOSSIBLE;
    for (int q = 0; q < count; q++) {
        int64_t of_r = mtf_core_edge_cost(core, edge, node, r, q);
        int64_t of_p = mtf_core_edge_cost(core, edge, node, p, q);
        if (of_r >= MTF_CORE_IMPOSSIBLE)
            continue;
        if (of_p >= MTF_CORE_IMPOSSIBLE)
            return MTF_CORE_IMPOSSIBLE;
        worst = MAX(worst, of_p - of_r);
    }
    return worst;
}

static bool dominates(const MtfCore *core, int index, int p, int r) {
    const MtfCoreNode *node = &core->nodes[index];
    if (!uses_no_more(node, p, r))
        return false;
    MtfInt128 difference = (MtfInt128)node->cost[p] - node->cost[r];
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        int64_t worst = worst_difference(core, edge, index, p, r);
        if (worst >= MTF_CORE_IMPOSSIBLE)
            return false;
        difference += worst;
    }
    return difference <= 0;
}

static int64_t work(const MtfCore *core, const MtfCoreNode *node, int index) {
    int64_t entries = 1;
    for (guint k = 0; k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        entries += core->nodes[mtf_core_other_end(edge, index)].values;
    }
    return entries * node->values * node->values;
}

static void find_sums(const MtfCore *core, int index, int64_t *sums) {
    const MtfCoreNode *node = &core->nodes[index];
    for (int p = 0; p < node->values; p++) {
        sums[p] = node->cost[p];
        for (guint k = 0; k < node->edges->len; k++) {
            const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
            sums[p] = mtf_core_add(sums[p], edge_minimum(core, edge, index, p));
        }
    }
}

static bool is_dominated(const MtfCore *core, int index, const int64_t *sums, const bool *keep,
                         int r) {
    for (int p = 0; p < core->nodes[index].values; p++)
        if (p != r && keep[p] && sums[p] <= sums[r] && dominates(core, index, p, r))
            return true;
    return false;
}

static bool sweep_node(MtfCore *core, int index) {
    const MtfCoreNode *node = &core->nodes[index];
    if (!node->alive || node->values < 2 || work(core, node, index) > MAX_WORK)
        return false;
    g_autofree int64_t *sums = g_new(int64_t, node->values);
    g_autofree bool *keep = g_new(bool, node->values);
    find_sums(core, index, sums);
    bool changed = false;
    for (int p = 0; p < node->values; p++)
        keep[p] = true;
    for (int r = node->values - 1; r >= 0; r--) {
        keep[r] = !is_dominated(core, index, sums, keep, r);
        changed |= !keep[r];
    }
    if (changed)
        mtf_core_keep_values(core, index, keep);
    return changed;
}

bool mtf_reduce_dominance(MtfCore *core) {
    bool changed = false;
    for (int v = 0; v < core->node_count && !core->infeasible; v++)
        changed |= sweep_node(core, v);
    return changed;
}
