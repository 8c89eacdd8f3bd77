// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_combine.h"

#include <math.h>

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TEST(every_number_comes_back_as_it_was) {
    for (uint32_t x = 0; x <= 0xFFFF; x++) {
        float wide = mtf_bf16_wide((uint16_t)x);
        assert_int_equal(bits_of(wide), x << 16);
        if (wide == wide)
            assert_int_equal(mtf_bf16_rounded(wide), x);
    }
}

/* Between neighbours the nearer one, and in the middle the one whose last bit is 0; behind the
 * largest comes infinity. Zero to infinity are 0x0000 to 0x7F80. */
TEST(rounding_is_to_the_nearest_and_ties_to_even) {
    for (uint32_t x = 0; x < 0x7F80; x++) {
        uint32_t low = x << 16;
        uint32_t even = x & 1 ? x + 1 : x;
        assert_int_equal(mtf_bf16_rounded(float_of(low + 0x7FFF)), x);
        assert_int_equal(mtf_bf16_rounded(float_of(low + 0x8000)), even);
        assert_int_equal(mtf_bf16_rounded(float_of(low + 0x8001)), x + 1);
        assert_int_equal(mtf_bf16_rounded(-float_of(low + 0x8001)), (x + 1) | 0x8000);
    }
}

/* Also one whose upper half alone would be an infinity. */
TEST(what_is_no_number_stays_none) {
    static const uint32_t numbers[] = { 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF,
                                        0x7FC00000 };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        float wide = mtf_bf16_wide(mtf_bf16_rounded(float_of(numbers[i])));
        assert_true(wide != wide);
        assert_int_equal(bits_of(wide) >> 31, numbers[i] >> 31);
    }
}

/* All lengths around those of vectors, with guards behind. */
TEST(rows_are_converted_as_single_numbers_are) {
    enum { MOST = 133 };
    for (int n = 0; n <= MOST; n++) {
        float in[MOST], back[MOST + 1];
        uint16_t narrow[MOST + 1];
        for (int i = 0; i < n; i++)
            in[i] = (float)sin(i + n) * 100;
        narrow[n] = 0xABCD;
        back[n] = 7;
        mtf_bf16_round(narrow, in, n);
        mtf_bf16_widen(back, narrow, n, 1);
        assert_int_equal(narrow[n], 0xABCD);
        assert_true(back[n] == 7);
        for (int i = 0; i < n; i++) {
            assert_int_equal(narrow[i], mtf_bf16_rounded(in[i]));
            assert_true(back[i] == mtf_bf16_wide(narrow[i]));
        }
        mtf_bf16_widen(back, narrow, n / 3, 3);
        for (int i = 0; i < n / 3; i++)
            assert_true(back[i] == mtf_bf16_wide(narrow[3 * i]));
    }
}

/* 256 + 1 + 1 is 258 where terms are added in float32, and 256 where every sum is rounded. */
TEST(terms_of_several_ranks_are_added_before_they_are_rounded) {
    enum { N = 1500 };
    static uint16_t terms[3][N];
    for (int i = 0; i < N; i++) {
        terms[0][i] = mtf_bf16_rounded(256);
        terms[1][i] = terms[2][i] = mtf_bf16_rounded(1);
    }
    const char *from[] = { (const char *)terms[0], (const char *)terms[1], (const char *)terms[2] };
    char *to[] = { (char *)terms[0] };
    mtf_combine(&(MtfCombination){ MTF_BF16, MTF_REDUCE_SUM, 3, 1, from, to }, N);
    for (int i = 0; i < N; i++)
        assert_true(mtf_bf16_wide(terms[0][i]) == 258);
    terms[2][N - 1] = mtf_bf16_rounded(-INFINITY);
    mtf_combine(&(MtfCombination){ MTF_BF16, MTF_REDUCE_MAX, 3, 1, from, to }, N);
    for (int i = 0; i < N; i++)
        assert_true(mtf_bf16_wide(terms[0][i]) == 258);
}
