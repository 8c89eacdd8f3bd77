// SPDX-License-Identifier: GPL-3.0-or-later
/* The backward pass of a loop is a loop that runs the other way round. Its states are the gradients of
 * the states, begun with those of their last values; what it reads of the forward pass was stacked there.
 *
 *     forward   s = loop_begin(a)     │ x = loop_slice(xs)   y = f(x, s, w)   loop_next(s, y) │
 *     backward  g = loop_begin(dlast) │ x, s: slices of xs and of a stack      dx, ds         │
 *               loop_next(g, ds)      │ dxs = loop_stack(dx)                                  │
 *               dw = what the iterations add up, behind the loop: where f is a product, the same product
 *                    of the stacked operands, else the sum of a stack */
#ifndef MTF_LOOP_GRADIENT_H
#define MTF_LOOP_GRADIENT_H

#include "layouts/building/builder.h"

typedef struct MtfLoopGradients MtfLoopGradients;

/* The state of one differentiation, which differentiate.c shares. All arrays are by tensor of the
 * forward graph. */
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

/* What the backward pass of the graph's loops needs; the caller frees it. */
MtfLoopGradients *mtf_loop_gradients_new(const MtfGraph *graph);
void mtf_loop_gradients_free(MtfLoopGradients *loops);

/* Differentiates the loop of operations [begin, end), whose results have been given all shares from
 * outside of it. */
void mtf_loop_gradient(Differentiation *d, int begin, int end);

/* While a loop is differentiated: whether `share` waits until the loop is over, because `tensor` was there
 * before the loop and every iteration gives it one. */
bool mtf_loop_gradient_defer(Differentiation *d, int tensor, int share);

/* When all is done: lets backward loops read what forward loops saved. What nobody needs any more
 * stays until mtf_loop_gradient_tidy. */
void mtf_loop_gradient_read_saved(Differentiation *d);

/* Brings the operations of a graph that has been differentiated into order, without those of loops that
 * lead to nothing. */
bool mtf_loop_gradient_tidy(MtfGraph *graph, GError **error);

#endif
