// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/layout.h"

#include "layouts/error.h"

MtfLayout *mtf_layout_new(const MtfGraph *graph, const MtfMesh *mesh) {
    MtfLayout *layout = g_new0(MtfLayout, 1);
    layout->mesh = *mesh;
    layout->n_tensors = (int)graph->tensors->len;
    layout->n_operations = (int)graph->operations->len;
    layout->tensors = g_new(MtfPlacement, layout->n_tensors);
    layout->operations = g_new(MtfStrategy, layout->n_operations);
    for (int t = 0; t < layout->n_tensors; t++)
        layout->tensors[t] = mtf_placement_whole();
    for (int i = 0; i < layout->n_operations; i++)
        layout->operations[i] = mtf_strategy_copies();
    return layout;
}

MtfLayout *mtf_layout_copy(const MtfLayout *layout) {
    MtfLayout *copy = g_new0(MtfLayout, 1);
    *copy = *layout;
    copy->rules = g_strdup(layout->rules);
    copy->tensors = g_memdup2(layout->tensors, sizeof(MtfPlacement) * (gsize)layout->n_tensors);
    copy->operations =
        g_memdup2(layout->operations, sizeof(MtfStrategy) * (gsize)layout->n_operations);
    return copy;
}

void mtf_layout_free(MtfLayout *layout) {
    if (layout == NULL)
        return;
    g_free(layout->rules);
    g_free(layout->tensors);
    g_free(layout->operations);
    g_free(layout);
}

bool mtf_layout_check(const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    for (int t = 0; t < layout->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (!mtf_placement_check(graph, &layout->mesh, t, &layout->tensors[t], error))
            return false;
        if (tensor->producer < 0 && mtf_placement_partial_axes(&layout->tensors[t]) != 0)
            return mtf_input_error(error, "tensor \"%s\" is no result and cannot be partial",
                                   tensor->name);
    }
    for (int i = 0; i < layout->n_operations; i++)
        if (!mtf_strategy_check(graph, &layout->mesh, i, &layout->operations[i], error))
            return false;
    return true;
}
