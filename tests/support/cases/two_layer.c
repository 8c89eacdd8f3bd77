// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/two_layer.h"

#include "layouts/graph/operation_table.h"

/* Adds an operation of up to two inputs whose output has the dimensions named in `dims`. */
static int add(MtfGraph *graph, const char *name, int kind, const char *dims, int first,
               int second) {
    MtfShape shape = { 0 };
    g_auto(GStrv) names = g_strsplit(dims, " ", -1);
    for (char **dim = names; *dim != NULL && **dim != '\0'; dim++)
        mtf_shape_append(&shape, mtf_graph_find_dimension(graph, *dim));
    int inputs[2] = { first, second };
    MtfNewOperation operation = { .name = name,
                                  .kind = kind,
                                  .n_inputs = second >= 0 ? 2 : 1,
                                  .inputs = inputs,
                                  .shape = &shape,
                                  .attributes = MTF_NO_ATTRIBUTES };
    operation.attributes.factor = 0.5;
    GError *error = NULL;
    int output = mtf_graph_add_operation(graph, &operation, &error);
    if (output < 0)
        g_error("%s", error->message);
    return output;
}

MtfGraph *two_layer_graph(int64_t batch_size, int64_t io_size, int64_t hidden_size) {
    MtfGraph *graph = mtf_graph_new("two-layer");
    int batch = mtf_graph_add_dimension(graph, "batch", batch_size, NULL);
    int io = mtf_graph_add_dimension(graph, "io", io_size, NULL);
    int hidden = mtf_graph_add_dimension(graph, "hidden", hidden_size, NULL);
    MtfShape rows = { 2, { batch, io } }, in = { 2, { io, hidden } }, out = { 2, { hidden, io } };
    MtfInit init = { MTF_INIT_NORMAL, 0.1 };
    int x = mtf_graph_add_input(graph, "x", &rows, MTF_F32, MTF_FEED_FEATURES, NULL);
    int t = mtf_graph_add_input(graph, "t", &rows, MTF_F32, MTF_FEED_TARGETS, NULL);
    int w = mtf_graph_add_variable(graph, "w", &in, MTF_F32, init, MTF_MEMORY_VARIABLE, NULL);
    int v = mtf_graph_add_variable(graph, "v", &out, MTF_F32, init, MTF_MEMORY_VARIABLE, NULL);
    int h0 = add(graph, "h0", MTF_OP_EINSUM, "batch hidden", x, w);
    int h = add(graph, "h", MTF_OP_RELU, "batch hidden", h0, -1);
    int y = add(graph, "y", MTF_OP_EINSUM, "batch io", h, v);
    int e = add(graph, "e", MTF_OP_SUBTRACT, "batch io", y, t);
    int square = add(graph, "square", MTF_OP_SQUARE, "batch io", e, -1);
    graph->loss = add(graph, "loss", MTF_OP_REDUCE_MEAN, "", square, -1);
    int de = add(graph, "de", MTF_OP_SCALE, "batch io", e, -1);
    add(graph, "grad/v", MTF_OP_EINSUM, "hidden io", h, de);
    int dh = add(graph, "dh", MTF_OP_EINSUM, "batch hidden", de, v);
    int dh0 = add(graph, "dh0", MTF_OP_RELU_GRAD, "batch hidden", h, dh);
    add(graph, "grad/w", MTF_OP_EINSUM, "io hidden", x, dh0);
    return graph;
}
