// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/worker/box_copy.h"

#include <string.h>

#define RANK 3

/* A row-major index into a frame. */
static int64_t position(const MtfRange *frame, const int64_t *index) {
    int64_t at = 0;
    for (int i = 0; i < RANK; i++)
        at = at * (frame[i].end - frame[i].begin) + index[i] - frame[i].begin;
    return at;
}

/* The naive twin: one element after the other. */
static void copy_plainly(const MtfRange *box, const MtfRange *from, const MtfRange *to,
                         const double *source, double *target) {
    int64_t i[RANK];
    for (i[0] = box[0].begin; i[0] < box[0].end; i[0]++)
        for (i[1] = box[1].begin; i[1] < box[1].end; i[1]++)
            for (i[2] = box[2].begin; i[2] < box[2].end; i[2]++)
                target[position(to, i)] = source[position(from, i)];
}

/* Numbers that look drawn, the same in every run. */
static int64_t draw(uint64_t *state, int64_t low, int64_t high) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return low + (int64_t)(*state >> 33) % (high - low + 1);
}

static void draw_frames(uint64_t *state, MtfRange *box, MtfRange *from, MtfRange *to) {
    for (int i = 0; i < RANK; i++) {
        box[i].begin = draw(state, 2, 4);
        box[i].end = box[i].begin + draw(state, 0, 3);
        from[i] =
            (MtfRange){ draw(state, 0, 1) ? box[i].begin : 0, box[i].end + draw(state, 0, 1) };
        to[i] = (MtfRange){ draw(state, 0, 1) ? box[i].begin : 1, box[i].end + draw(state, 0, 1) };
    }
}

TEST(any_box_between_any_frames_is_copied_as_element_by_element) {
    uint64_t random = 1;
    double source[512], target[512], expected[512];
    for (int i = 0; i < 512; i++)
        source[i] = i + 1;
    for (int trial = 0; trial < 20000; trial++) {
        MtfRange box[RANK], from[RANK], to[RANK];
        draw_frames(&random, box, from, to);
        memset(target, 0, sizeof target);
        memset(expected, 0, sizeof expected);
        MtfBoxCopy copy;
        mtf_box_copy_init(&copy, RANK, sizeof(double), box, from, to);
        mtf_box_copy_run(&copy, source, target);
        copy_plainly(box, from, to, source, expected);
        assert_memory_equal(target, expected, sizeof target);
    }
}

TEST(single_words_are_copied_at_their_strides) {
    const float matrix[6] = { 1, 2, 3, 4, 5, 6 };
    float column[3] = { 0 };
    MtfRange frame[2] = { { 0, 3 }, { 0, 2 } };
    MtfRange box[2] = { { 0, 3 }, { 1, 2 } };
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, 2, sizeof(float), box, frame, box);
    mtf_box_copy_run(&copy, matrix, column);
    assert_true(column[0] == 2 && column[1] == 4 && column[2] == 6);
}

TEST(dimensions_that_lie_together_are_one_run) {
    MtfRange frame[RANK] = { { 0, 8 }, { 0, 4 }, { 0, 5 } };
    MtfRange box[RANK] = { { 2, 5 }, { 0, 4 }, { 0, 5 } };
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, RANK, 4, box, frame, box);
    assert_int_equal(copy.n_loops, 0);
    assert_int_equal(copy.run, 3 * 4 * 5 * 4);
    assert_int_equal(copy.from_offset, 2 * 4 * 5 * 4);
}

TEST(a_scalar_is_one_element) {
    double from = 7, to = 0;
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, 0, sizeof from, NULL, NULL, NULL);
    mtf_box_copy_run(&copy, &from, &to);
    assert_true(to == 7);
    assert_int_equal(mtf_box_elements(0, NULL), 1);
}

TEST(rows_are_contiguous_and_columns_are_not) {
    int64_t offset;
    MtfRange frame[2] = { { 0, 4 }, { 0, 6 } };
    MtfRange rows[2] = { { 1, 3 }, { 0, 6 } };
    MtfRange columns[2] = { { 0, 4 }, { 1, 3 } };
    assert_true(mtf_box_is_contiguous(2, rows, frame, &offset));
    assert_int_equal(offset, 6);
    assert_false(mtf_box_is_contiguous(2, columns, frame, &offset));
}
