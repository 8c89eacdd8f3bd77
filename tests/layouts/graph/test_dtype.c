// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/dtype.h"

TEST(both_names_of_a_type_are_read) {
    for (int i = 0; i < MTF_DTYPES; i++) {
        MtfDtype dtype = MTF_DTYPES;
        assert_true(mtf_dtype_from_name(mtf_dtype_name((MtfDtype)i), &dtype));
        assert_int_equal(dtype, i);
        dtype = MTF_DTYPES;
        assert_true(mtf_dtype_from_name(mtf_dtype_short_name((MtfDtype)i), &dtype));
        assert_int_equal(dtype, i);
    }
}

TEST(an_unknown_type_leaves_the_value_alone) {
    MtfDtype dtype = MTF_F64;
    assert_false(mtf_dtype_from_name("float16", &dtype));
    assert_false(mtf_dtype_from_name("", &dtype));
    assert_int_equal(dtype, MTF_F64);
}

TEST(types_have_their_sizes) {
    assert_int_equal(mtf_dtype_bytes(MTF_F32), 4);
    assert_int_equal(mtf_dtype_bytes(MTF_F64), 8);
    assert_int_equal(mtf_dtype_bytes(MTF_I32), 4);
    assert_int_equal(mtf_dtype_bytes(MTF_BF16), 2);
    assert_int_equal(mtf_dtype_bytes(MTF_I64), 8);
    assert_int_equal(mtf_dtype_bytes(MTF_BOOL), 1);
}

TEST(only_floats_are_floats) {
    assert_true(mtf_dtype_is_float(MTF_F32));
    assert_true(mtf_dtype_is_float(MTF_F64));
    assert_true(mtf_dtype_is_float(MTF_BF16));
    assert_false(mtf_dtype_is_float(MTF_I32));
    assert_false(mtf_dtype_is_float(MTF_I64));
    assert_false(mtf_dtype_is_float(MTF_BOOL));
}

TEST(only_int32_and_int64_are_integers) {
    for (int i = 0; i < MTF_DTYPES; i++)
        assert_int_equal(mtf_dtype_is_integer((MtfDtype)i), i == MTF_I32 || i == MTF_I64);
}

TEST(sums_of_bfloat16_are_kept_in_float32) {
    assert_int_equal(mtf_dtype_wide(MTF_BF16), MTF_F32);
    assert_int_equal(mtf_dtype_wide(MTF_F32), MTF_F32);
    assert_int_equal(mtf_dtype_wide(MTF_F64), MTF_F64);
    assert_int_equal(mtf_dtype_wide(MTF_I32), MTF_I32);
}
