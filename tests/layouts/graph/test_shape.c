// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/shape.h"

static const MtfShape abc = { 3, { 10, 20, 30 } };

TEST(a_dimension_is_found_at_its_position) {
    assert_int_equal(mtf_shape_find(&abc, 30), 2);
    assert_int_equal(mtf_shape_find(&abc, 40), -1);
    assert_int_equal(mtf_shape_find(&(MtfShape){ 0 }, 0), -1);
}

TEST(a_full_shape_takes_no_more) {
    MtfShape shape = { 0 };
    for (int i = 0; i < MTF_MAX_RANK; i++)
        assert_true(mtf_shape_append(&shape, i));
    assert_false(mtf_shape_append(&shape, 99));
    assert_int_equal(shape.rank, MTF_MAX_RANK);
    assert_int_equal(mtf_shape_find(&shape, MTF_MAX_RANK - 1), MTF_MAX_RANK - 1);
}

TEST(order_counts_for_equality) {
    assert_true(mtf_shape_equal(&abc, &(MtfShape){ 3, { 10, 20, 30 } }));
    assert_false(mtf_shape_equal(&abc, &(MtfShape){ 3, { 10, 30, 20 } }));
    assert_false(mtf_shape_equal(&abc, &(MtfShape){ 2, { 10, 20 } }));
}

TEST(order_does_not_count_for_containment) {
    assert_true(mtf_shape_contains(&abc, &(MtfShape){ 2, { 30, 10 } }));
    assert_true(mtf_shape_contains(&abc, &(MtfShape){ 0 }));
    assert_false(mtf_shape_contains(&abc, &(MtfShape){ 2, { 30, 40 } }));
}
