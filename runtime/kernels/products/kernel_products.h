// SPDX-License-Identifier: GPL-3.0-or-later
/* The products of a contraction plan, over all its outer loops, by the way that suits. Ways are
 * rivals behind one table; one that cannot do a product says so:
 *
 *     openblas       one call of OpenBLAS a product
 *     sgemm          one call of oneDNN's sgemm a product; float32
 *     matmul         oneDNN's batched product, one call for all; float32, and bfloat16 where the
 *                    processor has instructions for it
 *     widened        products of bfloat16: panels are widened and multiplied by OpenBLAS
 *     widened-sgemm  the same, multiplied by oneDNN's sgemm
 *     skinny         a few rows with a large matrix that is read once as it lies
 *
 * Which way it is product_choice.h decides, from shapes, types and rates. All is prepared when a
 * plan is loaded; running allocates nothing.
 */
#ifndef MTF_KERNEL_PRODUCTS_H
#define MTF_KERNEL_PRODUCTS_H

#include "layouts/kernel_work/contraction.h"
#include "runtime/kernels/base/kernel.h"
#include "runtime/kernels/products/kernel_product.h"

typedef struct {
    const char *name;
    /* What `run` needs, and the bytes of workspace; NULL when the way does not apply. */
    void *(*prepare)(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                     int64_t *workspace_bytes);
    void (*run)(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                const MtfProgressHook *progress);
    void (*release)(void *prepared);
} MtfProductsWay;

/* In the order in which equals are preferred. */
typedef enum {
    MTF_WAY_OPENBLAS,
    MTF_WAY_SGEMM,
    MTF_WAY_MATMUL,
    MTF_WAY_WIDENED,
    MTF_WAY_WIDENED_SGEMM,
    MTF_WAY_SKINNY,
    MTF_PRODUCT_WAYS
} MtfProductWay;

/* Rows that the way of few rows takes, at most. */
#define MTF_SKINNY_ROWS 8

/* Multiply-adds in all below which nothing goes to oneDNN unasked: it makes its code first, which takes
 * 12 ms, and where it is a fifth faster than OpenBLAS that is won back after 20,000 such products. */
#define MTF_LEAST_ONEDNN_WORK (INT64_C(1) << 16)

extern const MtfProductsWay mtf_products_openblas, mtf_products_sgemm, mtf_products_matmul,
    mtf_products_widened, mtf_products_widened_sgemm, mtf_products_skinny;

/* The row of a way; it lives as long as the program. */
const MtfProductsWay *mtf_products_way(MtfProductWay way);

/* A product in float32 by oneDNN's sgemm. */
void mtf_onednn_gemm(const MtfGemm *gemm);

/* "avx512_core_bf16": the most that oneDNN uses of this processor's instructions
 * (ONEDNN_MAX_CPU_ISA); and its version, "2.6.3", to be freed with g_free. */
const char *mtf_onednn_isa(void);
char *mtf_onednn_version(void);

/* What a plan's products need to run. */
typedef struct {
    const MtfProductsWay *way;
    void *prepared;
    int64_t workspace_bytes;
} MtfProducts;

/* Left and right are of one type; the result of that or, beside bfloat16, of float32, and then no
 * outer loop of the plan sums. Nothing is empty. */
void mtf_products_init(MtfProducts *products, const MtfContraction *plan,
                       const MtfDtype types[MTF_TERMS]);
void mtf_products_clear(MtfProducts *products);

/* `data` are the terms as the plan stores them, `workspace` is aligned to 64 bytes; `pause` may be
 * NULL. */
void mtf_products_run(const MtfProducts *products, void *const data[MTF_TERMS], void *workspace,
                      const MtfProgressHook *progress);

/* The odometer over a plan's outer loops: stands at the first turn when `offset` and `index` are 0;
 * false when all turns are done. */
bool mtf_products_next(const MtfContraction *plan, int64_t index[MTF_MAX_INDEXES],
                       int64_t offset[MTF_TERMS]);

#endif
