// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/quantile.h"

#include <stdlib.h>

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare);
}

double mtf_median(double *values, int64_t n) {
    sort(values, n);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double mtf_first_quarter(double *values, int64_t n) {
    sort(values, n);
    return values[n / 4];
}
