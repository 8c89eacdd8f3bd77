// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_squares.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"

/* Sums at once, in vector registers; and elements that are widened at once, in the nearest cache.
 */
#define LANES 32
#define BLOCK 512

#define DEFINE_SQUARES(name, T)                                                \
    MTF_EACH_VECTOR_UNIT static double squares_##name(const T *x, int64_t n) { \
        double lane[LANES] = { 0 };                                            \
        int64_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                     \
            for (int j = 0; j < LANES; j++)                                    \
                lane[j] += (double)x[i + j] * (double)x[i + j];                \
        for (int j = 0; i + j < n; j++)                                        \
            lane[j] += (double)x[i + j] * (double)x[i + j];                    \
        for (int width = LANES / 2; width > 0; width /= 2)                     \
            for (int j = 0; j < width; j++)                                    \
                lane[j] += lane[j + width];                                    \
        return lane[0];                                                        \
    }

DEFINE_SQUARES(f32, float)
DEFINE_SQUARES(f64, double)

static double squares_bf16(const uint16_t *x, int64_t n) {
    float block[BLOCK];
    double sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t elements = MIN(BLOCK, n - at);
        mtf_bf16_widen(block, x + at, elements, 1);
        sum += squares_f32(block, elements);
    }
    return sum;
}

double mtf_operand_squares(const MtfOperand *operand) {
    int64_t n = mtf_operand_elements(operand);
    if (mtf_operand_is_narrow(operand))
        return squares_bf16(operand->data, n);
    return operand->dtype == MTF_F64 ? squares_f64(operand->data, n)
                                     : squares_f32(operand->data, n);
}
