// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/live_graph.h"

#include "layouts/graph/operation_table.h"

/* Marks the tensors that something live reads: producers stand before their consumers, so that one
 * pass from the last operation on sees all. */
static void mark_read(const MtfGraph *graph, bool *live) {
    for (int o = (int)graph->operations->len - 1; o >= 0; o--) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        bool wanted = false;
        for (int k = 0; k < op->n_outputs; k++)
            wanted |= live[op->outputs[k]];
        for (int k = 0; wanted && k < op->n_inputs; k++)
            live[op->inputs[k]] = true;
    }
}

/* A state that is read lives on in what a loop hands on to it. Returns whether any came to life. */
static bool mark_handed_on(const MtfGraph *graph, bool *live) {
    bool changed = false;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        bool hands_on = mtf_operation_row(op->kind)->loop == MTF_LOOP_HANDS_ON;
        if (!hands_on || !live[op->inputs[0]] || live[op->outputs[0]])
            continue;
        live[op->outputs[0]] = changed = true;
    }
    return changed;
}

static bool *live_tensors(const MtfGraph *graph) {
    bool *live = g_new0(bool, graph->tensors->len + 1);
    if (graph->loss >= 0)
        live[graph->loss] = true;
    for (int t = 0; graph->loss < 0 && t < (int)graph->tensors->len; t++)
        live[t] = mtf_graph_tensor(graph, t)->output > 0;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        live[update->variable] = live[update->value] = true;
    }
    do
        mark_read(graph, live);
    while (mark_handed_on(graph, live));
    return live;
}

static bool is_live(const MtfOperation *op, const bool *live) {
    for (int k = 0; k < op->n_outputs; k++)
        if (live[op->outputs[k]])
            return true;
    return false;
}

MtfDeadParts mtf_dead_parts(const MtfGraph *graph) {
    MtfDeadParts dead = { g_ptr_array_new_with_free_func(g_free),
                          g_ptr_array_new_with_free_func(g_free) };
    g_autofree bool *live = live_tensors(graph);
    g_autoptr(GArray) outputs = mtf_graph_outputs(graph);
    if (graph->loss < 0 && outputs->len == 0)
        return dead;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        if (!is_live(op, live))
            g_ptr_array_add(dead.operations, g_strdup(op->name));
    }
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && !live[t])
            g_ptr_array_add(dead.variables, g_strdup(tensor->name));
    }
    return dead;
}

void mtf_dead_parts_clear(MtfDeadParts *dead) {
    g_ptr_array_unref(dead->operations);
    g_ptr_array_unref(dead->variables);
}

void mtf_graph_keep_needed(MtfGraph *graph) {
    g_autofree bool *live = live_tensors(graph);
    g_autofree int *order = g_new(int, graph->operations->len + 1);
    int n = 0;
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (is_live(mtf_graph_operation(graph, o), live))
            order[n++] = o;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && !live[t] && tensor->stored == NULL)
            mtf_graph_drop_variable(graph, t);
    }
    mtf_graph_arrange(graph, order, n);
}

void mtf_graph_drop_dead(MtfGraph *graph) {
    if (graph->loss >= 0)
        mtf_graph_keep_needed(graph);
}
