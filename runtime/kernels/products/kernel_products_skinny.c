// SPDX-License-Identifier: GPL-3.0-or-later
/* Products of a few rows with a large matrix, as where text is generated: the matrix is read once, as
 * it lies, and never copied (skinny_rows.h). What is multiplied so is bound by memory, so the time
 * goes with the bytes of the matrix. */
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/products/kernel_products.h"
#include "runtime/kernels/products/skinny_rows.h"

#define LEAST_ELEMENTS (1 << 15) /* of the matrix: smaller ones lie in caches and are others' */
#define LEAST_SIDE 16

typedef struct {
    int rows, matrix;           /* the terms' places among the data */
    MtfContractionLoop m, n, k; /* with few rows: `rows` has m and k, the matrix k and n */
    bool narrow, narrow_result, dots;
} Skinny;

/* ---- A plan's product --------------------------------------------------------------------------- */

static void turn_loop(MtfContractionLoop *loop) {
    int64_t left = loop->stride[MTF_LEFT];
    loop->stride[MTF_LEFT] = loop->stride[MTF_RIGHT];
    loop->stride[MTF_RIGHT] = left;
}

static void *skinny_prepare(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                            int64_t *workspace_bytes) {
    Skinny s = { .rows = MTF_LEFT, .matrix = MTF_RIGHT, .m = plan->m, .n = plan->n, .k = plan->k };
    if (s.m.size > s.n.size) {
        s = (Skinny){
            .rows = MTF_RIGHT, .matrix = MTF_LEFT, .m = plan->n, .n = plan->m, .k = plan->k
        };
        turn_loop(&s.m);
        turn_loop(&s.n);
        turn_loop(&s.k);
    }
    s.narrow = types[MTF_LEFT] == MTF_BF16;
    s.narrow_result = types[MTF_RESULT] == MTF_BF16;
    s.dots = s.k.stride[MTF_RIGHT] == 1;
    bool lies_well = s.dots || s.n.stride[MTF_RIGHT] == 1;
    bool applies = types[MTF_LEFT] == MTF_F32 || s.narrow;
    if (!applies || plan->n_outer > 0 || s.m.size > MTF_SKINNY_ROWS || !lies_well ||
        s.n.size < LEAST_SIDE || s.k.size < LEAST_SIDE || s.n.size * s.k.size < LEAST_ELEMENTS)
        return NULL;
    *workspace_bytes = (s.m.size * (s.k.size + s.n.size)) * (int64_t)sizeof(float);
    return g_memdup2(&s, sizeof s);
}

static void load_rows(const Skinny *s, const void *data, float *x) {
    for (int64_t r = 0; r < s->m.size; r++)
        for (int64_t k = 0; k < s->k.size; k++) {
            int64_t at = r * s->m.stride[MTF_LEFT] + k * s->k.stride[MTF_LEFT];
            x[r * s->k.size + k] =
                s->narrow ? mtf_bf16_wide(((const uint16_t *)data)[at]) : ((const float *)data)[at];
        }
}

static void store_result(const Skinny *s, const float *y, void *data) {
    for (int64_t r = 0; r < s->m.size; r++)
        for (int64_t n = 0; n < s->n.size; n++) {
            int64_t at = r * s->m.stride[MTF_RESULT] + n * s->n.stride[MTF_RESULT];
            float value = y[r * s->n.size + n];
            if (s->narrow_result)
                ((uint16_t *)data)[at] = mtf_bf16_rounded(value);
            else
                ((float *)data)[at] = value;
        }
}

static void skinny_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                       const MtfProgressHook *progress) {
    const Skinny *s = prepared;
    float *x = workspace, *y = x + s->m.size * s->k.size;
    MtfSkinny piece = { .x = x,
                        .w = data[s->matrix],
                        .y = y,
                        .m = s->m.size,
                        .n = s->n.size,
                        .k = s->k.size,
                        .apart = s->dots ? s->n.stride[MTF_RIGHT] : s->k.stride[MTF_RIGHT],
                        .dots = s->dots };
    load_rows(s, data[s->rows], x);
    mtf_skinny_rows(&piece, s->narrow ? MTF_BF16 : MTF_F32, progress);
    store_result(s, y, data[MTF_RESULT]);
}

const MtfProductsWay mtf_products_skinny = { "skinny", skinny_prepare, skinny_run, g_free };
