// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/averaged_weights.h"

#include "layouts/base/error.h"
#include "runtime/checkpoint/staged_variables.h"
#include "runtime/kernels/base/slice.h"

#include <string.h>

/* The variable whose running mean the tensor is, or -1. */
static int averaged(const MtfGraph *graph, int tensor) {
    const MtfTensor *mean = mtf_graph_tensor(graph, tensor);
    int weight = mean->mean_of != NULL ? mtf_graph_find_tensor(graph, mean->mean_of) : -1;
    if (weight < 0 || mtf_graph_tensor(graph, weight)->source != MTF_SOURCE_VARIABLE)
        return -1;
    return mtf_shape_equal(&mtf_graph_tensor(graph, weight)->shape, &mean->shape) ? weight : -1;
}

bool mtf_averaged_weights_check(const MtfGraph *graph, GError **error) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (averaged(graph, t) >= 0)
            return true;
    return mtf_input_error(error, "--ema: the plan keeps no running mean of its weights: give "
                                  "\"ema\" in the graph's \"optimizer\" (model --ema 0.999)");
}

/* A weight's slice on this rank. */
static const MtfOperand *slice_of(const MtfWorker *worker, int tensor) {
    int weight = averaged(worker->program->graph, tensor);
    return weight >= 0 ? mtf_worker_tensor(worker, weight) : NULL;
}

static gsize slice_bytes(const MtfOperand *slice) {
    return (gsize)(mtf_slice_elements(slice) * mtf_dtype_bytes(slice->dtype));
}

static void set_aside(const MtfWorker *worker, GPtrArray *aside) {
    for (int t = 0; t < (int)worker->program->graph->tensors->len; t++) {
        const MtfOperand *slice = slice_of(worker, t);
        if (slice != NULL)
            g_ptr_array_add(aside, g_bytes_new(slice->data, slice_bytes(slice)));
    }
}

static MtfStoredTensor on_the_way(const MtfGraph *graph, int mean) {
    const MtfTensor *tensor = mtf_graph_tensor(graph, mean);
    MtfStoredType type = mtf_stored_type_of(tensor->dtype);
    int64_t elements = mtf_graph_elements(graph, &tensor->shape);
    return (MtfStoredTensor){ .type = type, .end = elements * mtf_stored_type_bytes(type) };
}

static bool copy_means(const MtfCheckpointed *what, GError **error) {
    const MtfGraph *graph = mtf_checkpointed_graph(what);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(MtfStoredTensor));
    g_autofree int *means = g_new(int, graph->tensors->len);
    g_autofree int *weights = g_new(int, graph->tensors->len);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        int weight = averaged(graph, t);
        if (weight < 0)
            continue;
        MtfStoredTensor stored = on_the_way(graph, t);
        means[list->len] = t;
        weights[list->len] = weight;
        g_array_append_val(list, stored);
    }
    MtfSafetensors file = { .tensors = list };
    MtfTensorFile data = { .control = what->control,
                           .worker = what->worker,
                           .file = &file,
                           .tensors = means,
                           .targets = weights };
    uint64_t checksum;
    return mtf_staged_variables_move(what, &data, mtf_tensor_file_copy, &checksum, error);
}

bool mtf_averaged_weights_take(const MtfCheckpointed *what, GPtrArray *aside, GError **error) {
    for (int part = 0; aside != NULL && part <= what->n_more; part++)
        set_aside(mtf_checkpointed_part(what, part).worker, aside);
    return copy_means(what, error);
}

void mtf_averaged_weights_put_back(const MtfCheckpointed *what, const GPtrArray *aside) {
    guint next = 0;
    for (int part = 0; part <= what->n_more; part++) {
        const MtfWorker *worker = mtf_checkpointed_part(what, part).worker;
        for (int t = 0; t < (int)worker->program->graph->tensors->len; t++) {
            const MtfOperand *slice = slice_of(worker, t);
            if (slice != NULL)
                memcpy(slice->data, g_bytes_get_data(aside->pdata[next++], NULL),
                       slice_bytes(slice));
        }
    }
}
