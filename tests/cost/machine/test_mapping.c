// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/mapping.h"

TEST(lexicographic_order_keeps_every_rank_in_place) {
    static const int64_t meshes[][3] = {
        { 16, 16, 2 }, { 8, 64, 1 }, { 4, 128, 1 }, { 512, 1, 1 }
    };
    for (int i = 0; i < 4; i++) {
        MtfMapping mapping = mtf_mapping_lexicographic(3, meshes[i], 3, (int64_t[]){ 16, 16, 2 });
        assert_true(mtf_mapping_is_whole(&mapping));
        for (int64_t rank = 0; rank < 512; rank++)
            assert_int_equal(mtf_mapping_place(&mapping, rank), rank);
    }
}

TEST(sizes_that_do_not_divide_are_mapped_one_to_one) {
    MtfMapping mapping =
        mtf_mapping_lexicographic(2, (int64_t[]){ 6, 20 }, 2, (int64_t[]){ 8, 15 });
    assert_true(mtf_mapping_is_whole(&mapping));
    bool taken[120] = { false };
    for (int64_t rank = 0; rank < 120; rank++) {
        int64_t place = mtf_mapping_place(&mapping, rank);
        assert_in_range(place, 0, 119);
        assert_false(taken[place]);
        taken[place] = true;
    }
}

TEST(pieces_that_overlap_are_not_whole) {
    MtfMapping mapping = mtf_mapping_lexicographic(2, (int64_t[]){ 4, 2 }, 1, (int64_t[]){ 8 });
    assert_true(mtf_mapping_is_whole(&mapping));
    mapping.piece[0].stride = 1;
    assert_false(mtf_mapping_is_whole(&mapping));
}

static int64_t distance(const int64_t *a, const int64_t *b, int count) {
    int64_t sum = 0;
    for (int d = 0; d < count; d++)
        sum += a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
    return sum;
}

/* Walks the snake of one grid; `ring` says whether its end must meet its start. */
static void check_snake(const int64_t *sides, int count, bool ring) {
    int64_t total = 1, first[4], before[4], at[4];
    for (int d = 0; d < count; d++)
        total *= sides[d];
    bool taken[512] = { false };
    for (int64_t i = 0; i < total; i++) {
        mtf_snake_place(sides, count, i, at);
        int64_t place = 0;
        for (int d = 0; d < count; d++) {
            assert_in_range(at[d], 0, sides[d] - 1);
            place = place * sides[d] + at[d];
        }
        assert_false(taken[place]);
        taken[place] = true;
        assert_true(i == 0 || distance(at, before, count) == 1);
        for (int d = 0; d < count; d++) {
            before[d] = at[d];
            first[d] = i == 0 ? at[d] : first[d];
        }
    }
    assert_true(!ring || distance(first, before, count) == 1);
}

TEST(a_snake_is_a_ring_of_single_hops_when_a_side_is_even) {
    for (int64_t a = 1; a <= 7; a++)
        for (int64_t b = 1; b <= 7; b++)
            for (int64_t c = 1; c <= 7; c++) {
                bool wide = (a > 1) + (b > 1) + (c > 1) > 1;
                check_snake((int64_t[]){ a, b, c }, 3, wide && a * b * c % 2 == 0);
            }
}

TEST(a_snaked_mesh_axis_visits_every_place_once) {
    MtfMapping mapping =
        mtf_mapping_lexicographic(2, (int64_t[]){ 8, 64 }, 3, (int64_t[]){ 16, 16, 2 });
    mapping.snake = 3;
    bool taken[512] = { false };
    for (int64_t rank = 0; rank < 512; rank++) {
        int64_t place = mtf_mapping_place(&mapping, rank);
        assert_in_range(place, 0, 511);
        assert_false(taken[place]);
        taken[place] = true;
    }
}
