// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/stage_graph.h"

static void clear_way(void *data) {
    MtfStageWay *way = data;
    g_free(way->name);
    g_free(way->edge_bytes);
}

static void clear_node(void *data) {
    MtfStageNode *node = data;
    g_free(node->name);
    g_array_unref(node->ways);
    g_array_unref(node->entries);
    g_array_unref(node->exits);
}

MtfStageGraph *mtf_stage_graph_new(MtfStageKind kind) {
    MtfStageGraph *graph = g_new0(MtfStageGraph, 1);
    graph->kind = kind;
    graph->nodes = g_array_new(FALSE, TRUE, sizeof(MtfStageNode));
    g_array_set_clear_func(graph->nodes, clear_node);
    graph->edges = g_array_new(FALSE, FALSE, sizeof(MtfStageEdge));
    return graph;
}

void mtf_stage_graph_free(MtfStageGraph *graph) {
    if (graph == NULL)
        return;
    g_array_unref(graph->nodes);
    g_array_unref(graph->edges);
    g_free(graph);
}

int mtf_stage_graph_size(const MtfStageGraph *graph) {
    return (int)graph->nodes->len;
}

MtfStageNode *mtf_stage_graph_node(const MtfStageGraph *graph, int node) {
    return &g_array_index(graph->nodes, MtfStageNode, node);
}

const MtfStageEdge *mtf_stage_graph_edge(const MtfStageGraph *graph, int edge) {
    return &g_array_index(graph->edges, MtfStageEdge, edge);
}

int mtf_stage_graph_add_node(MtfStageGraph *graph, const char *name) {
    MtfStageNode node = {
        .name = g_strdup(name),
        .ways = g_array_new(FALSE, TRUE, sizeof(MtfStageWay)),
        .entries = g_array_new(FALSE, FALSE, sizeof(int)),
        .exits = g_array_new(FALSE, FALSE, sizeof(int)),
    };
    g_array_set_clear_func(node.ways, clear_way);
    g_array_append_val(graph->nodes, node);
    return mtf_stage_graph_size(graph) - 1;
}

int mtf_stage_graph_add_edge(MtfStageGraph *graph, int from, int to, double bytes) {
    MtfStageEdge edge = { from, to, bytes };
    int number = (int)graph->edges->len;
    g_array_append_val(graph->edges, edge);
    g_array_append_val(mtf_stage_graph_node(graph, from)->exits, number);
    g_array_append_val(mtf_stage_graph_node(graph, to)->entries, number);
    return number;
}

void mtf_stage_graph_add_way(MtfStageGraph *graph, int node, const MtfStageWay *way) {
    GArray *ways = mtf_stage_graph_node(graph, node)->ways;
    guint at = ways->len;
    while (at > 0 && g_array_index(ways, MtfStageWay, at - 1).degree > way->degree)
        at--;
    g_array_insert_vals(ways, at, way, 1);
}

/* Nodes whose predecessors are all placed wait in a queue that is sorted by number. */
static gint compare_numbers(gconstpointer a, gconstpointer b, gpointer user) {
    (void)user;
    return GPOINTER_TO_INT(a) - GPOINTER_TO_INT(b);
}

static void place_successors(const MtfStageGraph *graph, int node, int *missing, GSequence *ready) {
    const GArray *exits = mtf_stage_graph_node(graph, node)->exits;
    for (guint i = 0; i < exits->len; i++) {
        int to = mtf_stage_graph_edge(graph, g_array_index(exits, int, i))->to;
        if (--missing[to] == 0)
            g_sequence_insert_sorted(ready, GINT_TO_POINTER(to), compare_numbers, NULL);
    }
}

int *mtf_stage_graph_order(const MtfStageGraph *graph, int *on_circle) {
    int nodes = mtf_stage_graph_size(graph), placed = 0;
    g_autofree int *missing = g_new0(int, nodes);
    int *order = g_new(int, nodes);
    GSequence *ready = g_sequence_new(NULL);
    for (int v = 0; v < nodes; v++) {
        missing[v] = (int)mtf_stage_graph_node(graph, v)->entries->len;
        if (missing[v] == 0)
            g_sequence_append(ready, GINT_TO_POINTER(v));
    }
    while (!g_sequence_is_empty(ready)) {
        GSequenceIter *first = g_sequence_get_begin_iter(ready);
        order[placed] = GPOINTER_TO_INT(g_sequence_get(first));
        g_sequence_remove(first);
        place_successors(graph, order[placed++], missing, ready);
    }
    g_sequence_free(ready);
    if (placed == nodes)
        return order;
    g_free(order);
    *on_circle = 0;
    while (missing[*on_circle] == 0)
        ++*on_circle;
    return NULL;
}
