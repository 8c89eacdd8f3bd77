// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that compute nothing: the same elements in another order, under another name or type, or
 * from nowhere. */
#ifndef MTF_KERNEL_MOVE_H
#define MTF_KERNEL_MOVE_H

#include "runtime/kernels/base/kernel.h"

/* Copies `in` to `out`, of the same element size, in out's order of dimensions; those that `in`
 * lacks are filled with copies. */
void mtf_operand_copy(const MtfOperand *out, const MtfOperand *in);

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_move_kernels[];

#endif
