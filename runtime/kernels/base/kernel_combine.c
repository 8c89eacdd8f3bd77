// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_combine.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_streaming_stores.h"

#include <glib.h>
#include <string.h>

/* A block of the result stays in the first cache while the terms pass by. */
#define BLOCK_BYTES 8192
#define NARROW_BLOCK 1024

/* total[i] = COMBINED of total[i] and term[i]. A maximum of NaN and anything is NaN. */
#define COMBINE(name, type, combined)                              \
    static void name(void *totals, const void *terms, int64_t n) { \
        type *restrict total = totals;                             \
        const type *restrict term = terms;                         \
        for (int64_t i = 0; i < n; i++)                            \
            total[i] = combined;                                   \
    }

#define SUM (total[i] + term[i])
#define MAXIMUM (total[i] >= term[i] || total[i] != total[i] ? total[i] : term[i])

COMBINE(sum_f32, float, SUM)
COMBINE(sum_f64, double, SUM)
COMBINE(sum_i32, int32_t, SUM)
COMBINE(sum_i64, int64_t, SUM)
COMBINE(maximum_f32, float, MAXIMUM)
COMBINE(maximum_f64, double, MAXIMUM)
COMBINE(maximum_i32, int32_t, MAXIMUM)
COMBINE(maximum_i64, int64_t, MAXIMUM)
COMBINE(maximum_bool, uint8_t, MAXIMUM)

typedef void (*Combine)(void *totals, const void *terms, int64_t n);

/* A sum of bools is whether any of them is true. */
static const Combine sums[MTF_DTYPES] = { [MTF_F32] = sum_f32,
                                          [MTF_F64] = sum_f64,
                                          [MTF_I32] = sum_i32,
                                          [MTF_I64] = sum_i64,
                                          [MTF_BOOL] = maximum_bool };
static const Combine maxima[MTF_DTYPES] = { [MTF_F32] = maximum_f32,
                                            [MTF_F64] = maximum_f64,
                                            [MTF_I32] = maximum_i32,
                                            [MTF_I64] = maximum_i64,
                                            [MTF_BOOL] = maximum_bool };

/* In float32, and rounded once. */
static void combine_narrow(const MtfCombination *c, int64_t elements) {
    _Alignas(64) float total[NARROW_BLOCK];
    _Alignas(64) float term[NARROW_BLOCK];
    Combine combine = c->reduction == MTF_REDUCE_MAX ? maximum_f32 : sum_f32;
    for (int64_t begin = 0; begin < elements; begin += NARROW_BLOCK) {
        int64_t n = MIN(NARROW_BLOCK, elements - begin);
        mtf_bf16_widen(total, (const uint16_t *)(gconstpointer)c->terms[0] + begin, n, 1);
        for (int k = 1; k < c->n_terms; k++) {
            mtf_bf16_widen(term, (const uint16_t *)(gconstpointer)c->terms[k] + begin, n, 1);
            combine(total, term, n);
        }
        for (int k = 0; k < c->n_targets; k++)
            mtf_bf16_round((uint16_t *)(gpointer)c->targets[k] + begin, total, n);
    }
}

/* ---- Two terms ----------------------------------------------------------------------------- */

/* What most groups have: added in registers, wherever it goes. */
#define SUM_OF_TWO(name, type)                                                  \
    MTF_EACH_VECTOR_UNIT static void name(const MtfCombination *c, int64_t n) { \
        const type *a = (gconstpointer)c->terms[0];                             \
        const type *b = (gconstpointer)c->terms[1];                             \
        type *first = (gpointer)c->targets[0];                                  \
        type *last = (gpointer)c->targets[c->n_targets - 1];                    \
        MTF_INDEPENDENT                                                         \
        for (int64_t i = 0; i < n; i++) {                                       \
            type sum = a[i] + b[i];                                             \
            first[i] = sum;                                                     \
            last[i] = sum;                                                      \
        }                                                                       \
    }

SUM_OF_TWO(sum_two_f32, float)
SUM_OF_TWO(sum_two_f64, double)

/* Whether the target is none of the terms. */
static bool is_elsewhere(const MtfCombination *c) {
    return c->n_targets == 1 && c->targets[0] != c->terms[0] && c->targets[0] != c->terms[1];
}

/* False where there are other terms or types. */
static bool combine_two(const MtfCombination *c, int64_t elements) {
    if (c->reduction == MTF_REDUCE_MAX || c->n_terms != 2 || c->n_targets > 2)
        return false;
    int64_t bytes = elements * mtf_dtype_bytes(c->dtype);
    if (c->dtype == MTF_F32 && is_elsewhere(c) && mtf_streams(c->targets[0], bytes))
        mtf_stream_sum(c->targets[0], c->terms[0], c->terms[1], bytes);
    else if (c->dtype == MTF_F32)
        sum_two_f32(c, elements);
    else if (c->dtype == MTF_F64)
        sum_two_f64(c, elements);
    else
        return false;
    return true;
}

void mtf_combine(const MtfCombination *c, int64_t elements) {
    if (c->dtype == MTF_BF16) {
        combine_narrow(c, elements);
        return;
    }
    if (combine_two(c, elements))
        return;
    _Alignas(64) char block[BLOCK_BYTES];
    Combine combine = c->reduction == MTF_REDUCE_MAX ? maxima[c->dtype] : sums[c->dtype];
    int64_t size = mtf_dtype_bytes(c->dtype), all = elements * size;
    for (int64_t begin = 0; begin < all; begin += BLOCK_BYTES) {
        int64_t bytes = MIN(BLOCK_BYTES, all - begin);
        memcpy(block, c->terms[0] + begin, (gsize)bytes);
        for (int k = 1; k < c->n_terms; k++)
            combine(block, c->terms[k] + begin, bytes / size);
        for (int k = 0; k < c->n_targets; k++)
            memcpy(c->targets[k] + begin, block, (gsize)bytes);
    }
}
