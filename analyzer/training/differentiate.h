// SPDX-License-Identifier: GPL-3.0-or-later
/* Reverse-mode differentiation: appends to a graph without composites the operations that compute
 * the gradient of its scalar loss for every variable that leads to it.
 *
 *     forward    x, w ──einsum──► h ──relu──► y ──…──► loss
 *     backward   grad/w ◄─ grad/h ◄─ grad/y ◄── … ◄─── grad/loss = 1
 *
 * Operations are visited in reverse, variables before other inputs, so that gradients of variables
 * appear and activations die as early as they can. The gradient of tensor T is called "grad/T";
 * several shares of it ("back/OPERATION/k": what input k of OPERATION gets) meet in one n-ary add,
 * so that partial sums merge before one reduction. Where a gradient is another one unchanged (of a
 * sum's terms) no operation is made, except for variables. Nothing is computed for tensors that no
 * variable leads to. */
#ifndef MTF_DIFFERENTIATE_H
#define MTF_DIFFERENTIATE_H

#include "layouts/graph/graph.h"

typedef struct {
    int variable;
    int gradient; /* same dimensions in the same order, same dtype; called grad/VARIABLE */
} MtfVariableGradient;

/* Returns an array of MtfVariableGradient in order of variables; free with g_array_unref. Fails
 * with a bad-input error, and leaves the graph in an unspecified state, when there is no loss, it
 * is not a scalar or not of a float type, no variable leads to it, or an operation on the way has
 * no gradient. */
GArray *mtf_differentiate(MtfGraph *graph, GError **error);

#endif
