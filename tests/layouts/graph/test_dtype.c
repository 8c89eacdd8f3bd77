// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/dtype.h"

static void both_names_of_a_type_are_read(void **state) {
    (void)state;
    for (int i = 0; i < MTF_DTYPES; i++) {
        MtfDtype dtype = MTF_DTYPES;
        assert_true(mtf_dtype_from_name(mtf_dtype_name((MtfDtype)i), &dtype));
        assert_int_equal(dtype, i);
        dtype = MTF_DTYPES;
        assert_true(mtf_dtype_from_name(mtf_dtype_short_name((MtfDtype)i), &dtype));
        assert_int_equal(dtype, i);
    }
}

static void an_unknown_type_leaves_the_value_alone(void **state) {
    (void)state;
    MtfDtype dtype = MTF_F64;
    assert_false(mtf_dtype_from_name("float16", &dtype));
    assert_false(mtf_dtype_from_name("", &dtype));
    assert_int_equal(dtype, MTF_F64);
}

static void types_have_their_sizes(void **state) {
    (void)state;
    assert_int_equal(mtf_dtype_bytes(MTF_F32), 4);
    assert_int_equal(mtf_dtype_bytes(MTF_F64), 8);
    assert_int_equal(mtf_dtype_bytes(MTF_I32), 4);
    assert_int_equal(mtf_dtype_bytes(MTF_BF16), 2);
    assert_int_equal(mtf_dtype_bytes(MTF_I64), 8);
    assert_int_equal(mtf_dtype_bytes(MTF_BOOL), 1);
}

static void only_floats_are_floats(void **state) {
    (void)state;
    assert_true(mtf_dtype_is_float(MTF_F32));
    assert_true(mtf_dtype_is_float(MTF_F64));
    assert_true(mtf_dtype_is_float(MTF_BF16));
    assert_false(mtf_dtype_is_float(MTF_I32));
    assert_false(mtf_dtype_is_float(MTF_I64));
    assert_false(mtf_dtype_is_float(MTF_BOOL));
}

static void only_int32_and_int64_are_integers(void **state) {
    (void)state;
    for (int i = 0; i < MTF_DTYPES; i++)
        assert_int_equal(mtf_dtype_is_integer((MtfDtype)i), i == MTF_I32 || i == MTF_I64);
}

static void sums_of_bfloat16_are_kept_in_float32(void **state) {
    (void)state;
    assert_int_equal(mtf_dtype_wide(MTF_BF16), MTF_F32);
    assert_int_equal(mtf_dtype_wide(MTF_F32), MTF_F32);
    assert_int_equal(mtf_dtype_wide(MTF_F64), MTF_F64);
    assert_int_equal(mtf_dtype_wide(MTF_I32), MTF_I32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_names_of_a_type_are_read),
        cmocka_unit_test(an_unknown_type_leaves_the_value_alone),
        cmocka_unit_test(types_have_their_sizes),
        cmocka_unit_test(only_floats_are_floats),
        cmocka_unit_test(only_int32_and_int64_are_integers),
        cmocka_unit_test(sums_of_bfloat16_are_kept_in_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
