// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/core_values.h"

int64_t mtf_core_cost(const MtfCore *core, const int *values) {
    int64_t sum = core->constant;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            sum = mtf_core_add(sum, core->nodes[v].cost[values[v]]);
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
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
        if (use[r] > core->capacity[r])
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
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        size.edges++;
        size.entries += (int64_t)mtf_core_edge_entries(core, edge);
    }
    return size;
}

static int possible_values(const MtfCoreNode *node) {
    int count = 0;
    for (int p = 0; p < node->values; p++)
        count += node->cost[p] < MTF_CORE_IMPOSSIBLE;
    return count;
}

double mtf_core_possible_entries(const MtfCore *core) {
    double entries = 0;
    g_autofree int *possible = g_new0(int, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            possible[v] = possible_values(&core->nodes[v]);
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        entries += (double)possible[edge->a] * possible[edge->b];
    }
    return entries;
}
