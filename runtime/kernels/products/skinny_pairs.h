// SPDX-License-Identifier: GPL-3.0-or-later
/* A few rows times a large matrix of bfloat16 (skinny_rows.h), two neighbours of a sum at a time: an
 * instruction of AVX512_BF16 adds x[k] w[k] + x[k + 1] w[k + 1] in each of 16 lanes, twice what
 * widening and one product a lane do. */
#ifndef MTF_SKINNY_PAIRS_H
#define MTF_SKINNY_PAIRS_H

#include "runtime/kernels/products/skinny_rows.h"

/* Whether this processor has that instruction, and as fast as a product of float32: AMD's do, Intel's
 * take longer over it than over two of those. */
bool mtf_skinny_pairs_pay(void);

/* y = x w of up to MTF_SKINNY_ROWS rows, where x holds what bfloat16 can. Only where they pay. */
void mtf_skinny_pairs(const MtfSkinny *piece, const MtfProgressHook *progress);

#endif
