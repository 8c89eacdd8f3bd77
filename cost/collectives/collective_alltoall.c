// SPDX-License-Identifier: GPL-3.0-or-later
/* All-to-all of S bytes a rank, S/N to each other. Along one axis the busiest link carries c S
 * bytes; see mtf_axis_exchange for c. */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>

static bool is_ring(const MtfNetwork *network) {
    return network->axes == 1 && network->axis[0].wrap;
}

static double ring(const MtfNetwork *network, const MtfCollective *collective) {
    return is_ring(network) ? mtf_axis_exchange(network, 0, collective->bytes) : NAN;
}

/* floor(n/2) alpha + S floor(n/2) ceil(n/2) / (nB), wrap link or not. */
static double line(const MtfNetwork *network, const MtfCollective *collective) {
    if (network->axes != 1)
        return NAN;
    MtfNetwork open = *network;
    open.axis[0].wrap = false;
    return mtf_axis_exchange(&open, 0, collective->bytes);
}

/* All blocks one way round: S (n-1) / (2B). */
static double ring_unidirectional(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    double n = (double)axis->size;
    if (!is_ring(network))
        return NAN;
    return (n - 1) * (axis->latency + network->message_seconds) +
           collective->bytes * (n - 1) / (2 * axis->bandwidth);
}

/* The shorter way, blocks for the place opposite all one way: S (n/2)(n/2+1) / (2n) / B. */
static double ring_ties_one_way(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    double n = (double)axis->size, half = floor(n / 2);
    if (!is_ring(network))
        return NAN;
    return half * (axis->latency + network->message_seconds) +
           collective->bytes * half * (half + 1) / (2 * n) / axis->bandwidth;
}

/* One axis after another: each moves the whole buffer. */
static double axis_by_axis(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = 0;
    for (int d = 0; d < network->axes; d++)
        seconds += mtf_axis_exchange(network, d, collective->bytes);
    return seconds;
}

/* D copies of 1/D of the buffer, copy k starting on axis k, phases synchronised: each phase lasts
 * as long as its slowest axis. With equal axes this is the bound. */
static double bucket_a2a(const MtfNetwork *network, const MtfCollective *collective) {
    double slowest = 0, share = collective->bytes / network->axes;
    if (!mtf_network_links_are_distinct(network))
        return NAN;
    for (int d = 0; d < network->axes; d++)
        slowest = fmax(slowest, mtf_axis_exchange(network, d, share));
    return network->axes * slowest;
}

#define REAL MTF_KIND_BIT(MTF_ALLTOALL), false, MTF_ALGORITHM_REAL, NULL

static const MtfCollectiveAlgorithm rows[] = {
    { "bucket_a2a", REAL, bucket_a2a },
    { "ring", REAL, ring },
    { "ring_ties_one_way", REAL, ring_ties_one_way },
    { "ring_unidirectional", REAL, ring_unidirectional },
    { "line", REAL, line },
    { "axis_by_axis", REAL, axis_by_axis },
};

const MtfCollectiveFamily mtf_alltoall_algorithms = { rows, G_N_ELEMENTS(rows) };
