// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/machine/samples.h"

#include <math.h>

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

static double distance(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* The least distance of y to any rising list of the values 0 … 6 in thirds, by trying them all. */
static double nearest(const double *y, int n, double *list, int i, int least) {
    if (i == n)
        return distance(y, list, n);
    double best = INFINITY;
    for (int third = least; third <= 18; third++) {
        list[i] = third / 3.0;
        best = fmin(best, nearest(y, n, list, i + 1, third));
    }
    return best;
}

/* Means of up to three whole numbers are thirds or halves; with lists of three, the best rising
 * list is among the thirds or nearer than all of them. */
TEST(rising_values_are_the_nearest_there_are) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    for (int turn = 0; turn < 300; turn++) {
        double y[3], rising[3], list[3];
        for (int i = 0; i < 3; i++)
            y[i] = rising[i] = g_rand_int_range(rand, 0, 7);
        mtf_samples_make_rising(rising, 3);
        for (int i = 1; i < 3; i++)
            assert_true(rising[i] >= rising[i - 1]);
        assert_true(distance(y, rising, 3) <= nearest(y, 3, list, 0, 0) + 1e-12);
    }
}

/* 3 2 2 fall: their mean is 7/3. */
TEST(a_table_pools_what_falls) {
    double y[] = { 1, 3, 2, 2, 6 };
    mtf_samples_make_rising(y, 5);
    static const double expected[] = { 1, 7.0 / 3, 7.0 / 3, 7.0 / 3, 6 };
    for (int i = 0; i < 5; i++)
        assert_close(y[i], expected[i]);
}

TEST(the_first_quarter_of_equal_sizes_counts_and_tables_are_sorted) {
    g_autoptr(MtfSamples) samples = mtf_samples_new();
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    mtf_samples_add(samples, "gelu/f32", 20, 5);
    mtf_samples_add(samples, "relu/f32", 7, 1);
    mtf_samples_add(samples, "gelu/f32", 10, 4);
    mtf_samples_add(samples, "gelu/f32", 20, 6);
    for (int i = 4; i > 0; i--)
        mtf_samples_add(samples, "gelu/f32", 30, 10 * i);
    mtf_samples_fit(samples, machine);
    const MtfMachineCurve *gelu = mtf_machine_curve(machine, "gelu/f32");
    assert_int_equal(gelu->points, 3);
    assert_close(gelu->x[0], 10);
    assert_close(gelu->y[0], 4);
    assert_close(gelu->x[1], 20);
    assert_close(gelu->y[1], 5);
    assert_close(gelu->y[2], 20);
    assert_int_equal(mtf_machine_curve(machine, "relu/f32")->points, 1);
}

TEST(new_samples_replace_a_table) {
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    for (int turn = 1; turn <= 2; turn++) {
        g_autoptr(MtfSamples) samples = mtf_samples_new();
        mtf_samples_add(samples, "gelu/f32", 1, turn);
        mtf_samples_fit(samples, machine);
    }
    assert_int_equal(machine->curves->len, 1);
    assert_close(mtf_machine_curve(machine, "gelu/f32")->y[0], 2);
}
