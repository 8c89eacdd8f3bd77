// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_products.h"

#include "runtime/kernels/products/kernel_product.h"
#include "runtime/kernels/products/product_choice.h"

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
    MtfGemmRoutine gemm;
} Single;

static void *prepare_single(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                            MtfGemmRoutine gemm, int64_t *workspace_bytes) {
    Single *single = g_new(Single, 1);
    single->plan = *plan;
    for (int t = 0; t < MTF_TERMS; t++)
        single->types[t] = types[t];
    single->gemm = gemm;
    *workspace_bytes = 0;
    return single;
}

static void *prepare_openblas(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                              int64_t *workspace_bytes) {
    return types[MTF_LEFT] == MTF_BF16
               ? NULL
               : prepare_single(plan, types, mtf_openblas_gemm, workspace_bytes);
}

static void *prepare_sgemm(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                           int64_t *workspace_bytes) {
    return types[MTF_LEFT] != MTF_F32
               ? NULL
               : prepare_single(plan, types, mtf_onednn_gemm, workspace_bytes);
}

static bool adds(const MtfContraction *plan, const int64_t *index) {
    for (int i = 0; i < plan->n_outer; i++)
        if (plan->outer[i].sums && index[i] > 0)
            return true;
    return false;
}

static void run_single(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                       const MtfProgressHook *progress) {
    const Single *single = prepared;
    MtfOperand operands[MTF_TERMS];
    int64_t index[MTF_MAX_INDEXES] = { 0 }, offset[MTF_TERMS] = { 0 };
    (void)workspace;
    for (int t = 0; t < MTF_TERMS; t++)
        operands[t] = (MtfOperand){ .data = data[t], .dtype = single->types[t] };
    do {
        mtf_product(&single->plan, operands, offset, adds(&single->plan, index), single->gemm,
                    progress);
        mtf_progress_hook_run(progress);
    } while (mtf_products_next(&single->plan, index, offset));
}

const MtfProductsWay mtf_products_openblas = { "openblas", prepare_openblas, run_single, g_free };
const MtfProductsWay mtf_products_sgemm = { "sgemm", prepare_sgemm, run_single, g_free };

const MtfProductsWay *mtf_products_way(MtfProductWay way) {
    static const MtfProductsWay *const ways[MTF_PRODUCT_WAYS] = {
        [MTF_WAY_OPENBLAS] = &mtf_products_openblas,
        [MTF_WAY_SGEMM] = &mtf_products_sgemm,
        [MTF_WAY_MATMUL] = &mtf_products_matmul,
        [MTF_WAY_WIDENED] = &mtf_products_widened,
        [MTF_WAY_WIDENED_SGEMM] = &mtf_products_widened_sgemm,
        [MTF_WAY_SKINNY] = &mtf_products_skinny,
    };
    return ways[way];
}

void mtf_products_init(MtfProducts *products, const MtfContraction *plan,
                       const MtfDtype types[MTF_TERMS]) {
    MtfProductWay order[MTF_PRODUCT_WAYS];
    mtf_product_choice(plan, types, order);
    int i = 0;
    do {
        products->way = mtf_products_way(order[i++]);
        products->prepared = products->way->prepare(plan, types, &products->workspace_bytes);
    } while (products->prepared == NULL);
    mtf_product_choice_count(order[i - 1]);
}

void mtf_products_clear(MtfProducts *products) {
    products->way->release(products->prepared);
    products->prepared = NULL;
}

void mtf_products_run(const MtfProducts *products, void *const data[MTF_TERMS], void *workspace,
                      const MtfProgressHook *progress) {
    products->way->run(products->prepared, data, workspace, progress);
}
