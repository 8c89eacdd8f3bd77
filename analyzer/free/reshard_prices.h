// SPDX-License-Identifier: GPL-3.0-or-later
/* What it costs to take a tensor from one placement to another, found once for all tensors that
 * are alike in what matters: a price depends on the sizes of the dimensions that are split, on how
 * many elements the others make, on the type, and on what the host takes to launch a step of the
 * operation that reads or leaves the tensor. */
#ifndef MTF_RESHARD_PRICES_H
#define MTF_RESHARD_PRICES_H

#include "analyzer/free/known_paths.h"
#include "cost/price/price.h"
#include "layouts/placement/layout.h"

typedef struct MtfReshardPrices MtfReshardPrices;

/* Graph and pricer must outlive the prices. `paths` is what others found on such a mesh that lies like the
 * pricer's, and what is found is added to it; NULL: nothing is shared. */
MtfReshardPrices *mtf_reshard_prices_new(const MtfGraph *graph, const MtfMesh *mesh,
                                         const MtfPricer *pricer, MtfKnownPaths *paths);
void mtf_reshard_prices_free(MtfReshardPrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfReshardPrices, mtf_reshard_prices_free)

/* A tensor on its way to the operation that reads it, or from the one that leaves it. */
typedef struct {
    int operation, tensor;
} MtfTravel;

/* Nanoseconds of the host for a local step on the way. */
int64_t mtf_travel_launch(const MtfReshardPrices *prices, MtfTravel travel);

/* Announces placements (MtfPlacement) of a tensor on its way: all of them before the first is priced,
 * from one thread. */
void mtf_reshard_prices_expect(MtfReshardPrices *prices, MtfTravel travel,
                               const GArray *placements);

/* Nanoseconds of the cheapest resharding on the way, done once, from each of some placements to
 * each of others, which have been announced: [from->len * to->len], 0 between equal ones; free with
 * g_free. Threads may ask at the same time. */
int64_t *mtf_reshard_prices_of_pairs(MtfReshardPrices *prices, MtfTravel travel, const GArray *from,
                                     const GArray *to);

#endif
