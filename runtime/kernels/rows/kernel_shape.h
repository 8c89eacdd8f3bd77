// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that move, scan and rank elements along one dimension. A slice is seen as
 *
 *     x[outer, along, inner]        inner elements lie side by side, `along` is the dimension
 *
 * and what an operation moves are runs of `inner` elements. Elements that this rank does not hold count
 * as 0 here, and as themselves on the rank that has them. */
#ifndef MTF_KERNEL_SHAPE_H
#define MTF_KERNEL_SHAPE_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_shape_kernels[];

#endif
