// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/training_graph.h"

#include "analyzer/training/differentiate.h"
#include "analyzer/training/early_updates.h"
#include "analyzer/training/expand.h"
#include "analyzer/training/loop_gradient.h"
#include "analyzer/training/microbatch_graph.h"
#include "analyzer/training/optimizer_updates.h"
#include "layouts/base/error.h"

/* Which parts of a step are bfloat16 is decided for the whole of it. */
static bool check_types(const MtfGraph *forward, GError **error) {
    for (int t = 0; t < (int)forward->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(forward, t);
        if (tensor->dtype == MTF_BF16)
            return mtf_input_error(error,
                                   "tensor \"%s\" is bfloat16; write the graph in float32 and plan "
                                   "it with --precision bf16",
                                   tensor->name);
    }
    return true;
}

MtfGraph *mtf_training_graph(const MtfGraph *forward, GError **error) {
    g_autofree char *loss = NULL;
    int divisor;
    g_autoptr(MtfGraph) graph = NULL;
    if (!check_types(forward, error) || (graph = mtf_expand(forward, error)) == NULL ||
        !mtf_accumulate_loss(graph, &divisor, &loss, error))
        return NULL;
    g_autoptr(GArray) gradients = mtf_differentiate(graph, error);
    if (gradients == NULL ||
        (divisor >= 0 && !mtf_divide_by_weights(graph, divisor, loss, gradients, error)) ||
        !mtf_add_updates(graph, gradients, error) || !mtf_loop_gradient_tidy(graph, error))
        return NULL;
    mtf_update_early(graph);
    return g_steal_pointer(&graph);
}

void mtf_graph_set_precision(MtfGraph *graph, MtfDtype dtype) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_dtype_is_float(mtf_graph_tensor(graph, t)->dtype))
            mtf_graph_tensor(graph, t)->dtype = dtype;
}
