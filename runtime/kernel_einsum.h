// SPDX-License-Identifier: GPL-3.0-or-later
/* Einsum: sums of products over named dimensions, as matrix products of OpenBLAS wherever there is
 * something to reuse, and as one pass over memory where there is not (elementwise products, dots,
 * sums). layouts/contraction.h decides which products. */
#ifndef MTF_KERNEL_EINSUM_H
#define MTF_KERNEL_EINSUM_H

#include "runtime/kernel.h"

void mtf_kernel_einsum(const MtfKernelCall *call);

#endif
