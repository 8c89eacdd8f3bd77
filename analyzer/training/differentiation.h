// SPDX-License-Identifier: GPL-3.0-or-later
/* The state of one differentiation, which differentiate.c and loop_gradient.c share. All arrays are by
 * tensor of the forward graph. */
#ifndef MTF_DIFFERENTIATION_H
#define MTF_DIFFERENTIATION_H

#include "analyzer/training/builder.h"

typedef struct MtfLoopGradients MtfLoopGradients;

typedef struct {
    MtfBuilder b;
    int n_tensors;
    bool *wanted;    /* a variable leads to it, and it is of a float type */
    GArray **shares; /* of int: what it has been given; NULL = nothing */
    int *gradients;  /* their sum, once complete; else -1 */
    bool *meets;     /* of a variable: its shares are sums of several stages, yet to be added */
    int *stages;     /* the pipeline stage that a tensor belongs to (mtf_graph_tensor_stages) */
    MtfLoopGradients *loops; /* NULL: the graph has none */
} Differentiation;

/* Makes the gradient of a tensor that has been given all its shares, if it was given any. */
void mtf_gradient_complete(Differentiation *d, int tensor);

/* Completes the gradient of an operation's result and gives its inputs their shares. */
void mtf_gradient_visit(Differentiation *d, int index);

#endif
