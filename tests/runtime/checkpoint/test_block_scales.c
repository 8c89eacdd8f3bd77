// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/checkpoint/block_scales.h"

#include <unistd.h>

typedef struct {
    int rank;
    int64_t dims[3];
} Shape;

static bool set(Shape matrix, Shape scale, int64_t block_rows, int64_t block_columns,
                MtfBlockScales *scales) {
    MtfStoredTensor w = { .type = MTF_STORED_F8_E4M3, .rank = matrix.rank, .dims = matrix.dims };
    MtfStoredTensor s = { .type = MTF_STORED_F32, .rank = scale.rank, .dims = scale.dims };
    *scales = (MtfBlockScales){ 0 };
    return mtf_block_scales_set(&w, &s, (int64_t[]){ block_rows, block_columns }, scales);
}

/* Of 5 by 7 elements, blocks of 2 by 3:      a a a b b b c
 *                                            a a a b b b c
 *                                            d d d e e e f
 *                                            d d d e e e f
 *                                            g g g h h h i    */
TEST(an_element_is_in_units_of_its_block) {
    const float values[] = { 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i' };
    MtfBlockScales scales;
    assert_true(set((Shape){ 2, { 5, 7 } }, (Shape){ 2, { 3, 3 } }, 2, 3, &scales));
    const char *drawn = "aaabbbcaaabbbcdddeeefdddeeefggghhhi";
    for (int i = 0; i < 35; i++)
        assert_true(mtf_block_scales_at(&scales, values, i) == (float)drawn[i]);
}

TEST(a_row_or_all_may_have_one_scale) {
    const float values[] = { 1, 2 };
    MtfBlockScales scales;
    const Shape rows[] = { { 1, { 2 } }, { 2, { 2, 1 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        assert_true(set((Shape){ 2, { 2, 300 } }, rows[i], 0, 0, &scales));
        assert_true(mtf_block_scales_at(&scales, values, 299) == 1);
        assert_true(mtf_block_scales_at(&scales, values, 300) == 2);
    }
    const Shape whole[] = { { 0, { 0 } }, { 1, { 1 } }, { 2, { 1, 1 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(whole); i++) {
        assert_true(set((Shape){ 2, { 2, 300 } }, whole[i], 0, 0, &scales));
        assert_true(mtf_block_scales_at(&scales, values, 599) == 1);
    }
}

TEST(scales_of_another_shape_are_not_taken) {
    MtfBlockScales scales;
    assert_false(set((Shape){ 2, { 5, 7 } }, (Shape){ 2, { 3, 2 } }, 2, 3, &scales));
    assert_false(set((Shape){ 2, { 5, 7 } }, (Shape){ 2, { 3, 3 } }, 0, 0, &scales));
    assert_false(set((Shape){ 2, { 5, 7 } }, (Shape){ 3, { 5, 1, 1 } }, 0, 0, &scales));
    assert_false(set((Shape){ 3, { 5, 7, 1 } }, (Shape){ 1, { 5 } }, 0, 0, &scales));
    assert_false(set((Shape){ 2, { 0, 7 } }, (Shape){ 2, { 0, 1 } }, 0, 0, &scales));
}

TEST(scales_are_read_from_their_place) {
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "block-scales-XXXXXX", NULL);
    close(g_mkstemp(path));
    const float stored[] = { 9, 0.5f, 3 };
    assert_true(g_file_set_contents(path, (const char *)stored, sizeof stored, NULL));
    MtfBlockScales scales = {
        .path = path, .place = 4, .type = MTF_STORED_F32, .rows = 2, .columns = 1
    };
    g_autofree float *values = mtf_block_scales_read(&scales, NULL);
    assert_true(values != NULL && values[0] == 0.5f && values[1] == 3);
    g_autoptr(GError) error = NULL;
    scales.rows = 3;
    assert_null(mtf_block_scales_read(&scales, &error));
    assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_INPUT));
    unlink(path);
}
