// SPDX-License-Identifier: GPL-3.0-or-later
/* The largest elements along a dimension, and where they stand: of all elements, or one of the two kernels by which
 * parts of a split dimension choose together (layouts/placement/sort_columns.h):
 *
 *     1 each part's best, with their places ══allgather══► 2 the best of these */
#ifndef MTF_KERNEL_TOP_K_H
#define MTF_KERNEL_TOP_K_H

#include "runtime/kernels/base/kernel.h"

/* Its row (kernel.h). */
extern const MtfKernelRow mtf_top_k_kernels[];

#endif
