// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/mapping.h"

static void lexicographic_order_keeps_every_rank_in_place(void **state) {
    (void)state;
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

static void sizes_that_do_not_divide_are_mapped_one_to_one(void **state) {
    (void)state;
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

static void pieces_that_overlap_are_not_whole(void **state) {
    (void)state;
    MtfMapping mapping = mtf_mapping_lexicographic(2, (int64_t[]){ 4, 2 }, 1, (int64_t[]){ 8 });
    assert_true(mtf_mapping_is_whole(&mapping));
    mapping.piece[0].stride = 1;
    assert_false(mtf_mapping_is_whole(&mapping));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lexicographic_order_keeps_every_rank_in_place),
        cmocka_unit_test(sizes_that_do_not_divide_are_mapped_one_to_one),
        cmocka_unit_test(pieces_that_overlap_are_not_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
