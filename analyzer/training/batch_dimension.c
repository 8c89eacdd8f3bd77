// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/batch_dimension.h"

#include "layouts/base/error.h"
#include "layouts/placement/dimension_hint.h"

static const char *dim_name(const MtfGraph *graph, int dim) {
    return mtf_graph_dimension(graph, dim)->name;
}

static int common_first_dimension(const MtfGraph *graph, GError **error) {
    const MtfTensor *first = NULL;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->shape.rank == 0)
            continue;
        first = first == NULL ? tensor : first;
        if (tensor->shape.dims[0] == first->shape.dims[0])
            continue;
        mtf_input_error(error,
                        "inputs \"%s\" and \"%s\" begin with different dimensions, \"%s\" and "
                        "\"%s\": say with --batch-dim which one is the batch",
                        first->name, tensor->name, dim_name(graph, first->shape.dims[0]),
                        dim_name(graph, tensor->shape.dims[0]));
        return -1;
    }
    if (first != NULL)
        return first->shape.dims[0];
    mtf_input_error(error, "no input has a dimension, so there is no batch to divide");
    return -1;
}

int mtf_batch_dimension(const MtfGraph *graph, const char *name, GError **error) {
    if (name == NULL)
        return common_first_dimension(graph, error);
    int dim = mtf_graph_find_dimension(graph, name);
    if (dim >= 0)
        return dim;
    g_autofree char *hint = mtf_graph_dimension_hint(graph, name);
    mtf_input_error(error, "--batch-dim: the graph has no dimension \"%s\"%s", name, hint);
    return -1;
}
