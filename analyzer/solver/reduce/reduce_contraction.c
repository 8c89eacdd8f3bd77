// SPDX-License-Identifier: GPL-3.0-or-later
/* Functional contraction: where the possible entries of an edge let the leader's value determine
 * the follower's, the two are one node.
 *
 *     leader \ follower   0   1   2
 *          0              5   x   x        0 -> 0
 *          1              x   x   2        1 -> 2
 *          2              0   x   x        2 -> 0
 *
 * The follower's other edges grow to the leader's number of values; a contraction that would grow
 * the matrices by more than MAX_GROWTH entries is left alone. */
#include "analyzer/solver/reduce/reductions.h"

#define MAX_GROWTH 20000

/* The only possible value of the other end beside value p of `node`; -1 when there are more. */
static int only_partner(const MtfCore *core, const MtfCoreEdge *edge, int node, int p) {
    int count = core->nodes[mtf_core_other_end(edge, node)].values, found = -1;
    for (int q = 0; q < count; q++) {
        if (mtf_core_edge_cost(core, edge, node, p, q) >= MTF_CORE_IMPOSSIBLE)
            continue;
        if (found >= 0)
            return -1;
        found = q;
    }
    return found;
}

/* Fills map[p] for every value of the leader; false when one leaves a choice. */
static bool determines(const MtfCore *core, const MtfCoreEdge *edge, int leader, int16_t *map) {
    for (int p = 0; p < core->nodes[leader].values; p++) {
        int partner = only_partner(core, edge, leader, p);
        if (partner < 0)
            return false;
        map[p] = (int16_t)partner;
    }
    return true;
}

/* Looks at no more of the follower's edges than it takes: what all layers share has thousands. */
static bool grows_much(const MtfCore *core, int leader, int follower) {
    const MtfCoreNode *node = &core->nodes[follower];
    int64_t more = 0, extra = core->nodes[leader].values - node->values;
    for (guint k = 0; extra > 0 && more <= MAX_GROWTH && k < node->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(node->edges, int, k));
        int other = mtf_core_other_end(edge, follower);
        if (other != leader)
            more += extra * core->nodes[other].values;
    }
    return more > MAX_GROWTH;
}

/* Most edges leave the leader's first value a choice. */
static bool contract_edge(MtfCore *core, int leader, int follower, const MtfCoreEdge *edge) {
    if (only_partner(core, edge, leader, 0) < 0 || grows_much(core, leader, follower))
        return false;
    g_autofree int16_t *map = g_new(int16_t, core->nodes[leader].values);
    if (!determines(core, edge, leader, map))
        return false;
    mtf_core_contract(core, leader, follower, map);
    return true;
}

bool mtf_reduce_contraction(MtfCore *core) {
    bool changed = false;
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        int a = edge->a, b = edge->b;
        bool fewer = core->nodes[a].edges->len < core->nodes[b].edges->len;
        int first = fewer ? b : a, second = fewer ? a : b;
        changed |= contract_edge(core, first, second, edge) ||
                   contract_edge(core, second, first, mtf_core_edge(core, e));
    }
    mtf_shared_forget(core->shared);
    return changed;
}
