// SPDX-License-Identifier: GPL-3.0-or-later
/* Products with int8 weights: y[m, n] = scale[n] times the sum over k of x[m, k] w[k, n]. The weights
 * are read as they lie. Few rows meet them in registers (skinny_rows.h); for many, panels of columns
 * are widened to float32 and multiplied by oneDNN:
 *
 *     for rows of x                    copied to float32, row by row
 *       for columns of w               a panel widened, multiplied, scaled, rounded once
 *
 * Sums are kept in float32 (float64 where x is). */
#ifndef MTF_KERNEL_QUANTIZED_H
#define MTF_KERNEL_QUANTIZED_H

#include "runtime/kernels/base/kernel.h"

/* The kernel of the operation of this name. */
void mtf_kernel_quantized_einsum(const MtfKernelCall *call);

/* As mtf_kernel_prepare and mtf_kernel_release say. */
void *mtf_quantized_prepare(const MtfKernelCall *call, int64_t *workspace_bytes);
void mtf_quantized_release(void *prepared);

#endif
