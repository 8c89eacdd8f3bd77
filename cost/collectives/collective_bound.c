// SPDX-License-Identifier: GPL-3.0-or-later
/* Lower bounds that hold for any algorithm. Latency: some message crosses the diameter. Bandwidth,
 * on a torus with L the summed bandwidth of all directed links and P that of the links into the
 * worst placed rank (a corner):
 *
 *     allgather, reduce-scatter   a rank must receive (send) the N-1 parts it lacks    (N-1)/N V /
 * P allreduce                   2 (N-1) S must travel in all (Patarasuk and Yuan     2 (N-1) S / L
 *                                 2009), and a corner must receive the result          S / P
 *     alltoall                    the cut across the middle of each axis               S max c_d /
 * B_d broadcast                   every other rank must receive S                      S / P
 *
 * Levels are bounded the same way at every child: its uplink and its share of the outer uplinks. */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>

/* Bandwidth out of the rank with the fewest links. */
static double corner_bandwidth(const MtfNetwork *network) {
    double sum = 0;
    for (int d = 0; d < network->axes; d++)
        if (network->axis[d].size > 1)
            sum += mtf_axis_links(&network->axis[d]) * network->axis[d].bandwidth;
    return sum;
}

/* Bandwidth of all directed links, divided by the number of ranks. */
static double mean_bandwidth(const MtfNetwork *network) {
    double sum = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double n = (double)axis->size;
        sum += 2 * (axis->wrap ? (n > 1) : (n - 1) / n) * axis->bandwidth;
    }
    return sum;
}

static double diameter_seconds(const MtfNetwork *network) {
    double seconds = 0;
    for (int d = 0; d < network->axes; d++)
        seconds += mtf_axis_reach(&network->axis[d]) * network->axis[d].latency;
    return seconds;
}

static double allreduce_bandwidth_bound(const MtfNetwork *network, double bytes) {
    double ranks = (double)mtf_network_ranks(network);
    return fmax(2 * (ranks - 1) / ranks * bytes / mean_bandwidth(network),
                bytes / corner_bandwidth(network));
}

static double exchange_bandwidth_bound(const MtfNetwork *network, double bytes) {
    double worst = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double n = (double)axis->size, half = floor(n / 2), other = n - half;
        double c = half * other / (axis->wrap ? 2 * n : n);
        worst = fmax(worst, bytes * c / axis->bandwidth);
    }
    return worst;
}

static double distance_seconds(const MtfNetwork *network, int64_t from, int64_t to) {
    int64_t a[MTF_NETWORK_AXES_MAX], b[MTF_NETWORK_AXES_MAX];
    double seconds = 0;
    mtf_network_coordinates(network, from, a);
    mtf_network_coordinates(network, to, b);
    for (int d = 0; d < network->axes; d++)
        seconds +=
            (double)mtf_axis_distance(&network->axis[d], a[d], b[d]) * network->axis[d].latency;
    return seconds;
}

/* The farthest rank from the root. */
static double broadcast_latency(const MtfNetwork *network, const MtfCollective *collective) {
    MtfCollective far = *collective;
    far.to = far.from;
    return distance_seconds(network, far.from, mtf_collective_target(network, &far));
}

/* A shift by s: the message of rank 0 and that of the last rank, which wraps; what a corner sends;
 * and on one axis the hops that all messages make together. */
static double permute_bound(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network), shift = collective->shift % ranks;
    shift = shift < 0 ? shift + ranks : shift;
    if (shift == 0)
        return 0;
    double bytes = collective->bytes, n = (double)ranks, s = (double)shift;
    double hops = network->axis[0].wrap ? fmin(s, n - s) : 2 * s * (n - s) / n;
    double latency =
        fmax(distance_seconds(network, 0, shift), distance_seconds(network, ranks - 1, shift - 1));
    double bandwidth = bytes / corner_bandwidth(network);
    if (network->axes == 1)
        bandwidth = fmax(bandwidth, bytes * hops / mean_bandwidth(network));
    return fmax(latency, bandwidth);
}

/* A corner sends one face an axis over one link an axis, by whatever ways. */
static double halo_bound(const MtfNetwork *network, const MtfCollective *collective) {
    double latency = 0, faces = 0, links = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        if (axis->size == 1)
            continue;
        latency = fmax(latency, axis->latency);
        faces += d < collective->faces ? collective->face[d] : collective->bytes;
        links += axis->bandwidth;
    }
    return fmax(latency, faces / links);
}

/* Bandwidth out of one rank. */
static double port_bandwidth(const MtfNetwork *network, int64_t rank) {
    int64_t at[MTF_NETWORK_AXES_MAX];
    double sum = 0;
    mtf_network_coordinates(network, rank, at);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        bool both = axis->wrap || (at[d] > 0 && at[d] < axis->size - 1);
        sum += axis->size == 1 ? 0 : (both ? 2 : 1) * axis->bandwidth;
    }
    return sum;
}

static double p2p_bound(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t from = collective->from, to = mtf_collective_target(network, collective);
    double ports = fmin(port_bandwidth(network, from), port_bandwidth(network, to));
    return fmax(distance_seconds(network, from, to), collective->bytes / ports);
}

static double torus_bound(const MtfNetwork *network, const MtfCollective *collective) {
    double ranks = (double)mtf_network_ranks(network), bytes = collective->bytes;
    double corner = corner_bandwidth(network);
    switch (collective->kind) {
    case MTF_ALLGATHER:
    case MTF_REDUCE_SCATTER:
        return fmax(diameter_seconds(network), (ranks - 1) / ranks * bytes / corner);
    case MTF_ALLREDUCE:
        return fmax(diameter_seconds(network), allreduce_bandwidth_bound(network, bytes));
    case MTF_ALLTOALL:
        return fmax(diameter_seconds(network), exchange_bandwidth_bound(network, bytes));
    case MTF_BROADCAST:
        return fmax(broadcast_latency(network, collective), bytes / corner);
    case MTF_PERMUTE:
        return permute_bound(network, collective);
    case MTF_HALO:
        return halo_bound(network, collective);
    default:
        return p2p_bound(network, collective);
    }
}

/* Bandwidth into a child of level d: its uplink and its share of the outer ones, which its members
 * may reach by other adapters. `inside[d]` counts the members of such a child. */
static double child_bandwidth(const MtfNetwork *network, const double *inside, int d) {
    double sum = 0;
    for (int outer = 0; outer <= d; outer++)
        sum += network->axis[outer].bandwidth * inside[d] / inside[outer];
    return sum;
}

/* Bytes that must enter a child of `inside` members. */
static double bytes_into_child(const MtfNetwork *network, const MtfCollective *collective,
                               double inside) {
    double ranks = (double)mtf_network_ranks(network), outside = 1 - inside / ranks;
    switch (collective->kind) {
    case MTF_ALLGATHER:
    case MTF_REDUCE_SCATTER:
        return outside * collective->bytes;
    case MTF_ALLREDUCE:
        return 2 * outside * collective->bytes;
    case MTF_ALLTOALL:
        return inside * outside * collective->bytes;
    case MTF_BROADCAST:
        return collective->bytes;
    default:
        return inside == 1 ? collective->bytes : 0;
    }
}

static double levels_bound(const MtfNetwork *network, const MtfCollective *collective) {
    double inside[MTF_NETWORK_AXES_MAX], members = 1, bound = 0, nearest = INFINITY, farthest = 0;
    for (int d = network->axes - 1; d >= 0; d--) {
        inside[d] = members;
        members *= (double)network->axis[d].size;
    }
    for (int d = 0; d < network->axes; d++) {
        bound = fmax(bound, bytes_into_child(network, collective, inside[d]) /
                                child_bandwidth(network, inside, d));
        nearest = fmin(nearest, network->axis[d].latency);
        farthest = fmax(farthest, network->axis[d].latency);
    }
    bool all_meet = collective->kind <= MTF_BROADCAST;
    return fmax(bound, all_meet ? farthest : nearest);
}

double mtf_collective_bound(const MtfNetwork *network, const MtfCollective *collective) {
    MtfNetwork group;
    if (!mtf_collective_prepare(network, collective, &group))
        return 0;
    return group.switched ? levels_bound(&group, collective) : torus_bound(&group, collective);
}
