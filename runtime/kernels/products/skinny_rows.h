// SPDX-License-Identifier: GPL-3.0-or-later
/* A few rows times a large matrix that is read once as it lies, widened in registers (where the processor
 * is as fast with it, bfloat16 goes in as it is: skinny_pairs.h):
 *
 *     its lines are rows       eight of them at a time      y[m][] += x[m][k] w[k][]
 *     its lines are columns    four of them at a time       y[m][n] = x[m] . w[n]
 *
 * Sums are kept in float32, in an order that the shape alone decides. */
#ifndef MTF_SKINNY_ROWS_H
#define MTF_SKINNY_ROWS_H

#include "runtime/kernels/base/kernel.h"

/* x is m rows of k, y m rows of n, all contiguous. */
typedef struct {
    const float *x;
    const void *w;
    float *y;
    int64_t m, n, k;
    int64_t apart; /* elements from one line of the matrix to the next */
    bool dots;     /* its lines are columns: k elements each */
} MtfSkinny;

/* y = x w, where w is of float32, int8, or bfloat16, beside which x holds what bfloat16 can. `progress`
 * may be NULL. */
void mtf_skinny_rows(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress);

/* The same on every processor. */
void mtf_skinny_widened(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress);

#endif
