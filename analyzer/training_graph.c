// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training_graph.h"

#include "analyzer/differentiate.h"
#include "analyzer/expand.h"
#include "analyzer/optimizer_updates.h"

MtfGraph *mtf_training_graph(const MtfGraph *forward, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_expand(forward, error);
    if (graph == NULL)
        return NULL;
    g_autoptr(GArray) gradients = mtf_differentiate(graph, error);
    if (gradients == NULL || !mtf_add_updates(graph, gradients, error))
        return NULL;
    mtf_graph_canonicalize(graph);
    return g_steal_pointer(&graph);
}

void mtf_graph_set_precision(MtfGraph *graph, MtfDtype dtype) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_dtype_is_float(mtf_graph_tensor(graph, t)->dtype))
            mtf_graph_tensor(graph, t)->dtype = dtype;
}
