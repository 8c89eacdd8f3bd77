// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/early_updates.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"

#include <stdlib.h>

/* Where an operation goes: behind operation `after` of the other phases, ties in the old order. */
typedef struct {
    int after, operation;
} Place;

static bool is_update(const MtfGraph *graph, int operation) {
    return mtf_graph_operation(graph, operation)->phase == MTF_PHASE_UPDATE;
}

/* The last operation of another phase that reads the tensor, in whichever type; or -1. */
static int last_reader(const MtfGraph *graph, const MtfConsumers *consumers, int tensor) {
    int last = -1;
    for (int c = consumers->starts[tensor]; c < consumers->starts[tensor + 1]; c++) {
        const MtfOperation *op = mtf_graph_operation(graph, consumers->operations[c]);
        if (op->phase == MTF_PHASE_UPDATE)
            continue;
        last = MAX(last, consumers->operations[c]);
        if (mtf_operation_row(op->kind)->converts)
            last = MAX(last, last_reader(graph, consumers, op->outputs[0]));
    }
    return last;
}

/* For each tensor: the last reader of the variable whose next value it is, and not before the loss,
 * without which nothing is updated; or -1. */
static int *find_barriers(const MtfGraph *graph) {
    int loss = graph->loss < 0 ? -1 : mtf_graph_tensor(graph, graph->loss)->producer;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    int *barriers = g_new(int, graph->tensors->len + 1);
    for (guint t = 0; t < graph->tensors->len; t++)
        barriers[t] = -1;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        barriers[update->value] = MAX(loss, last_reader(graph, consumers, update->variable));
    }
    return barriers;
}

/* Everything that an update waits for has its place already; a loop is waited for to its end. */
static int place_of(const MtfGraph *graph, const Place *places, const int *barriers,
                    const int *ends, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    int after = -1;
    if (!is_update(graph, operation))
        return operation;
    for (int k = 0; k < op->n_inputs; k++) {
        int producer = mtf_graph_tensor(graph, op->inputs[k])->producer;
        if (producer >= 0)
            after = MAX(after, places[producer].after);
    }
    for (int k = 0; k < op->n_outputs; k++)
        after = MAX(after, barriers[op->outputs[k]]);
    int loop = after >= 0 ? mtf_graph_operation(graph, after)->loop : 0;
    return loop > 0 ? ends[loop] - 1 : after;
}

static int compare_places(const void *left, const void *right) {
    const Place *a = left, *b = right;
    return a->after != b->after ? a->after - b->after : a->operation - b->operation;
}

void mtf_update_early(MtfGraph *graph) {
    int n = (int)graph->operations->len;
    if (graph->updates->len == 0)
        return;
    g_autofree Place *places = g_new(Place, n + 1);
    g_autofree int *order = g_new(int, n + 1);
    g_autofree int *barriers = find_barriers(graph);
    g_auto(MtfLoopSpans) spans = mtf_loop_spans(graph);
    for (int i = 0; i < n; i++)
        places[i] = (Place){ place_of(graph, places, barriers, spans.ends, i), i };
    qsort(places, (size_t)n, sizeof *places, compare_places);
    for (int i = 0; i < n; i++)
        order[i] = places[i].operation;
    mtf_graph_arrange(graph, order, n);
}
