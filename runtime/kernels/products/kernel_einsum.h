// SPDX-License-Identifier: GPL-3.0-or-later
/* Einsum: sums of products over named dimensions, as matrix products wherever there is something to
 * reuse, and as one pass over memory where there is not (elementwise products, dots, sums).
 * layouts/kernel_work/contraction.h decides which products. What follows from the shapes of a call alone is
 * worked out once, as a list of actions on places:
 *
 *     places    inputs 0 1 …, the output, slices of the call's scratch
 *     actions   copy 0 -> s;  products s 1 -> out;  …
 */
#ifndef MTF_KERNEL_EINSUM_H
#define MTF_KERNEL_EINSUM_H

#include "runtime/kernels/base/kernel.h"

/* Its row (kernel.h). */
extern const MtfKernelRow mtf_einsum_kernels[];

#endif
