// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/compared_tensors.h"

#include "layouts/graph/operation_table.h"

bool *mtf_compared_tensors(const MtfGraph *graph) {
    bool *compared = g_new0(bool, graph->tensors->len + 1);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool compares = mtf_operation_row(op->kind)->dtype == MTF_DTYPE_TRUTH;
        for (int k = 0; compares && k < op->n_inputs; k++)
            compared[op->inputs[k]] =
                consumers->starts[op->inputs[k] + 1] - consumers->starts[op->inputs[k]] > 1;
    }
    return compared;
}
