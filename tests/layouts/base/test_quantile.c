// SPDX-License-Identifier: GPL-3.0-or-later
/* Medians and quarters against counting. */
#include "tests/support/cmocka.h"

#include "layouts/base/quantile.h"

#include <glib.h>

static int below(const double *values, int n, double limit) {
    int count = 0;
    for (int i = 0; i < n; i++)
        count += values[i] < limit;
    return count;
}

TEST(as_many_values_lie_below_as_above) {
    for (guint32 seed = 0; seed < 500; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        double values[20];
        int n = g_rand_int_range(random, 1, 21);
        for (int i = 0; i < n; i++)
            values[i] = g_rand_int_range(random, 0, 10);
        double median = mtf_median(values, n), quarter = mtf_first_quarter(values, n);
        assert_true(2 * below(values, n, median) <= n);
        assert_true(2 * (n - below(values, n, median + 1)) <= n);
        assert_true(4 * below(values, n, quarter) <= n);
        assert_true(4 * below(values, n, quarter + 1) >= n);
    }
}

TEST(of_an_even_number_it_is_the_mean_of_the_middle_two) {
    double four[] = { 7, 1, 4, 3 }, three[] = { 9, 1, 2 };
    assert_true(mtf_median(four, 4) == 3.5);
    assert_true(mtf_median(three, 3) == 2);
    assert_true(mtf_first_quarter(four, 4) == 3);
}
