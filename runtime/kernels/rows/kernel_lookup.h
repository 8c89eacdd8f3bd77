// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that choose by position or by number: embeddings and labels, whose ids mean rows of the
 * whole table, of which a slice holds some
 *
 *     table rows   0 1 2 3 4 5 6 7     ids  6 2 9 4
 *     held here          3 4 5 6       ->   row 6, zeros, zeros, row 4
 *
 * (so the sum over the ranks is right, and an id outside the whole table gives zeros); causal masks
 * and dropout, which ask where an element lies in the whole tensor; and the learning rate. */
#ifndef MTF_KERNEL_LOOKUP_H
#define MTF_KERNEL_LOOKUP_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_lookup_kernels[];

/* The rate that a learning_rate operation gives at step t (the first is 1). */
double mtf_learning_rate(const MtfAttributes *attributes, double t);

#endif
