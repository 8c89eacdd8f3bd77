// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/executed_graph.h"

#include "layouts/execution/accumulation.h"
#include "layouts/execution/early_updates.h"
#include "layouts/execution/key_parts.h"
#include "layouts/execution/key_ring.h"
#include "layouts/execution/offload.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

/* Updates wait for the last micro-batch, or follow their gradients. */
static bool divide_batch(MtfGraph *graph, const MtfDivision *division, GError **error) {
    bool divided = division->microbatches > 1 || division->own_pass;
    if (divided && !mtf_graph_divide_batch(graph, division->batch, division->microbatches, error))
        return false;
    if (!mtf_graph_check_microbatches(graph, error) || !mtf_graph_accumulate(graph, error))
        return false;
    if (!divided)
        mtf_update_early(graph);
    return true;
}

bool mtf_graph_execute(MtfGraph *graph, const MtfDivision *division, const MtfKept *kept, int n,
                       GError **error) {
    return divide_batch(graph, division, error) &&
           mtf_graph_ring_keys(graph, division->ring, error) &&
           mtf_graph_split_keys(graph, division->key_parts, error) &&
           mtf_graph_recompute(graph, kept, n, error) && mtf_graph_offload(graph, &kept[0], error);
}

int mtf_graph_original_operation(const MtfGraph *executed, int operation) {
    const MtfOperation *op = mtf_graph_operation(executed, operation);
    if (op->origin == MTF_ORIGIN_CLONE)
        return mtf_graph_find_operation(executed, op->of);
    if (mtf_operation_row(op->kind)->host == MTF_HOST_FROM)
        return mtf_graph_tensor(executed, op->inputs[0])->producer;
    return -1;
}
