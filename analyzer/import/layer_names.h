// SPDX-License-Identifier: GPL-3.0-or-later
/* Names of what is of layers that were found (find_layers.h): "/h.3/attn/MatMul_output_0", "h.3.attn.bias" and, of the
 * same layer's product, "onnx::MatMul_71" become "h/3/attn/MatMul", "h/3/attn.bias" and "h/3/attn/MatMul/weight". */
#ifndef MTF_LAYER_NAMES_H
#define MTF_LAYER_NAMES_H

#include "layouts/graph/graph.h"

/* Layers of one block, at least two. */
typedef struct {
    MtfGraph *graph;
    int count;
    const int *layer; /* by tensor: the layer, from 1, that it belongs to; 0 or less: none */
    const int
        *first; /* by tensor: what the first layer has in its place; -1: nothing, or it is that */
} MtfFoundLayers;

/* Adds the block to the graph, and gives what is of its layers these and names. */
void mtf_found_layers_mark(const MtfFoundLayers *found);

#endif
