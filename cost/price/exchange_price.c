// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/exchange_price.h"

#include "cost/collectives/measured_collective.h"

/* The row's name on a torus, on a switch, and there for an allreduce; NULL: none. */
static const struct {
    const char *torus, *switched, *switched_allreduce;
} rows[MTF_EXCHANGE_ALGORITHMS] = {
    [MTF_EXCHANGE_DIRECT] = { NULL, "switch", "switch" },
    [MTF_EXCHANGE_RING] = { "ring_unidirectional", "ring", "ring" },
    [MTF_EXCHANGE_BIDIRECTIONAL_RING] = { "ring_halves", "ring", "ring" },
    [MTF_EXCHANGE_RECURSIVE] = { "recursive_halving", "recursive_halving", "rabenseifner" },
    [MTF_EXCHANGE_BUCKET] = { "axis_by_axis", NULL, NULL },
    [MTF_EXCHANGE_HIERARCHICAL] = { "hierarchical", NULL, "hierarchical" },
};

bool mtf_exchange_seconds(const MtfMeshMap *map, MtfExchangeAlgorithm algorithm,
                          const MtfGroupCollective *exchange, double *seconds) {
    MtfNetwork group = mtf_mesh_map_group(map, exchange->axes);
    const char *switched = exchange->kind == MTF_ALLREDUCE ? rows[algorithm].switched_allreduce
                                                           : rows[algorithm].switched;
    const char *name = group.switched ? switched : rows[algorithm].torus;
    MtfCollective collective = { .kind = exchange->kind, .bytes = exchange->bytes };
    MtfCollectivePrice price;
    if (name == NULL || group.axes == 0 || exchange->bytes <= 0 ||
        !mtf_collective_named(&group, &collective, name, &price, NULL))
        return false;
    *seconds = price.seconds;
    return true;
}

bool mtf_exchange_measured(const MtfMachine *machine, const MtfMeshMap *map,
                           MtfExchangeAlgorithm algorithm, const MtfGroupCollective *exchange,
                           double *seconds) {
    if (!mtf_measures_collective(machine, exchange->kind))
        return false;
    if (algorithm == MTF_EXCHANGE_DIRECT) {
        *seconds =
            mtf_collective_seconds(machine, map, exchange->kind, exchange->axes, exchange->bytes);
        return true;
    }
    MtfNetwork group = mtf_mesh_map_group(map, exchange->axes);
    return mtf_measured_algorithm(machine, exchange->kind, mtf_network_ranks(&group), algorithm,
                                  exchange->bytes, seconds);
}
