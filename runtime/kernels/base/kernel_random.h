// SPDX-License-Identifier: GPL-3.0-or-later
/* The random numbers of layouts/graph/random.h, many blocks at a time: the same words, from the same ten
 * rounds of Philox4x32, with one block a lane of the vector unit.
 *
 *     lane             0    1    2    …
 *     block            b  b+1  b+2
 *     word 0 … 3    four elements each     4b … 4b+3, 4b+4 … */
#ifndef MTF_KERNEL_RANDOM_H
#define MTF_KERNEL_RANDOM_H

#include "layouts/graph/random.h"

/* keep[i] = 1 where dropout keeps element first + i (mtf_random_keeps), else 0, for i < n. */
void mtf_kernel_random_keep(const MtfRandom *random, double rate, int64_t first, int64_t n,
                            uint8_t *keep);

/* words[i] = the word of element first + i (mtf_random_word), for i < n. */
void mtf_kernel_random_words(const MtfRandom *random, int64_t first, int64_t n, uint32_t *words);

#endif
