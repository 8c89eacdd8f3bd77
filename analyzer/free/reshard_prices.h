// SPDX-License-Identifier: GPL-3.0-or-later
/* What it costs to take a tensor from one placement to another, found once for all tensors that
 * are alike in what matters: a price depends on the sizes of the dimensions that are split, on how
 * many elements the others make, and on the type. */
#ifndef MTF_RESHARD_PRICES_H
#define MTF_RESHARD_PRICES_H

#include "cost/price/price.h"
#include "layouts/placement/layout.h"

typedef struct MtfReshardPrices MtfReshardPrices;

/* Graph and pricer must outlive the prices. */
MtfReshardPrices *mtf_reshard_prices_new(const MtfGraph *graph, const MtfMesh *mesh,
                                         const MtfPricer *pricer);
void mtf_reshard_prices_free(MtfReshardPrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfReshardPrices, mtf_reshard_prices_free)

/* Announces placements (MtfPlacement) of a tensor: all of them before the first is priced, from one
 * thread. */
void mtf_reshard_prices_expect(MtfReshardPrices *prices, int tensor, const GArray *placements);

/* Nanoseconds of the cheapest resharding of `tensor`, done once, from each of some placements to
 * each of others, which have been announced: [from->len * to->len], 0 between equal ones; free with
 * g_free. Threads may ask at the same time. */
int64_t *mtf_reshard_prices_of_pairs(MtfReshardPrices *prices, int tensor, const GArray *from,
                                     const GArray *to);

#endif
