// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/checkpoint/stored_place.h"
#include "runtime/checkpoint/stored_value.h"

#include <math.h>
#include <string.h>

TEST(a_place_is_blocks_of_a_tensor) {
    static const struct {
        const char *text, *name;
        int rank;
        int64_t first, block, stride, elements;
        bool stacked;
    } cases[] = {
        { "model.norm.weight[64]", "model.norm.weight", 1, 0, 64, 64, 64, false },
        { "w[4,6]", "w", 2, 0, 24, 24, 24, false },
        { "c[4,2:5/6]", "c", 2, 2, 3, 6, 12, false },
        { "qkv.bias[4:6/12]", "qkv.bias", 1, 4, 2, 12, 2, false },
        { "qkv[2:5/6,4]", "qkv", 2, 8, 12, 24, 12, false },
        { "e.{}.w[2,1:2/3,5]", "e.{}.w", 3, 5, 5, 15, 10, true },
        { "scalar[]", "scalar", 0, 0, 1, 1, 1, false },
        { "qkv[2*1:3/4,5]", "qkv", 2, 5, 10, 20, 20, false },
        { "qkv.bias[2*1:3/4]", "qkv.bias", 1, 1, 2, 4, 4, false },
        { "norm[2*3]", "norm", 1, 0, 6, 6, 6, false },
        { "a[b[2]", "a[b", 1, 0, 2, 2, 2, false },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfStoredPlace place;
        assert_true(mtf_stored_place_parse(cases[i].text, &place, NULL));
        assert_string_equal(place.name, cases[i].name);
        assert_int_equal(place.rank, cases[i].rank);
        assert_int_equal(place.first, cases[i].first);
        assert_int_equal(place.block, cases[i].block);
        assert_int_equal(place.stride, cases[i].stride);
        assert_int_equal(place.elements, cases[i].elements);
        assert_int_equal(place.stacked, cases[i].stacked);
        g_autofree char *third = mtf_stored_place_name(&place, 3);
        if (cases[i].stacked)
            assert_string_equal(third, "e.3.w");
        mtf_stored_place_clear(&place);
    }
}

TEST(what_is_no_place_is_refused) {
    static const char *const texts[] = { "",
                                         "w",
                                         "[4]",
                                         "w[",
                                         "w[4",
                                         "w[4]x",
                                         "w[0]",
                                         "w[-1]",
                                         "w[4,]",
                                         "w[,4]",
                                         "w[4*]",
                                         "w[*4]",
                                         "w[2*,4]",
                                         "w[2**4]",
                                         "w[0:1/2*0:1/2]",
                                         "w[2:2/4]",
                                         "w[3:2/4]",
                                         "w[1:5/4]",
                                         "w[1:2]",
                                         "w[0:1/2,0:1/2]",
                                         "w[ 4]",
                                         "w[1,1,1,1,1,1,1,1,1]",
                                         "w[9007199254740993]",
                                         "w[4294967296,4294967296]",
                                         "w[99999999999999999999]" };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        MtfStoredPlace place;
        if (mtf_stored_place_parse(texts[i], &place, &error))
            fail_msg("\"%s\" was taken", texts[i]);
        assert_non_null(error);
    }
}

/* Every bit pattern of 16 and of 8 bits: what is read from it is written as it was. */
TEST(short_floats_come_back_as_they_were) {
    static const MtfStoredType types[] = { MTF_STORED_F16, MTF_STORED_BF16 };
    for (int k = 0; k < 2; k++)
        for (guint32 i = 0; i <= G_MAXUINT16; i++) {
            guint16 bits = (guint16)i, again = 0;
            double value = mtf_stored_value(types[k], (const char *)&bits, 0);
            mtf_stored_value_set(types[k], (char *)&again, 0, value);
            if (!isnan(value) && again != bits)
                fail_msg("%04x is written as %04x", bits, again);
        }
}

/* By hand: 1 + 2^-11 is half way from 1 to the next half, and goes to the even one; a little more
 * goes up. 65504 is the largest; 2^-25 is half of the smallest. */
TEST(values_are_rounded_to_the_nearest) {
    static const struct {
        double value;
        guint16 half;
    } cases[] = { { 1, 0x3c00 },           { 1 + 0x1p-11, 0x3c00 }, { 1 + 0x1.1p-11, 0x3c01 },
                  { 1 + 0x3p-11, 0x3c02 }, { -2, 0xc000 },          { 65504, 0x7bff },
                  { 65519, 0x7bff },       { 65520, 0x7c00 },       { 0x1p-24, 1 },
                  { 0x1p-25, 0 },          { 0x1.8p-25, 1 },        { 0x1.ffcp-15, 0x0400 } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint16 bits;
        mtf_stored_value_set(MTF_STORED_F16, (char *)&bits, 0, cases[i].value);
        if (bits != cases[i].half)
            fail_msg("%a is written as %04x, not %04x", cases[i].value, bits, cases[i].half);
    }
}

/* The tables of Micikevicius and others, "FP8 formats for deep learning", 2022: the largest, the
 * smallest normal and the smallest of E4M3 and E5M2. */
TEST(eight_bits_are_read) {
    static const struct {
        MtfStoredType type;
        guint8 bits;
        double value;
    } cases[] = { { MTF_STORED_F8_E4M3, 0x7e, 448 },     { MTF_STORED_F8_E4M3, 0x08, 0x1p-6 },
                  { MTF_STORED_F8_E4M3, 0x01, 0x1p-9 },  { MTF_STORED_F8_E4M3, 0xb8, -1 },
                  { MTF_STORED_F8_E5M2, 0x7b, 57344 },   { MTF_STORED_F8_E5M2, 0x04, 0x1p-14 },
                  { MTF_STORED_F8_E5M2, 0x01, 0x1p-16 }, { MTF_STORED_F8_E5M2, 0xfc, -INFINITY } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_true(mtf_stored_value(cases[i].type, (const char *)&cases[i].bits, 0) ==
                    cases[i].value);
    guint8 nan = 0x7f;
    assert_true(isnan(mtf_stored_value(MTF_STORED_F8_E4M3, (const char *)&nan, 0)));
}
