// SPDX-License-Identifier: GPL-3.0-or-later
/* Medians and quarters of measured values. */
#ifndef MTF_QUANTILE_H
#define MTF_QUANTILE_H

#include <stdint.h>

/* Of n >= 1 values, which are sorted in place: the middle one, or the mean of the middle two. */
double mtf_median(double *values, int64_t n);

/* … the one that a quarter of them is below. */
double mtf_first_quarter(double *values, int64_t n);

#endif
