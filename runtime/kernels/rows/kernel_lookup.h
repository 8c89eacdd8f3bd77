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

/* The kernels of the operations of these names. */
void mtf_kernel_embedding(const MtfKernelCall *call);
void mtf_kernel_embedding_grad(const MtfKernelCall *call);
void mtf_kernel_label_logit(const MtfKernelCall *call);
void mtf_kernel_cross_entropy_grad(const MtfKernelCall *call);
void mtf_kernel_causal_mask(const MtfKernelCall *call);
void mtf_kernel_causal_zero(const MtfKernelCall *call);
void mtf_kernel_dropout(const MtfKernelCall *call); /* random numbers of training step `step` - 1 */
void mtf_kernel_learning_rate(const MtfKernelCall *call);

/* The rate that a learning_rate operation gives at step t (the first is 1). */
double mtf_learning_rate(const MtfAttributes *attributes, double t);

#endif
