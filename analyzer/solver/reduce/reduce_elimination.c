// SPDX-License-Identifier: GPL-3.0-or-later
/* Elimination: a node that uses no memory and has at most two neighbours takes the value that is
 * best beside theirs, so it folds into a constant, a neighbour's costs or one edge. Two neighbours
 * with many values and a small node between them would get a larger matrix than the two that go;
 * such nodes stay. */
#include "analyzer/solver/reduce/reductions.h"

#define MAX_FILL_RATIO 4

static const MtfCoreEdge *edge_of(const MtfCore *core, int node, guint k) {
    return mtf_core_edge(core, g_array_index(core->nodes[node].edges, int, k));
}

static bool fill_is_small(const MtfCore *core, int index) {
    if (core->nodes[index].edges->len < 2)
        return true;
    int a = mtf_core_other_end(edge_of(core, index, 0), index);
    int b = mtf_core_other_end(edge_of(core, index, 1), index);
    int64_t height = core->nodes[a].values, width = core->nodes[b].values;
    if (mtf_core_find_edge(core, a, b) >= 0)
        return true;
    return height * width <= MAX_FILL_RATIO * core->nodes[index].values * (height + width);
}

bool mtf_reduce_elimination(MtfCore *core) {
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = core->node_count - 1; v >= 0; v--)
        g_array_append_val(stack, v);
    bool changed = false;
    while (stack->len > 0 && !core->infeasible) {
        int v = g_array_index(stack, int, stack->len - 1);
        g_array_set_size(stack, stack->len - 1);
        const MtfCoreNode *node = &core->nodes[v];
        if (!node->alive || node->pieces->len > 0 || node->edges->len > 2 ||
            !fill_is_small(core, v))
            continue;
        for (guint k = 0; k < node->edges->len; k++) {
            int other = mtf_core_other_end(edge_of(core, v, k), v);
            g_array_append_val(stack, other);
        }
        mtf_core_eliminate(core, v);
        changed = true;
    }
    mtf_shared_forget(core->shared);
    return changed;
}
