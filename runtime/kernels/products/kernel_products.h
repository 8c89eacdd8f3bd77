// SPDX-License-Identifier: GPL-3.0-or-later
/* The products of a contraction plan, over all its outer loops, by the way that suits. Ways are
 * rivals behind one table; one that does not apply says so:
 *
 *     onednn    batches of small products in float32; all products of bfloat16 where the processor
 *               has instructions for them
 *     widened   other products of bfloat16: panels are widened in the cache and multiplied in
 *               float32
 *     blas      everything else, one call a product, of OpenBLAS or of oneDNN's own sgemm
 *
 * Which way it is follows from the shapes, the types and the processor, never from time measured,
 * so equal runs give equal bits. All is prepared when a plan is loaded; running allocates nothing.
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

extern const MtfProductsWay mtf_products_onednn;
extern const MtfProductsWay mtf_products_widened;
extern const MtfProductsWay mtf_products_blas;

/* Whether oneDNN's sgemm suits each product of the plan; and that product. */
bool mtf_onednn_multiplies(const MtfContraction *plan, MtfDtype type);
void mtf_onednn_gemm(const MtfGemm *gemm);

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
