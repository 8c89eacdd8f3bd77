// SPDX-License-Identifier: GPL-3.0-or-later
/* Sorting along a dimension, and bringing gradients back to where their elements stood: all of it, or one of the
 * four kernels that sort by columns (layouts/placement/sort_columns.h). Elements are sorted with their
 * places, in which equal ones keep their order, by merging runs that are in order already: of columns that
 * come of other columns there are few. */
#ifndef MTF_KERNEL_SORT_H
#define MTF_KERNEL_SORT_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_sort_kernels[];

#endif
