// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/core_part.h"

#include <string.h>

typedef struct Part {
    const MtfCore *core;
    const int *values;
    GHashTable *index; /* node of the core -> its index in the part, plus one */
    MtfCore *part;
} Part;

static int index_of(const Part *p, int node) {
    return GPOINTER_TO_INT(g_hash_table_lookup(p->index, GINT_TO_POINTER(node))) - 1;
}

/* Own costs and those of the edges to fixed nodes. */
static int64_t *costs_beside(const Part *p, int node) {
    const MtfCore *core = p->core;
    const MtfCoreNode *from = &core->nodes[node];
    int64_t *cost = mtf_core_new_costs((gsize)from->values);
    memcpy(cost, from->cost, (gsize)from->values * sizeof *cost);
    for (guint k = 0; k < from->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(from->edges, int, k));
        int other = mtf_core_other_end(edge, node);
        for (int q = 0; index_of(p, other) < 0 && q < from->values; q++)
            cost[q] =
                mtf_core_add(cost[q], mtf_core_edge_cost(core, edge, node, q, p->values[other]));
    }
    return cost;
}

/* The node with its memory; what it uses in the choice is given back to its rows. */
static void add_node(Part *p, int i, int node) {
    const MtfCoreNode *from = &p->core->nodes[node];
    MtfCoreNode *to = &p->part->nodes[i];
    to->alive = true;
    to->values = from->values;
    to->cost = mtf_shared_keep(p->part->shared, costs_beside(p, node));
    for (guint k = 0; k < from->pieces->len; k++) {
        MtfCorePiece piece = g_array_index(from->pieces, MtfCorePiece, k);
        for (int r = piece.first; r < piece.last; r++)
            p->part->capacity[r] += piece.usage[p->values[node]];
        piece.usage = mtf_shared_copy(p->part->shared, piece.usage,
                                      (gsize)from->values * sizeof *piece.usage);
        g_array_append_val(to->pieces, piece);
    }
}

static void add_edges(Part *p, int i, int node) {
    const MtfCoreNode *from = &p->core->nodes[node];
    for (guint k = 0; k < from->edges->len; k++) {
        const MtfCoreEdge *edge = mtf_core_edge(p->core, g_array_index(from->edges, int, k));
        int other = index_of(p, edge->b);
        if (edge->a != node || other < 0)
            continue;
        gsize count = (gsize)from->values * (gsize)p->core->nodes[edge->b].values;
        const int64_t *cost =
            mtf_shared_copy(p->part->shared, edge->cost, count * sizeof *edge->cost);
        mtf_core_join(p->part, i, other, cost);
        mtf_shared_unref(p->part->shared, cost);
    }
}

/* The rows are the core's, with what all nodes leave of them. */
static MtfCore *empty_part(const MtfCore *core, int count, const int64_t *use) {
    MtfCore *part = mtf_core_new_empty(count);
    gsize rows = (gsize)core->rows + 1;
    part->rows = core->rows;
    part->row_time = g_memdup2(core->row_time, rows * sizeof *part->row_time);
    part->capacity = g_new0(int64_t, rows);
    for (int r = 0; r < core->rows; r++)
        part->capacity[r] = core->capacity[r] - use[r];
    return part;
}

MtfCore *mtf_core_part(const MtfCore *core, const int *nodes, int count, const int *values,
                       const int64_t *use) {
    g_autoptr(GHashTable) index = g_hash_table_new(NULL, NULL);
    for (int i = 0; i < count; i++)
        g_hash_table_insert(index, GINT_TO_POINTER(nodes[i]), GINT_TO_POINTER(i + 1));
    Part p = { core, values, index, empty_part(core, count, use) };
    for (int i = 0; i < count; i++)
        add_node(&p, i, nodes[i]);
    for (int i = 0; i < count; i++)
        add_edges(&p, i, nodes[i]);
    return p.part;
}
