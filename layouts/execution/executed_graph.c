// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/executed_graph.h"

#include "layouts/execution/offload.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph/operation_table.h"

bool mtf_graph_execute(MtfGraph *graph, const MtfKept *kept, int n, GError **error) {
    return mtf_graph_recompute(graph, kept, n, error) && mtf_graph_offload(graph, &kept[0], error);
}

static bool is_copy(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->host != MTF_HOST_NOTHING;
}

int mtf_graph_original_operation(const MtfGraph *executed, int operation) {
    const MtfOperation *op = mtf_graph_operation(executed, operation);
    if (op->origin == MTF_ORIGIN_CLONE)
        return mtf_graph_find_operation(executed, op->of);
    if (mtf_operation_row(op->kind)->host == MTF_HOST_FROM)
        return mtf_graph_tensor(executed, op->inputs[0])->producer;
    return -1;
}

/* ---- Without what was added --------------------------------------------------------------------- */

typedef struct {
    bool clones, copies; /* were added */
    int *instead;        /* by tensor: what to read in its place */
} Removal;

static bool is_added(const Removal *removal, const MtfOperation *op) {
    return (removal->clones && op->origin == MTF_ORIGIN_CLONE) || (removal->copies && is_copy(op));
}

/* What is read instead of the result of what was added: the original's, or what was copied. */
static int result_without(const MtfGraph *graph, const MtfOperation *op) {
    if (is_copy(op))
        return op->inputs[0];
    int original = mtf_graph_find_operation(graph, op->of);
    g_assert(original >= 0);
    return mtf_graph_operation(graph, original)->outputs[0];
}

/* Lets the operation read what was there before; what was added itself goes. Inputs come before their
 * readers, so theirs are known. */
static void read_originals(MtfGraph *graph, const Removal *removal, int operation, GArray *order) {
    MtfOperation *op = mtf_graph_operation(graph, operation);
    for (int k = 0; k < op->n_inputs; k++)
        op->inputs[k] = removal->instead[op->inputs[k]];
    if (is_added(removal, op))
        removal->instead[op->outputs[0]] = removal->instead[result_without(graph, op)];
    else
        g_array_append_val(order, operation);
}

MtfGraph *mtf_graph_training_of(const MtfGraph *executed, const MtfKept *kept, int n) {
    MtfGraph *graph = mtf_graph_copy(executed);
    int tensors = (int)graph->tensors->len;
    g_autofree int *instead = g_new(int, tensors + 1);
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(int));
    Removal removal = { .copies = kept[0].offload != MTF_OFFLOAD_NONE, .instead = instead };
    for (int s = 0; s < n; s++)
        removal.clones |= kept[s].recompute != MTF_RECOMPUTE_NONE;
    if (!removal.clones && !removal.copies)
        return graph;
    for (int t = 0; t < tensors; t++)
        instead[t] = t;
    for (int i = 0; i < (int)graph->operations->len; i++)
        read_originals(graph, &removal, i, order);
    mtf_graph_arrange(graph, (const int *)(const void *)order->data, (int)order->len);
    return graph;
}
