// SPDX-License-Identifier: GPL-3.0-or-later
/* What a unit of memory is worth at times of a layout problem. Prices that one search ended with are good ones for
 * another to begin with: of the same problem, or of one with more layers, since what a byte saves is then the same. */
#ifndef MTF_ROW_PRICES_H
#define MTF_ROW_PRICES_H

#include <glib.h>
#include <stdint.h>

typedef struct MtfRowPrices {
    int count;
    int64_t *times; /* ascending */
    double *per_unit;
} MtfRowPrices;

/* Of `count` times, none of which is set. */
MtfRowPrices *mtf_row_prices_new(int count);
MtfRowPrices *mtf_row_prices_copy(const MtfRowPrices *prices);
void mtf_row_prices_free(MtfRowPrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRowPrices, mtf_row_prices_free)

#endif
