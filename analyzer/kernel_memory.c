// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/kernel_memory.h"

#include "layouts/kernel_scratch.h"
#include "layouts/microbatches.h"

bool mtf_kernel_reads_last(const MtfKernelMemory *memory, int operation, int tensor) {
    const int *starts = memory->consumers->starts;
    return mtf_graph_tensor(memory->graph, tensor)->producer >= 0 &&
           tensor != memory->graph->loss && starts[tensor] < starts[tensor + 1] &&
           memory->consumers->operations[starts[tensor + 1] - 1] == operation;
}

/* Bytes of the slices of `tensor` under each strategy; free with g_free. */
static int64_t *slices(const MtfKernelMemory *memory, int tensor, const MtfOperationPort *port,
                       int strategies) {
    const MtfTensor *t = mtf_graph_tensor(memory->graph, tensor);
    g_autofree int64_t *of_placement = g_new(int64_t, port->placements->len + 1);
    int64_t *bytes = g_new(int64_t, strategies + 1);
    for (guint i = 0; i < port->placements->len; i++)
        of_placement[i] = mtf_largest_elements(memory->graph, memory->mesh, &t->shape,
                                               &g_array_index(port->placements, MtfPlacement, i)) *
                          mtf_dtype_bytes(t->dtype);
    for (int s = 0; s < strategies; s++)
        bytes[s] = of_placement[port->of[s]];
    return bytes;
}

static int64_t scratch_under(const MtfKernelMemory *memory, int operation,
                             const MtfIteration *iteration, const MtfStrategy *strategy) {
    int64_t sizes[MTF_MAX_INDEXES];
    for (int i = 0; i < iteration->n; i++) {
        int64_t parts = 1;
        for (int a = 0; a < memory->mesh->n_axes; a++)
            if (strategy->axis[a] == i)
                parts *= memory->mesh->axes[a].size;
        sizes[i] = (iteration->index[i].size + parts - 1) / parts;
    }
    return mtf_operation_scratch_bytes(memory->graph, operation, iteration, sizes);
}

static void add_scratch(const MtfKernelMemory *memory, const MtfOperationProfile *profile,
                        int operation, int64_t *bytes) {
    MtfIteration iteration;
    mtf_operation_iteration(memory->graph, operation, &iteration);
    for (guint s = 0; s < profile->strategies->len; s++)
        bytes[s] += scratch_under(memory, operation, &iteration,
                                  &g_array_index(profile->strategies, MtfStrategy, s));
}

/* Whether input k is the first that reads its tensor: of several readings the first counts. */
static bool is_first_reading(const MtfOperation *op, int k) {
    for (int i = 0; i < k; i++)
        if (op->inputs[i] == op->inputs[k])
            return false;
    return true;
}

/* Adds the inputs that are not needed afterwards. In place[s] stands the largest of them that the
 * kernel may write its result over. */
static void add_inputs(const MtfKernelMemory *memory, const MtfOperationProfile *profile,
                       int operation, int64_t *bytes, int64_t *place) {
    const MtfOperation *op = mtf_graph_operation(memory->graph, operation);
    unsigned in_place = mtf_operation_row(op->kind)->in_place;
    int n = (int)profile->strategies->len;
    for (int k = 0; k < op->n_inputs; k++) {
        if (!is_first_reading(op, k) || !mtf_kernel_reads_last(memory, operation, op->inputs[k]))
            continue;
        g_autofree int64_t *slice = slices(memory, op->inputs[k], &profile->inputs[k], n);
        for (int s = 0; s < n; s++) {
            bytes[s] += slice[s];
            if (in_place >> MIN(k, 31) & 1)
                place[s] = MAX(place[s], slice[s]);
        }
    }
}

/* Adds what the kernel writes: not the next values of variables, which may stand in the variables'
 * place, nor sums over micro-batches, which live through them all. */
static void add_outputs(const MtfKernelMemory *memory, const MtfOperationProfile *profile,
                        int operation, int64_t *bytes, const int64_t *place) {
    const MtfOperation *op = mtf_graph_operation(memory->graph, operation);
    bool adds = mtf_operation_accumulates(memory->graph, operation);
    int n = (int)profile->strategies->len;
    for (int k = 0; k < op->n_outputs; k++) {
        if (memory->updated_variable[op->outputs[k]] >= 0)
            continue;
        g_autofree int64_t *slice = slices(memory, op->outputs[k], &profile->outputs[k], n);
        for (int s = 0; s < n; s++) {
            int64_t shared = k == 0 && slice[s] <= place[s] ? slice[s] : 0;
            bytes[s] += (adds ? 0 : slice[s]) - shared;
        }
    }
}

int64_t *mtf_kernel_memory(const MtfKernelMemory *memory, const MtfOperationProfile *profile,
                           int operation) {
    gsize n = profile->strategies->len + 1;
    int64_t *bytes = g_new0(int64_t, n);
    g_autofree int64_t *place = g_new0(int64_t, n);
    add_inputs(memory, profile, operation, bytes, place);
    add_outputs(memory, profile, operation, bytes, place);
    add_scratch(memory, profile, operation, bytes);
    return bytes;
}
