// SPDX-License-Identifier: GPL-3.0-or-later
/* Sums of squares against a plain loop in long double. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_squares.h"

#include <math.h>
#include <stdlib.h>

static double value_of(int64_t i) {
    return (1 + (double)(i % 7)) * sin((double)(3 * i + 1));
}

/* Stores element i, and returns what is then there. */
static double store(void *data, MtfDtype dtype, int64_t i) {
    if (dtype == MTF_F64)
        return ((double *)data)[i] = value_of(i);
    if (dtype == MTF_F32)
        return (double)(((float *)data)[i] = (float)value_of(i));
    ((uint16_t *)data)[i] = mtf_bf16_rounded((float)value_of(i));
    return (double)mtf_bf16_wide(((uint16_t *)data)[i]);
}

static void expect_squares(MtfDtype dtype, int64_t n) {
    MtfOperand operand = { .dtype = dtype, .rank = 1, .size = { n } };
    operand.data = malloc((size_t)n * sizeof(double) + 1);
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        long double x = store(operand.data, dtype, i);
        sum += x * x;
    }
    assert_true(fabs(mtf_operand_squares(&operand) - (double)sum) <= 1e-14 * (double)sum);
    free(operand.data);
}

TEST(sums_of_squares_are_right_to_double_precision) {
    static const int64_t sizes[] = { 0, 1, 31, 32, 33, 511, 512, 513, 1100, 100003 };
    static const MtfDtype dtypes[] = { MTF_F32, MTF_F64, MTF_BF16 };
    (void)state;
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++)
        for (size_t d = 0; d < G_N_ELEMENTS(dtypes); d++)
            expect_squares(dtypes[d], sizes[s]);
}

/* 2^96 is beyond half of what float32 can square. */
TEST(squares_do_not_overflow_where_elements_are_in_range) {
    float x = ldexpf(1, 96);
    MtfOperand operand = { .data = &x, .dtype = MTF_F32 };
    assert_true(mtf_operand_squares(&operand) == ldexp(1, 192));
}

TEST(nan_and_infinity_stay) {
    float x[40] = { 0 };
    MtfOperand operand = { .data = x, .dtype = MTF_F32, .rank = 1, .size = { 40 } };
    x[35] = -INFINITY;
    assert_true(isinf(mtf_operand_squares(&operand)));
    x[3] = NAN;
    assert_true(isnan(mtf_operand_squares(&operand)));
}
