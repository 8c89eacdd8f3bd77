// SPDX-License-Identifier: GPL-3.0-or-later
/* One matrix product of a plan, by the routine that suits: gemm, or OpenBLAS's gemv and dot where
 * rows, columns or both are single. The only file pair that knows cblas. */
#ifndef MTF_KERNEL_PRODUCT_H
#define MTF_KERNEL_PRODUCT_H

#include "layouts/kernel_work/contraction.h"
#include "runtime/kernels/base/kernel.h"

/* c[m, n] = a[m, k] b[k, n], or c += a b, of row-major matrices in float32; a turned one lies
 * column by column. lda, ldb, ldc are the elements from one line to the next. */
typedef struct {
    bool a_turned, b_turned, adds;
    int m, n, k;
    const float *a, *b;
    float *c;
    int lda, ldb, ldc;
    const MtfProgressHook *progress; /* or NULL */
} MtfGemm;

/* A routine for matrices of more than one row and column: OpenBLAS's here, oneDNN's in
 * kernel_products.h. */
typedef void (*MtfGemmRoutine)(const MtfGemm *gemm);
void mtf_openblas_gemm(const MtfGemm *gemm);

/* The same in float64. */
typedef struct {
    bool a_turned, b_turned, adds;
    int m, n, k;
    const double *a, *b;
    double *c;
    int lda, ldb, ldc;
} MtfWideGemm;

/* One product as OpenBLAS computes it. */
void mtf_openblas_wide_gemm(const MtfWideGemm *gemm);

/* result = left right over the plan's loops m, n, k, with each operand as the plan stores it and
 * begun at offset[t] elements; with `adds`, result += left right. `gemm` multiplies matrices of
 * float32. */
void mtf_product(const MtfContraction *plan, const MtfOperand operands[MTF_TERMS],
                 const int64_t offset[MTF_TERMS], bool adds, MtfGemmRoutine gemm,
                 const MtfProgressHook *progress);

#endif
