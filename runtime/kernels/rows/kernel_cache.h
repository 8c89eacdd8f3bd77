// SPDX-License-Identifier: GPL-3.0-or-later
/* Caches of keys and values, which grow by the tokens at hand:
 *
 *     cache  k0 k1 k2 .  .  .      position 3, two tokens
 *     then   k0 k1 k2 x0 x1 .      what would lie behind the end is left out */
#ifndef MTF_KERNEL_CACHE_H
#define MTF_KERNEL_CACHE_H

#include "runtime/kernels/base/kernel.h"

/* Its row (kernel.h). */
extern const MtfKernelRow mtf_cache_kernels[];

#endif
