// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_products.h"

#include "runtime/kernels/products/kernel_product.h"

bool mtf_products_next(const MtfContraction *plan, int64_t index[MTF_MAX_INDEXES],
                       int64_t offset[MTF_TERMS]) {
    for (int i = plan->n_outer - 1; i >= 0; i--) {
        bool wraps = ++index[i] == plan->outer[i].size;
        int64_t turns = wraps ? 1 - plan->outer[i].size : 1;
        for (int t = 0; t < MTF_TERMS; t++)
            offset[t] += turns * plan->outer[i].stride[t];
        if (!wraps)
            return true;
        index[i] = 0;
    }
    return false;
}

typedef struct {
    MtfContraction plan;
    MtfDtype types[MTF_TERMS];
    void (*gemm)(const MtfGemm *gemm); /* NULL: OpenBLAS's */
} Blas;

static void *blas_prepare(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                          int64_t *workspace_bytes) {
    Blas *blas = g_new(Blas, 1);
    blas->plan = *plan;
    for (int t = 0; t < MTF_TERMS; t++)
        blas->types[t] = types[t];
    blas->gemm = mtf_onednn_multiplies(plan, types[MTF_LEFT]) ? mtf_onednn_gemm : NULL;
    *workspace_bytes = 0;
    return blas;
}

static bool adds(const MtfContraction *plan, const int64_t *index) {
    for (int i = 0; i < plan->n_outer; i++)
        if (plan->outer[i].sums && index[i] > 0)
            return true;
    return false;
}

static void blas_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                     const MtfProgressHook *progress) {
    const Blas *blas = prepared;
    MtfOperand operands[MTF_TERMS];
    int64_t index[MTF_MAX_INDEXES] = { 0 }, offset[MTF_TERMS] = { 0 };
    (void)workspace;
    for (int t = 0; t < MTF_TERMS; t++)
        operands[t] = (MtfOperand){ .data = data[t], .dtype = blas->types[t] };
    do {
        mtf_product(&blas->plan, operands, offset, adds(&blas->plan, index), blas->gemm, progress);
        mtf_progress_hook_run(progress);
    } while (mtf_products_next(&blas->plan, index, offset));
}

const MtfProductsWay mtf_products_blas = { "blas", blas_prepare, blas_run, g_free };

void mtf_products_init(MtfProducts *products, const MtfContraction *plan,
                       const MtfDtype types[MTF_TERMS]) {
    static const MtfProductsWay *const ways[] = { &mtf_products_onednn, &mtf_products_widened,
                                                  &mtf_products_blas };
    int i = 0;
    do {
        products->way = ways[i++];
        products->prepared = products->way->prepare(plan, types, &products->workspace_bytes);
    } while (products->prepared == NULL);
}

void mtf_products_clear(MtfProducts *products) {
    products->way->release(products->prepared);
    products->prepared = NULL;
}

void mtf_products_run(const MtfProducts *products, void *const data[MTF_TERMS], void *workspace,
                      const MtfProgressHook *progress) {
    products->way->run(products->prepared, data, workspace, progress);
}
