// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_math.h"

#include <float.h>

/* |value - exact| in units in the last place of a type with `digits` bits at `exact`. */
static double units_off(double value, long double exact, int digits) {
    int exponent;
    frexpl(exact, &exponent);
    return (double)(fabsl((long double)value - exact) / ldexpl(1, exponent - digits));
}

TEST(exp_is_within_one_unit_in_float32) {
    for (double x = -87.336; x < 88.722; x += 0.00137)
        assert_true(units_off((double)mtf_exp_f32((float)x), expl((long double)(float)x),
                              FLT_MANT_DIG) <= 1.0);
}

TEST(exp_is_within_two_units_in_float64) {
    for (double x = -708; x < 709.7; x += 0.0137)
        assert_true(units_off(mtf_exp_f64(x), expl((long double)x), DBL_MANT_DIG) <= 2.0);
}

TEST(tanh_is_within_three_units) {
    for (double x = -20; x < 20; x += 0.00137) {
        float y = (float)x;
        assert_true(units_off((double)mtf_tanh_f32(y), tanhl((long double)y), FLT_MANT_DIG) <= 3.0);
        assert_true(units_off(mtf_tanh_f64(x), tanhl((long double)x), DBL_MANT_DIG) <= 3.0);
    }
}

TEST(exp_ends_in_infinity_and_zero) {
    assert_true(isinf(mtf_exp_f32(89)) && isinf(mtf_exp_f32(INFINITY)));
    assert_true(isinf(mtf_exp_f64(710)) && isinf(mtf_exp_f64(INFINITY)));
    assert_true(mtf_exp_f32(-1e30F) == 0 && mtf_exp_f32(-INFINITY) == 0);
    assert_true(mtf_exp_f64(-1e30) == 0 && mtf_exp_f64(-INFINITY) == 0);
    assert_true(mtf_exp_f32(-87.4F) == 0 && mtf_exp_f64(-740) > 0); /* no denormals, and some */
    assert_true(mtf_exp_f32(88.72F) < INFINITY && mtf_exp_f32(-87.33F) >= FLT_MIN);
    assert_true(mtf_exp_f32(0) == 1 && mtf_exp_f64(0) == 1);
}

TEST(not_a_number_stays_one) {
    assert_true(isnan(mtf_exp_f32(NAN)) && isnan(mtf_exp_f64(NAN)));
    assert_true(isnan(mtf_tanh_f32(NAN)) && isnan(mtf_tanh_f64(NAN)));
}
