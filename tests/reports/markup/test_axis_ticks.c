// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/markup/axis_ticks.h"

#include <math.h>

static void expect_near(double value, double expected) {
    assert_true(fabs(value - expected) < 1e-9 * expected);
}

TEST(lines_stand_at_round_numbers) {
    expect_near(mtf_tick_distance(3.595, 5.576, 1, mtf_tick_finest(5.576), 3), 0.2);
    expect_near(mtf_tick_distance(0.00214, 0.298, 1, mtf_tick_finest(0.298), 3), 0.05);
    expect_near(mtf_tick_distance(0, 1000, 1, 10, 4), 200);
}

/* 5.001 to 5.003 in three digits would be "5" four times. */
TEST(labels_tell_lines_apart) {
    expect_near(mtf_tick_distance(5.001, 5.003, 1, mtf_tick_finest(5.003), 3), 0.01);
    expect_near(mtf_tick_finest(999), 1);
}

/* Of MiB it is 1, 2 or 5 of these, not of bytes. */
TEST(units_count) {
    double mib = 1048576;
    expect_near(mtf_tick_distance(900 * mib, 930 * mib, mib, mib / 100, 2), 10 * mib);
}
