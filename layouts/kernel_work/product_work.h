// SPDX-License-Identifier: GPL-3.0-or-later
/* What a sum of products really does on one processor, by the plan that its kernel follows
 * (contraction.h): a number of equal matrix products, and passes over memory beside them. And
 * what attention does, head by head.
 *
 *     s[b, h, l, t] = q[b, l, h, d] k[b, t, h, d]      b h products of l x d by d x t
 *     y[b, l, f]    = x[b, l, m] w[m, f]               1 product of b l x m by m x f
 *     n[b, l]       = y[b, l, t] z[b, l, t]            no product: one pass over y, z and n
 *
 * A rate that depends on flops alone would say the same of all three. */
#ifndef MTF_PRODUCT_WORK_H
#define MTF_PRODUCT_WORK_H

#include "layouts/graph/operation_table.h"

/* How the operands of c = a b lie in memory while c lies row by row: each row by row; b column by
 * column, as for the gradient of an input (BLAS's NT); or a, as for the gradient of weights (TN),
 * whatever b does. A c that lies column by column is c' = b' a'. The last two are no products but
 * attention of one head and its gradient: m queries that look at n keys each, of k features. */
typedef enum {
    MTF_PRODUCT_NN,
    MTF_PRODUCT_NT,
    MTF_PRODUCT_TN,
    MTF_PRODUCT_ATTENTION,
    MTF_PRODUCT_ATTENTION_GRAD,
    MTF_PRODUCT_FORMS
} MtfProductForm;

typedef struct {
    double calls;   /* products of m x k by k x n, one after another; 0: none */
    double m, n, k; /* of the largest pair, where there are several terms; so is the form */
    MtfProductForm form;
    double spared_bytes; /* by the right side, which takes less than the other two's type does */
    double channels[2];  /* of a convolution's two sides, local, which lie next to each other in
                            memory; 0 of other products */
    double swept_bytes;  /* read and written by passes beside the products: copies in an order that
                            suits them, sums and products element by element */
} MtfProductWork;

/* The work of `operation` on a processor that holds sizes[i] points of index i of its iteration
 * space and has mtf_operation_scratch_bytes of scratch. All zero unless it is an einsum, a convolution or
 * attention, linear or not. With more than two terms, the smaller products count as calls of the largest, in
 * proportion to their multiply-adds. */
MtfProductWork mtf_operation_product_work(const MtfGraph *graph, int operation,
                                          const MtfIteration *iteration, const int64_t *sizes);

/* The harmonic mean h = 3 / (1/m + 1/n + 1/k) of the sides of the products that attention and its
 * gradient really do, block by block (kernel_scratch.h): queries by keys by features, at most
 * MTF_ATTENTION_QUERIES and MTF_ATTENTION_KEYS of them. 0 for every other operation. */
double mtf_operation_block_side(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const int64_t *sizes);

#endif
