// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/microbatches.h"

#include "layouts/error.h"

static bool is_repeated(const MtfGraph *graph, int operation) {
    return graph->microbatches > 1 &&
           mtf_graph_operation(graph, operation)->phase <= MTF_PHASE_BACKWARD;
}

int mtf_graph_repeated(const MtfGraph *graph) {
    int n = 0;
    while (n < (int)graph->operations->len && is_repeated(graph, n))
        n++;
    return n;
}

int mtf_operation_times(const MtfGraph *graph, int operation) {
    return is_repeated(graph, operation) ? graph->microbatches : 1;
}

int64_t mtf_graph_step_size(const MtfGraph *graph, int dim) {
    return mtf_graph_size(graph, dim) * (dim == graph->batch ? graph->microbatches : 1);
}

bool mtf_graph_check_microbatches(const MtfGraph *graph, GError **error) {
    int n = mtf_graph_repeated(graph);
    for (int i = n; i < (int)graph->operations->len; i++)
        if (is_repeated(graph, i))
            return mtf_input_error(error,
                                   "operation \"%s\" (%s) runs once a micro-batch and must stand "
                                   "before \"%s\" (%s), which runs once a step",
                                   mtf_graph_operation(graph, i)->name,
                                   mtf_phase_name(mtf_graph_operation(graph, i)->phase),
                                   mtf_graph_operation(graph, n)->name,
                                   mtf_phase_name(mtf_graph_operation(graph, n)->phase));
    return true;
}
