// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/core_components.h"

static int find_root(int *parent, int v) {
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

/* The smaller index stays a root, so that numbers follow the order of nodes. */
static void unite(int *parent, int u, int v) {
    int a = find_root(parent, u), b = find_root(parent, v);
    parent[MAX(a, b)] = MIN(a, b);
}

/* Nodes that use memory in one row are joined through the first of them. */
static void unite_rows(const MtfCore *core, int *parent) {
    g_autofree int *user = g_new(int, core->rows + 1);
    for (int r = 0; r < core->rows; r++)
        user[r] = -1;
    for (int v = 0; v < core->node_count; v++)
        for (guint k = 0; core->nodes[v].alive && k < core->nodes[v].pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(core->nodes[v].pieces, MtfCorePiece, k);
            for (int r = piece->first; r < piece->last; r++) {
                if (user[r] >= 0)
                    unite(parent, user[r], v);
                user[r] = v;
            }
        }
}

int mtf_core_components(const MtfCore *core, int *component) {
    g_autofree int *parent = g_new(int, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        parent[v] = v;
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        unite(parent, edge->a, edge->b);
    }
    unite_rows(core, parent);
    int count = 0;
    for (int v = 0; v < core->node_count; v++) {
        int root = find_root(parent, v);
        if (!core->nodes[v].alive)
            component[v] = -1;
        else
            component[v] = root == v ? count++ : component[root];
    }
    return count;
}

MtfCore *mtf_core_component(const MtfCore *core, const int *component, int index) {
    g_autofree bool *keep = g_new0(bool, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        keep[v] = component[v] == index;
    MtfCore *part = mtf_core_excerpt(core, keep);
    part->constant = 0;
    return part;
}
