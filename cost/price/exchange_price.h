// SPDX-License-Identifier: GPL-3.0-or-later
/* The price of a collective by the algorithm that runs it (layouts/exchange): the row of
 * cost/collectives that is made of the same messages, or what it was measured to take. */
#ifndef MTF_EXCHANGE_PRICE_H
#define MTF_EXCHANGE_PRICE_H

#include "cost/collectives/collective.h"
#include "cost/machine/machine.h"
#include "layouts/exchange/exchange_algorithm.h"

/* A collective over the mesh axes of a mask while all groups run it at once, `bytes` its payload per
 * rank. */
typedef struct {
    MtfCollectiveKind kind;
    unsigned axes;
    double bytes;
} MtfGroupCollective;

/* Its seconds by a formula. False where none tells: MPI's own, and algorithms on networks that they
 * do not suit. Direct exchanges are priced on switches alone. */
bool mtf_exchange_seconds(const MtfMeshMap *map, MtfExchangeAlgorithm algorithm,
                          const MtfGroupCollective *exchange, double *seconds);

/* Its seconds as measured: directly or, in groups of just that size, by another algorithm. False
 * where the machine has no table of them. */
bool mtf_exchange_measured(const MtfMachine *machine, const MtfMeshMap *map,
                           MtfExchangeAlgorithm algorithm, const MtfGroupCollective *exchange,
                           double *seconds);

#endif
