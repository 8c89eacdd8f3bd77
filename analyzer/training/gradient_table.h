// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of gradients, keyed like the operation table: how a gradient travels from an
 * operation's result back to its inputs. With dy = dloss/dy of y = f(x…), a rule appends the
 * operations that compute its inputs' shares and hands each to mtf_gradient_give.
 *
 *     y = einsum(a, b)        a gets einsum(dy, b), b gets einsum(dy, a)
 *     y = softmax_apply(x, max, sum)     x gets all of it: y (dy - sum of y dy)
 *
 * The pieces of softmax, layer_norm and cross entropy hand the whole gradient to the tensor whose
 * statistics they use; nothing flows through the statistics themselves. That is right only for the
 * statistics of that same tensor, which the rules check. */
#ifndef MTF_GRADIENT_TABLE_H
#define MTF_GRADIENT_TABLE_H

#include "layouts/building/builder.h"

/* One operation on the way back. */
typedef struct {
    MtfBuilder *b;
    MtfOperation op;    /* a copy of the operation, with strings and inputs of its own */
    int dy;             /* gradient of its first output, or -1 */
    int dy_further;     /* that of its second, or -1; of one of the two there is one */
    const bool *wanted; /* by tensor of the forward graph: leads to a variable */
    void *taker;        /* of mtf_gradient_give */
} MtfGradient;

typedef void (*MtfGradientRule)(MtfGradient *gradient);

typedef enum {
    MTF_GRADIENT_MISSING, /* an error of this table: a test finds it */
    MTF_GRADIENT_RULE,
    MTF_GRADIENT_ZERO, /* piecewise constant, cut off on purpose, or from nothing */
    MTF_GRADIENT_NONE, /* not differentiated: composites (rewritten before, without a row), gradients, updates */
} MtfGradientState;

typedef struct {
    MtfGradientState state;
    MtfGradientRule rule;
} MtfGradientRow;

/* The row of a kind of operation; it lives as long as the program. */
const MtfGradientRow *mtf_gradient_row(int kind);

/* Called by rules, defined in differentiate.c: `tensor` receives `share`, which has its dimensions
 * in its order. Takes a share of -1 (after an error) silently. */
void mtf_gradient_give(MtfGradient *gradient, int tensor, int share);

/* Likewise: takes back what `tensor` has been given so far, if all of it is one share of the given
 * type, so that a rule can add to it; else returns -1 and leaves everything as it is. */
int mtf_gradient_take(MtfGradient *gradient, int tensor, MtfDtype dtype);

#endif
