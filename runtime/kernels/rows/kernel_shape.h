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

/* The kernels of the operations of these names. */
void mtf_kernel_resample(const MtfKernelCall *call);
void mtf_kernel_concat(const MtfKernelCall *call);
void mtf_kernel_loop_begin(const MtfKernelCall *call);
void mtf_kernel_loop_next(const MtfKernelCall *call);
void mtf_kernel_loop_slice(const MtfKernelCall *call);
void mtf_kernel_loop_stack(const MtfKernelCall *call);
void mtf_kernel_cumulative_sum(const MtfKernelCall *call);
void mtf_kernel_top_k(const MtfKernelCall *call);
void mtf_kernel_random_uniform(const MtfKernelCall *call);
void mtf_kernel_random_normal(const MtfKernelCall *call);

#endif
