// SPDX-License-Identifier: GPL-3.0-or-later
/* Random small forward graphs for property tests: operations of many rows, broadcasting, sizes that
 * do not divide, every tensor used, and a scalar loss that everything flows into. The same options
 * give the same graph, so a bug report is one line. Values come from mtf_reference_fill_inputs. */
#ifndef MTF_TESTS_RANDOM_GRAPH_H
#define MTF_TESTS_RANDOM_GRAPH_H

#include "layouts/graph/graph.h"

typedef struct {
    guint32 seed;
    int dimensions;       /* 1 … 8 */
    int operations;       /* about so many before the loss */
    int64_t largest_size; /* of a dimension, at least 1 */
    MtfDtype dtype;       /* MTF_F32 or MTF_F64 */
    bool composites;      /* softmax, layer_norm and softmax_cross_entropy as users write them */
    bool more;            /* also operations that few networks have */
    bool layers;          /* also windows, norms, attention, experts, loops and losses */
    bool smooth;          /* only differentiable functions, for finite differences */
} MtfRandomGraph;

/* Draws a graph; values stay of order one when inputs and variables are. Its optimizer is sgd.
 * Without `composites` it can be lowered as it is. */
MtfGraph *mtf_random_graph(const MtfRandomGraph *options);

#endif
