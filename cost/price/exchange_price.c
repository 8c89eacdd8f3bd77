// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/exchange_price.h"

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
                          MtfCollectiveKind kind, unsigned axes, double bytes, double *seconds) {
    MtfNetwork group = mtf_mesh_map_group(map, axes);
    const char *switched =
        kind == MTF_ALLREDUCE ? rows[algorithm].switched_allreduce : rows[algorithm].switched;
    const char *name = group.switched ? switched : rows[algorithm].torus;
    MtfCollective collective = { .kind = kind, .bytes = bytes };
    MtfCollectivePrice price;
    if (name == NULL || group.axes == 0 || bytes <= 0 ||
        !mtf_collective_named(&group, &collective, name, &price, NULL))
        return false;
    *seconds = price.seconds;
    return true;
}
