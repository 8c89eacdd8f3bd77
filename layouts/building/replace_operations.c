// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/building/replace_operations.h"

#include "layouts/base/error.h"

static int count_replaced(const MtfGraph *graph, const MtfReplacement *replacement, int parts) {
    int count = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        count += replacement->applies(graph, mtf_graph_operation(graph, i), parts);
    return count;
}

int mtf_dimension_below(MtfBuilder *b, int dim, const char *what, int64_t size) {
    MtfGraph *graph = b->graph;
    g_autofree char *name = g_strdup_printf("%s/%s", mtf_graph_dimension(graph, dim)->name, what);
    bool even = mtf_graph_dimension(graph, dim)->even;
    int below = mtf_graph_find_dimension(graph, name);
    if (below < 0 && b->error == NULL)
        below = mtf_graph_add_dimension(graph, name, size, &b->error);
    if (below >= 0)
        mtf_graph_dimension(graph, below)->even = even;
    return below;
}

/* The operation gives its name to what makes its result now. */
static void replace(MtfBuilder *b, const MtfReplacement *replacement, int operation, int parts,
                    int *results) {
    MtfOperation op = *mtf_graph_operation(b->graph, operation);
    g_autofree char *name = g_strdup(op.name), *whole = g_strdup_printf("%s/whole", op.name);
    mtf_build_rename(b, op.outputs[0], whole);
    b->phase = op.phase;
    b->stage = op.stage;
    b->layer = op.layer;
    b->origin = MTF_ORIGIN_PART;
    b->of = name;
    replacement->build(b, &op, name, parts, results);
}

/* Replaces all, behind the others for the moment; `order` receives where they belong, `now` what
 * results are read as. */
static void replace_all(MtfBuilder *b, const MtfReplacement *replacement, int parts, GArray *order,
                        int *now) {
    int n = (int)b->graph->operations->len;
    for (int i = 0; i < n && b->error == NULL; i++) {
        int results[MTF_REPLACED_OUTPUTS], from = (int)b->graph->operations->len;
        if (!replacement->applies(b->graph, mtf_graph_operation(b->graph, i), parts)) {
            g_array_append_val(order, i);
            continue;
        }
        replace(b, replacement, i, parts, results);
        const MtfOperation *op = mtf_graph_operation(b->graph, i);
        for (int k = 0; k < op->n_outputs; k++)
            now[op->outputs[k]] = results[k];
        for (int made = from; made < (int)b->graph->operations->len; made++)
            g_array_append_val(order, made);
    }
}

static void read_results(MtfGraph *graph, const int *now, int tensors) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] < tensors)
                op->inputs[k] = now[op->inputs[k]];
    }
}

bool mtf_replace_operations(MtfGraph *graph, const MtfReplacement *replacement, int parts,
                            GError **error) {
    if (parts <= 1)
        return true;
    if (count_replaced(graph, replacement, parts) == 0)
        return mtf_input_error(error, "%s: \"%s\" has no %s %d parts divide, outside of loops",
                               replacement->option, graph->name, replacement->what, parts);
    int tensors = (int)graph->tensors->len;
    g_autofree int *now = g_new(int, tensors + 1);
    for (int t = 0; t < tensors; t++)
        now[t] = t;
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(int));
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_FORWARD);
    replace_all(&b, replacement, parts, order, now);
    if (!mtf_builder_end(&b, error))
        return false;
    read_results(graph, now, tensors);
    mtf_graph_arrange(graph, (const int *)(const void *)order->data, (int)order->len);
    return true;
}
