// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collectives/nccl_collective.h"

#include <math.h>

#define PROTOCOLS 3

/* A protocol beside Simple: its share of the bandwidth, and of the latency of a hop (tuning.cc: NVLink
 * 0.6, 1.9 and 3.4 us, network 2.7, 4.0 and 14 us of rings; LL128 the mean of .56 and .29). Simple
 * and LL128 are known to reach what `bandwidth` says; LL's two flags an 8 bytes halve it. */
static const struct {
    double bandwidth, latency;
} protocols[PROTOCOLS] = { { 0.5, 0.18 }, { 0.92, 0.42 }, { 1, 1 } };

/* Seconds of the hops that a block makes once round, and of the longest chain to a tree's root. */
typedef struct {
    double round, chain;
} Hops;

/* A ring of all ranks enters each child of level d once; a tree doubles between the children of the
 * outer levels and is a chain inside the innermost; two innermost groups are needed for trees. */
static Hops hops_of(const MtfNetwork *group) {
    Hops hops = { 0, 0 };
    double outer = 0, children = 1, least = INFINITY;
    for (int d = 0; d < group->axes; d++) {
        double size = (double)group->axis[d].size, latency = group->axis[d].latency;
        bool innermost = d == group->axes - 1;
        children *= size;
        hops.round += (children - outer) * latency;
        hops.chain += (innermost ? size - 1 : ceil(log2(size))) * latency;
        least = fmin(least, latency);
        outer = children;
    }
    hops.round -= least;
    return hops;
}

/* What the slowest hop of a ring carries. Through a mesh of g ranks that is left again a ring makes
 * g - 1 hops instead of g, so that its links serve so many more rings. */
static double ring_bandwidth(const MtfNetwork *group) {
    double slowest = INFINITY;
    for (int d = 0; d < group->axes; d++) {
        double size = (double)group->axis[d].size;
        double rings = d > 0 && group->axis[d].pair > 0 ? size / (size - 1) : 1;
        slowest = fmin(slowest, rings * group->axis[d].bandwidth);
    }
    return slowest;
}

/* Sums in the innermost switch: of allreduces inside it, from 4 ranks on. */
static double switch_seconds(const MtfMachineTransport *transport, const MtfNetwork *group,
                             MtfCollectiveKind kind, double bytes) {
    double p = (double)mtf_network_ranks(group);
    if (kind != MTF_ALLREDUCE || transport->in_switch <= 0 || group->axes != 1 || p < 4)
        return INFINITY;
    double bus = transport->in_switch * group->axis[0].bandwidth;
    return transport->base[2] + 2 * group->axis[0].latency + 2 * (p - 1) / p * bytes / bus;
}

double mtf_nccl_seconds(const MtfMachineTransport *transport, const MtfNetwork *group,
                        MtfCollectiveKind kind, double bytes) {
    double p = (double)mtf_network_ranks(group), slowest = ring_bandwidth(group);
    Hops hops = hops_of(group);
    double rounds = kind == MTF_ALLREDUCE ? 2 : 1;
    double best = switch_seconds(transport, group, kind, bytes);
    for (int i = 0; i < PROTOCOLS; i++) {
        double base = transport->base[i], bandwidth = slowest * protocols[i].bandwidth;
        double ring = base + rounds * hops.round * protocols[i].latency +
                      rounds * (p - 1) / p * bytes / bandwidth;
        double tree = base + 2 * hops.chain * protocols[i].latency + 2 * bytes / bandwidth;
        bool trees = kind == MTF_ALLREDUCE && group->axes > 1;
        best = fmin(best, trees ? fmin(ring, tree) : ring);
    }
    return best;
}
