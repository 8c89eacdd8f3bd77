// SPDX-License-Identifier: GPL-3.0-or-later
/* One matrix product of a plan, by the routine of OpenBLAS that suits: gemm, or gemv and dot where
 * rows, columns or both are single. The only file pair that knows cblas. */
#ifndef MTF_KERNEL_PRODUCT_H
#define MTF_KERNEL_PRODUCT_H

#include "layouts/contraction.h"
#include "runtime/kernel.h"

/* result = left right over the plan's loops m, n, k, with each operand as the plan stores it and
 * begun at offset[t] elements; with `adds`, result += left right. */
void mtf_product(const MtfContraction *plan, const MtfOperand operands[MTF_TERMS],
                 const int64_t offset[MTF_TERMS], bool adds);

#endif
