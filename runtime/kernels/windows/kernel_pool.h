// SPDX-License-Identifier: GPL-3.0-or-later
/* Pools: the largest or the mean of each window, and their gradients. */
#ifndef MTF_KERNEL_POOL_H
#define MTF_KERNEL_POOL_H

#include "runtime/kernels/base/kernel.h"

/* The kernels of the operations of these names. */
void mtf_kernel_max_pool(const MtfKernelCall *call);
void mtf_kernel_average_pool(const MtfKernelCall *call);
void mtf_kernel_max_pool_grad(const MtfKernelCall *call);
void mtf_kernel_average_pool_grad(const MtfKernelCall *call);

#endif
