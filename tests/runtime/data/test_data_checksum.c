// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/data/data_checksum.h"

#include <glib.h>
#include <string.h>

/* mix(1 + 0x9e3779b97f4a7c15) is what splitmix64 gives first from the seed 1: the generator adds
 * the constant and mixes. Its published first outputs: 0 gives 0xe220a8397b1dcdaf, 1 gives
 * 0x910a2dec89025cc1. */
TEST(an_element_alone_is_a_number_of_splitmix64) {
    guint64 zero = 0, one = GUINT64_TO_LE(1);
    guint8 small = 1;
    assert_true(mtf_data_checksum(0, &zero, 1, 8) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(mtf_data_checksum(0, &one, 1, 8) == UINT64_C(0x910a2dec89025cc1));
    assert_true(mtf_data_checksum(0, &small, 1, 1) == UINT64_C(0x910a2dec89025cc1));
}

/* Any cut gives the same sum, whatever the width of an element. */
TEST(parts_add_up_to_the_whole) {
    guint8 bytes[240];
    for (int i = 0; i < 240; i++)
        bytes[i] = (guint8)(i * 37 + 11);
    for (int width = 1; width <= 8; width *= 2) {
        int n = 240 / width;
        uint64_t whole = mtf_data_checksum(1000, bytes, n, width);
        for (int cut = 0; cut <= n; cut++) {
            uint64_t left = mtf_data_checksum(1000, bytes, cut, width);
            uint64_t right =
                mtf_data_checksum(1000 + cut * width, bytes + cut * width, n - cut, width);
            assert_true(left + right == whole);
        }
    }
}

TEST(every_flipped_bit_and_swapped_pair_shows) {
    guint8 bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (guint8)(i * 5 + 1);
    for (int width = 1; width <= 8; width *= 2) {
        uint64_t good = mtf_data_checksum(0, bytes, 64 / width, width);
        for (int bit = 0; bit < 512; bit++) {
            bytes[bit / 8] ^= (guint8)(1 << bit % 8);
            assert_true(mtf_data_checksum(0, bytes, 64 / width, width) != good);
            bytes[bit / 8] ^= (guint8)(1 << bit % 8);
        }
        for (int i = 0; i + width < 64; i += width) {
            guint8 swapped[64];
            memcpy(swapped, bytes, 64);
            memcpy(swapped + i, bytes + i + width, (gsize)width);
            memcpy(swapped + i + width, bytes + i, (gsize)width);
            assert_true(mtf_data_checksum(0, swapped, 64 / width, width) != good);
        }
    }
}
