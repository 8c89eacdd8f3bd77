// SPDX-License-Identifier: GPL-3.0-or-later
/* Products of rows with the matrix of the expert that each has, and their gradient. Rows are sorted by
 * expert, or lie in a few runs of one expert each, and every run is one matrix product:
 *
 *     expert  0 0 0 2 2 5 | 0 1 1 …      x[0:3] w[0], x[3:5] w[2], x[5:6] w[5], x[6:7] w[0], …
 *
 * Rows of experts that are not held here, and of none (-1), give 0. */
#ifndef MTF_KERNEL_EXPERTS_H
#define MTF_KERNEL_EXPERTS_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_expert_kernels[];

#endif
