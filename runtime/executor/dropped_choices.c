// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/dropped_choices.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/slice.h"

static bool drops(const MtfOperation *operation) {
    return mtf_operation_row(operation->kind)->shown == MTF_SHOWN_DROPPED &&
           operation->attributes.capacity >= 0;
}

bool mtf_dropped_may_be(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (drops(mtf_graph_operation(graph, i)))
            return true;
    return false;
}

void mtf_dropped_look(MtfDropped *dropped, const MtfWorker *worker, int index) {
    const MtfKernelCall *call = &worker->calls[index];
    if (!drops(call->operation))
        return;
    int64_t n = mtf_slice_elements(&call->outputs[0]);
    for (int64_t i = 0; i < n; i++)
        dropped->dropped += mtf_slice_get(&call->outputs[0], i) < 0;
    dropped->all += (double)n;
}
