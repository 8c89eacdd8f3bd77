// SPDX-License-Identifier: GPL-3.0-or-later
/* Linear attention, its gradients and what goes on from a kept state (layouts/kernel_work/linear_work.h). */
#ifndef MTF_KERNEL_LINEAR_H
#define MTF_KERNEL_LINEAR_H

#include "runtime/kernels/base/kernel.h"

extern const MtfKernelRow mtf_linear_kernels[];

#endif
