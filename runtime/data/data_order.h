// SPDX-License-Identifier: GPL-3.0-or-later
/* The order in which an epoch shows its examples: a permutation of 0 … n-1 for each (seed, epoch),
 * worked out for one place at a time, so that nobody keeps it. A Feistel network of four rounds
 * permutes the pairs of half-words, whose number is a power of four of at least n; a place that
 * lands at n or beyond goes through it again until it lands below. */
#ifndef MTF_DATA_ORDER_H
#define MTF_DATA_ORDER_H

#include <stdint.h>

/* The example at `place` of an epoch of `n` examples, 0 <= place < n < 2^60. */
int64_t mtf_data_order(uint64_t seed, int64_t epoch, int64_t n, int64_t place);

#endif
