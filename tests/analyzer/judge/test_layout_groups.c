// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/judge/layout_groups.h"

#include <math.h>

static void assert_near(double value, double expected, double tolerance) {
    assert_true(fabs(value - expected) <= tolerance);
}

static MtfLayoutGroup *group_of(const char *key, const MtfTimedLayout *layouts, guint n) {
    MtfLayoutGroup *group = mtf_layout_group_new(key);
    g_array_append_vals(group->layouts, layouts, n);
    return group;
}

static MtfLayoutOrder order_of(const MtfTimedLayout *layouts, guint n) {
    MtfLayoutGroup *group = group_of("a", layouts, n);
    MtfLayoutOrder order = mtf_layout_group_order(group);
    mtf_layout_group_free(group);
    return order;
}

TEST(the_order_counts_and_no_sizes) {
    const MtfTimedLayout right[] = { { 1, 10 }, { 2, 11 }, { 30, 12 }, { 40, 500 } };
    const MtfTimedLayout wrong[] = { { 4, 10 }, { 3, 11 }, { 2, 12 }, { 1, 20 } };
    MtfLayoutOrder order = order_of(right, 4);
    assert_near(order.rank, 1, 1e-12);
    assert_near(order.regret, 0, 1e-12);
    order = order_of(wrong, 4);
    assert_near(order.rank, -1, 1e-12);
    assert_near(order.regret, 1, 1e-12); /* 20 / 10 - 1 */
}

/* Ranks 0.5 0.5 2 beside 0 1 2, less 1: (0.5 + 0 + 1) / sqrt(1.5 x 2) = 0.866. */
TEST(equal_values_share_their_rank) {
    const MtfTimedLayout layouts[] = { { 5, 1 }, { 5, 2 }, { 6, 3 } };
    assert_near(order_of(layouts, 3).rank, 1.5 / sqrt(3), 1e-12);
    const MtfTimedLayout alike[] = { { 5, 1 }, { 5, 2 }, { 5, 3 } };
    assert_near(order_of(alike, 3).rank, 0, 1e-12);
}

/* 1 and 1.03 change places where a normal number exceeds 0.03 / (0.03 sqrt(1 + 1.03^2)) = 0.697, in 0.243
 * of all draws; the correlation is 0.5 then: 1 - 0.243 / 2 = 0.879, within three deviations of 200 draws. */
TEST(a_second_measurement_may_differ) {
    const MtfTimedLayout near[] = { { 1, 1 }, { 2, 1.03 }, { 3, 10 } };
    const MtfTimedLayout far[] = { { 3, 1 }, { 2, 2 }, { 1, 4 } };
    assert_near(order_of(near, 3).remeasured, 0.879, 0.046);
    assert_near(order_of(far, 3).remeasured, 1, 1e-12);
    MtfTimedLayout same[12];
    for (int i = 0; i < 12; i++)
        same[i] = (MtfTimedLayout){ (double)i, 1 + 1e-6 * (double)i };
    assert_true(fabs(order_of(same, 12).remeasured) < 0.1);
}

/* (3 x 1 + 4 x -1) / 7; the pair is too few. */
TEST(groups_weigh_as_many_as_their_rows) {
    const MtfTimedLayout three[] = { { 1, 1 }, { 2, 2 }, { 3, 4 } };
    const MtfTimedLayout four[] = { { 4, 1 }, { 3, 2 }, { 2, 4 }, { 1, 8 } };
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(mtf_layout_group_free);
    int counted;
    assert_true(isnan(mtf_layout_groups_mean(groups, &counted).rank));
    g_ptr_array_add(groups, group_of("three", three, 3));
    g_ptr_array_add(groups, group_of("four", four, 4));
    g_ptr_array_add(groups, group_of("pair", four, 2));
    MtfLayoutOrder mean = mtf_layout_groups_mean(groups, &counted);
    assert_int_equal(counted, 2);
    assert_near(mean.rank, -1.0 / 7, 1e-12);
    assert_near(mean.regret, 4.0 * 7 / 7, 1e-12); /* 8 / 1 - 1 of four rows */
}
