// SPDX-License-Identifier: GPL-3.0-or-later
/* Trees and recursive exchanges: few messages for small payloads, and the pipelined trees that beat
 * rings on lines. Broadcasts stand here too: they are the second half of a tree allreduce. */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>
#include <stdlib.h>

static bool is_power_of_two(int64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

static bool sizes_are_powers_of_two(const MtfNetwork *network) {
    for (int d = 0; d < network->axes; d++)
        if (!is_power_of_two(network->axis[d].size))
            return false;
    return true;
}

/* Reduce to the centre along one axis after another, then broadcast back, in k segments:
 * h (alpha + S/(kB)) + (k-1) S/(kB), h = sum of 2 floor(n/2). Every link carries S once each way,
 * which no allreduce on a line avoids at its end. */
static double tree_reduce_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    double hops = 0, latency = 0;
    for (int d = 0; d < network->axes; d++) {
        double there_and_back = 2 * floor((double)network->axis[d].size / 2);
        hops += there_and_back;
        latency += there_and_back * network->axis[d].latency;
    }
    if (!mtf_network_links_are_distinct(network))
        return NAN;
    return mtf_chain_seconds(hops, latency, collective->bytes, mtf_network_slowest(network),
                             network->message_seconds, collective->segments) +
           collective->bytes * network->reduce_seconds_per_byte;
}

static double line_reduce_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes == 1 ? tree_reduce_bcast(network, collective) : NAN;
}

/* Partners at distance 1, 2, 4, … along each axis exchange the whole payload; 2^s pairs cross the
 * middle link in step s: sum of 2^s (alpha + S/B) = (n-1) (alpha + S/B) an axis. */
static double recursive_doubling(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = 0, steps = 0;
    if (!sizes_are_powers_of_two(network))
        return NAN;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double n = (double)axis->size;
        seconds += (n - 1) * (axis->latency + collective->bytes / axis->bandwidth);
        steps += log2(n);
    }
    return seconds + steps * (network->message_seconds +
                              collective->bytes * network->reduce_seconds_per_byte);
}

/* An axis goes before another when that order costs less: by lg n / (B (1 - 1/n)). */
static int by_halving_cost(const void *a, const void *b) {
    const MtfNetworkAxis *x = a, *y = b;
    double m = (double)x->size, n = (double)y->size;
    double p = log2(m) / (x->bandwidth * (1 - 1 / m)), q = log2(n) / (y->bandwidth * (1 - 1 / n));
    return (p > q) - (p < q);
}

/* Halves of the payload at distance 1, quarters at 2, …: the busiest link carries S/2 in every
 * step, so (n-1) alpha + lg n S/(2B) an axis; the next axis works on 1/n of the payload. */
static double recursive_halving(const MtfNetwork *network, const MtfCollective *collective) {
    MtfNetwork sorted = *network;
    double seconds = 0, bytes = collective->bytes;
    if (!sizes_are_powers_of_two(network))
        return NAN;
    qsort(sorted.axis, (size_t)sorted.axes, sizeof sorted.axis[0], by_halving_cost);
    for (int d = 0; d < sorted.axes; d++) {
        const MtfNetworkAxis *axis = &sorted.axis[d];
        double n = (double)axis->size;
        seconds += (n - 1) * axis->latency +
                   log2(n) * (network->message_seconds + bytes / (2 * axis->bandwidth));
        bytes /= n;
    }
    return seconds;
}

static bool is_cube_of_rings(const MtfNetwork *network) {
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d], *first = &network->axis[0];
        if (!axis->wrap || axis->size != first->size || axis->bandwidth != first->bandwidth ||
            axis->latency != first->latency || axis->size < 4)
            return false;
    }
    return is_power_of_two(network->axis[0].size) && mtf_network_links_are_distinct(network);
}

/* Swing (De Sensi et al., NSDI 2024): in step s a rank meets the one at distance
 * rho(s) = (1 - (-2)^(s+1)) / 3 along axis s mod D, with 1/2^(s+1) of the payload in each of 2D
 * mirrored copies. */
static double swing(const MtfNetwork *network, const MtfCollective *collective) {
    if (!is_cube_of_rings(network))
        return NAN;
    double hop = network->axis[0].latency, o = network->message_seconds, seconds = 0;
    int steps = (int)lround(log2((double)mtf_network_ranks(network)));
    double copy = collective->bytes / (2 * network->axes * network->axis[0].bandwidth);
    for (int s = 0; s < steps; s++) {
        double distance = fabs(1 - pow(-2, s / network->axes + 1)) / 3;
        seconds += o + distance * hop + distance * copy / pow(2, s + 1);
    }
    return seconds;
}

/* Hops from the root to its farthest rank along one axis. */
static double root_reach(const MtfNetwork *network, int d, int64_t root) {
    int64_t at[MTF_NETWORK_AXES_MAX], n = network->axis[d].size;
    if (network->axis[d].wrap)
        return (double)(n / 2);
    mtf_network_coordinates(network, root, at);
    return (double)MAX(at[d], n - 1 - at[d]);
}

/* Along one axis after another from the root, in k segments: S/B once the pipe is full. */
static double tree_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    double hops = 0, latency = 0;
    for (int d = 0; d < network->axes; d++) {
        double reach = root_reach(network, d, collective->from);
        hops += reach;
        latency += reach * network->axis[d].latency;
    }
    return mtf_chain_seconds(hops, latency, collective->bytes, mtf_network_slowest(network),
                             network->message_seconds, collective->segments);
}

static double line_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes == 1 && !network->axis[0].wrap ? tree_bcast(network, collective) : NAN;
}

/* Half of the payload each way round: h (alpha + S/(2kB)) + (k-1) S/(2kB), h = n - 1. */
static double ring_bidir_halves(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    double hops = (double)(axis->size - 1);
    if (network->axes != 1 || !axis->wrap)
        return NAN;
    return mtf_chain_seconds(hops, hops * axis->latency, collective->bytes / 2, axis->bandwidth,
                             network->message_seconds, collective->segments);
}

/* The root scatters over all its links, then all gather. */
static double scatter_allgather(const MtfNetwork *network, const MtfCollective *collective) {
    double links = 0, latency = 0, ranks = (double)mtf_network_ranks(network);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        links += mtf_axis_links(axis) * axis->bandwidth;
        latency += root_reach(network, d, collective->from) * axis->latency;
    }
    MtfCollective gather = { .kind = MTF_ALLGATHER, .bytes = collective->bytes };
    return latency + network->message_seconds + (ranks - 1) / ranks * collective->bytes / links +
           mtf_collective_best(network, &gather).seconds;
}

#define ALLREDUCE(use) MTF_KIND_BIT(MTF_ALLREDUCE), false, MTF_ALGORITHM_##use, NULL
#define BROADCAST(use) MTF_KIND_BIT(MTF_BROADCAST), false, MTF_ALGORITHM_##use, NULL

static const MtfCollectiveAlgorithm rows[] = {
    { "line_reduce_bcast", ALLREDUCE(SEGMENTED), line_reduce_bcast },
    { "tree_reduce_bcast", ALLREDUCE(SEGMENTED), tree_reduce_bcast },
    { "recursive_doubling", ALLREDUCE(REAL), recursive_doubling },
    { "recursive_halving", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, recursive_halving, NULL },
    { "swing", MTF_GATHER_KINDS, false, MTF_ALGORITHM_REAL, swing, NULL },
    { "ring_bidir_halves", BROADCAST(SEGMENTED), ring_bidir_halves },
    { "line", BROADCAST(SEGMENTED), line_bcast },
    { "tree_bcast", BROADCAST(SEGMENTED), tree_bcast },
    { "scatter_allgather", BROADCAST(REAL), scatter_allgather },
};

const MtfCollectiveFamily mtf_tree_algorithms = { rows, G_N_ELEMENTS(rows) };
