// SPDX-License-Identifier: GPL-3.0-or-later
/* Rotary positions (operation_table.h has the formulas). The sines and cosines of one position are
 * computed once, in double, and serve all examples and heads at that position:
 *
 *     for each position p        u_i = angle p f_i
 *         for each other index   (x_i, x_j) -> (x_i cos u_i - x_j sin u_i, x_j cos u_i + x_i sin u_i)
 */
#ifndef MTF_KERNEL_ROTARY_H
#define MTF_KERNEL_ROTARY_H

#include "runtime/kernels/base/kernel.h"

/* Its row (kernel.h). */
extern const MtfKernelRow mtf_rotary_kernels[];

#endif
