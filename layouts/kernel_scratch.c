// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_scratch.h"

#include "layouts/contraction.h"

static MtfTerm local_term(const MtfGraph *graph, int tensor, const MtfIteration *iteration,
                          const int64_t *sizes) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    MtfTerm term = { .rank = shape->rank };
    for (int i = 0; i < shape->rank; i++) {
        term.dims[i] = shape->dims[i];
        for (int j = 0; j < iteration->n; j++)
            if (iteration->index[j].dim == shape->dims[i])
                term.size[i] = sizes[j];
    }
    return term;
}

int64_t mtf_operation_scratch_bytes(const MtfGraph *graph, int operation,
                                    const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (op->kind != MTF_OP_EINSUM || op->n_inputs < 2)
        return 0;
    g_autofree MtfTerm *terms = g_new(MtfTerm, (gsize)op->n_inputs);
    for (int k = 0; k < op->n_inputs; k++)
        terms[k] = local_term(graph, op->inputs[k], iteration, sizes);
    MtfTerm result = local_term(graph, op->outputs[0], iteration, sizes);
    int64_t element_bytes = mtf_dtype_bytes(mtf_graph_tensor(graph, op->outputs[0])->dtype);
    return mtf_einsum_scratch_bytes(terms, op->n_inputs, &result, element_bytes);
}
