// SPDX-License-Identifier: GPL-3.0-or-later
/* How long the rows are that a kernel goes through. Kernels that work element by element, or fold
 * some dimensions, have one inner loop over what lies side by side in all their operands, and do
 * something once a row:
 *
 *     y[b, l, m] = x[b, l, m] * s[b, l]    rows of m
 *     y[m]       = sum of x[b, l, m]       rows of m
 *     y[b, l, m] = gelu(x[b, l, m])        no rows: all is one
 *
 * Rotary positions are turned place by place: their rows are the b h vectors that share a position,
 * whose sines and cosines are computed once.
 *
 *     y[b, l, h, d] = rotary of x[b, l, h, d] by l and d
 */
#ifndef MTF_ROW_LENGTH_H
#define MTF_ROW_LENGTH_H

#include "layouts/graph/operation_table.h"

/* Elements of a row that a convolution's channel counts as. */
#define MTF_CHANNEL_ELEMENTS 2

/* The elements of a row of `operation` on a processor that holds sizes[i] points of index i of its
 * iteration space: the product of the last dimensions of its largest operand that the same operands
 * have, or the vectors that have a position in common. 0 where all is one row, and for operations of
 * other kinds. */
double mtf_operation_row_length(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const int64_t *sizes);

#endif
