// SPDX-License-Identifier: GPL-3.0-or-later
/* One matrix product of a plan, by the routine of OpenBLAS that suits: gemm, or gemv and dot where
 * rows, columns or both are single; and plain products of matrices. The only file pair that knows
 * cblas. */
#ifndef MTF_KERNEL_PRODUCT_H
#define MTF_KERNEL_PRODUCT_H

#include "layouts/contraction.h"
#include "runtime/kernel.h"

/* result = left right over the plan's loops m, n, k, with each operand as the plan stores it and
 * begun at offset[t] elements; with `adds`, result += left right. */
void mtf_product(const MtfContraction *plan, const MtfOperand operands[MTF_TERMS],
                 const int64_t offset[MTF_TERMS], bool adds);

/* A row-major matrix whose rows lie `stride` elements apart; `turned`: its transpose is meant. */
typedef struct {
    void *data;
    int64_t rows, columns, stride;
    bool turned;
} MtfMatrix;

/* c = alpha a b + beta c, where c is not turned, of float32 or float64; nothing is empty. */
void mtf_matrix_product(MtfDtype dtype, double alpha, const MtfMatrix *a, const MtfMatrix *b,
                        double beta, const MtfMatrix *c);

#endif
