// SPDX-License-Identifier: GPL-3.0-or-later
/* Prices of memory at which large moves come to choices that fit. The bound's prices are right for what it mixes;
 * choices are whole, and those that large moves reach at these prices may all be overfull, or all leave room. So prices
 * follow from what each move came to:
 *
 *     the bound's prices ──► times a factor, times what was learned ──► a move ──► overfull: raise, room left: lower
 *                                              ▲                                        │
 *                                              └────────────────────────────────────────┘ */
#ifndef MTF_LEARNED_PRICES_H
#define MTF_LEARNED_PRICES_H

#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfLearnedPrices MtfLearnedPrices;

/* Of the rows of a core, which must outlive them; nothing is learned yet. */
MtfLearnedPrices *mtf_learned_prices_new(const MtfCore *core);
void mtf_learned_prices_free(MtfLearnedPrices *learned);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLearnedPrices, mtf_learned_prices_free)

/* Begins a try at `factor` times the rows' prices, times what was learned until then. */
void mtf_learned_prices_begin(MtfLearnedPrices *learned, const double *prices, double factor);

/* The prices of the next move, one for each row. */
const double *mtf_learned_prices_get(const MtfLearnedPrices *learned);

/* Learns from the values that a move at these prices came to, for the next move and all tries. Returns whether
 * they were right for it: little is overfull, and what is overfull or left is worth little. */
bool mtf_learned_prices_learn(MtfLearnedPrices *learned, const int *values);

#endif
