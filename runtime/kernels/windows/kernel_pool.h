// SPDX-License-Identifier: GPL-3.0-or-later
/* Pools: the largest or the mean of each window, and their gradients. */
#ifndef MTF_KERNEL_POOL_H
#define MTF_KERNEL_POOL_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_pool_kernels[];

#endif
