// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions: conv, conv_transpose and conv_filter_grad are the same sum over three operands, of
 * which two are read and one is made.
 *
 *     y[n, o, f] = sum over places p and channels c of x[n, o stride - before + p dilation, c] w[p, c, f] */
#ifndef MTF_KERNEL_CONV_H
#define MTF_KERNEL_CONV_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_conv_kernels[];

#endif
