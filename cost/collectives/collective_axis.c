// SPDX-License-Identifier: GPL-3.0-or-later
/* Allgather, reduce-scatter and allreduce along one axis, as the price of an allgather of V bytes.
 * A ring sends both ways, each block by the shorter way; for an even n the block opposite is split
 * between the two. On a line the end receives n - 1 blocks over one link. */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>

static double hop(const MtfNetwork *network) {
    return network->axis[0].latency + network->message_seconds;
}

static double places(const MtfNetwork *network) {
    return (double)network->axis[0].size;
}

static bool is_ring(const MtfNetwork *network) {
    return network->axes == 1 && network->axis[0].wrap;
}

/* floor(n/2) alpha + (n-1)/n V / (2B). */
static double ring(const MtfNetwork *network, const MtfCollective *collective) {
    return is_ring(network) ? mtf_axis_gather(network, 0, collective->bytes) : NAN;
}

/* Two half-rings, each half of every block all the way round: (n-1) alpha + (n-1)/n V / (2B). */
static double ring_halves(const MtfNetwork *network, const MtfCollective *collective) {
    double n = places(network);
    if (!is_ring(network))
        return NAN;
    return (n - 1) * hop(network) +
           (n - 1) / n * collective->bytes / (2 * network->axis[0].bandwidth);
}

/* (n-1) (alpha + V / (nB)): what most libraries do. */
static double ring_unidirectional(const MtfNetwork *network, const MtfCollective *collective) {
    double n = places(network);
    if (!is_ring(network))
        return NAN;
    return (n - 1) * (hop(network) + collective->bytes / (n * network->axis[0].bandwidth));
}

/* Both ways without splitting the block opposite: n/2 blocks over the busier link. */
static double ring_no_split(const MtfNetwork *network, const MtfCollective *collective) {
    double n = places(network);
    if (!is_ring(network))
        return NAN;
    return floor(n / 2) * (hop(network) + collective->bytes / (n * network->axis[0].bandwidth));
}

/* (n-1) alpha + (n-1)/n V / B, wrap link or not. */
static double line(const MtfNetwork *network, const MtfCollective *collective) {
    double n = places(network);
    if (network->axes != 1)
        return NAN;
    return (n - 1) * hop(network) + (n - 1) / n * collective->bytes / network->axis[0].bandwidth;
}

/* Every s-th place of a ring: the network already has its latency times s and bandwidth over s. */
static double strided(const MtfNetwork *network, const MtfCollective *collective) {
    return is_ring(network) ? ring_halves(network, collective) : line(network, collective);
}

/* V over all links of a device at once: what the scaling book quotes for large arrays. */
static double ideal_bandwidth(const MtfNetwork *network, const MtfCollective *collective) {
    double links = 0;
    for (int d = 0; d < network->axes; d++)
        links += mtf_axis_links(&network->axis[d]) * network->axis[d].bandwidth;
    return collective->bytes / links;
}

/* The scaling book's form for small arrays: the larger of the two terms instead of their sum. */
static double ideal_latency(const MtfNetwork *network, const MtfCollective *collective) {
    double latency = 0;
    for (int d = 0; d < network->axes; d++)
        latency += mtf_axis_reach(&network->axis[d]) * network->axis[d].latency;
    return fmax(latency, ideal_bandwidth(network, collective));
}

static const MtfCollectiveAlgorithm rows[] = {
    { "ring", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, ring, NULL },
    { "ring_halves", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, ring_halves, NULL },
    { "ring_no_split", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, ring_no_split, NULL },
    { "ring_unidirectional", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, ring_unidirectional,
      NULL },
    { "line", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, line, NULL },
    { "strided", MTF_GATHER_KINDS, false, MTF_ALGORITHM_NAMED, strided, NULL },
    { "ring_ideal_bw", MTF_GATHER_KINDS, false, MTF_ALGORITHM_NAMED, ideal_bandwidth, NULL },
    { "torus_ideal_bw", MTF_GATHER_KINDS, false, MTF_ALGORITHM_NAMED, ideal_bandwidth, NULL },
    { "ring_latency", MTF_GATHER_KINDS, false, MTF_ALGORITHM_NAMED, ideal_latency, NULL },
    { "torus_latency", MTF_GATHER_KINDS, false, MTF_ALGORITHM_NAMED, ideal_latency, NULL },
};

const MtfCollectiveFamily mtf_axis_algorithms = { rows, G_N_ELEMENTS(rows) };
