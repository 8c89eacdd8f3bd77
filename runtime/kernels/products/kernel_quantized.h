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

/* Its row (kernel.h). */
extern const MtfKernelRow mtf_quantized_kernels[];

#endif
