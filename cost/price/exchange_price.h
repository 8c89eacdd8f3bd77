// SPDX-License-Identifier: GPL-3.0-or-later
/* The price of a collective by the algorithm that runs it (layouts/exchange): the row of
 * cost/collectives that is made of the same messages. */
#ifndef MTF_EXCHANGE_PRICE_H
#define MTF_EXCHANGE_PRICE_H

#include "cost/collectives/collective.h"
#include "layouts/exchange/exchange_algorithm.h"

/* Seconds over the mesh axes of a mask while all groups run it at once, `bytes` its payload per
 * rank. False where no formula tells: MPI's own, and algorithms on networks that they do not suit.
 * Direct exchanges are priced on switches alone. */
bool mtf_exchange_seconds(const MtfMeshMap *map, MtfExchangeAlgorithm algorithm,
                          MtfCollectiveKind kind, unsigned axes, double bytes, double *seconds);

#endif
