// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_scratch.h"

/* Buffers in the scratch start at multiples of this, as the arena itself. */
#define ALIGNMENT 64

static int64_t local_bytes(const MtfGraph *graph, int tensor, const MtfIteration *iteration,
                           const int64_t *sizes) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    int64_t bytes = mtf_dtype_bytes(t->dtype);
    for (int i = 0; i < iteration->n; i++)
        if (mtf_shape_find(&t->shape, iteration->index[i].dim) >= 0)
            bytes *= sizes[i];
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int64_t mtf_operation_scratch_bytes(const MtfGraph *graph, int operation,
                                    const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (op->kind != MTF_OP_EINSUM)
        return 0;
    int64_t bytes = local_bytes(graph, op->outputs[0], iteration, sizes);
    for (int k = 0; k < op->n_inputs; k++)
        bytes += local_bytes(graph, op->inputs[k], iteration, sizes);
    return bytes;
}
