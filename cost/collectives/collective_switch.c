// SPDX-License-Identifier: GPL-3.0-or-later
/* Switches. One level is a crossbar: any rank may send to any other at full rate, one message at a
 * time costs alpha. The formulas are those of MPICH's sources (Thakur, Rabenseifner, Gropp, IJHPCA
 * 2005), with p ranks, n bytes, beta = 1/B. Several levels are crossbars within crossbars:
 *
 *     level 0 (outermost)   m_0 children, each sends at B_0      hierarchical: each level in turn
 *     level 1               m_1 children, each sends at B_1      works on its share of the payload
 */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>

/* What one message costs when ranks send one after another. */
static double message(const MtfNetwork *network) {
    return network->axis[0].latency + network->message_seconds;
}

static double ranks_of(const MtfNetwork *network) {
    return (double)mtf_network_ranks(network);
}

static bool is_power_of_two(double p) {
    return exp2(round(log2(p))) == p;
}

static double transfer(const MtfNetwork *network, double bytes) {
    return bytes / network->axis[0].bandwidth;
}

/* All messages at once: alpha + o (p-1) + n (p-1)/p beta. */
static double direct(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network);
    if (network->axes != 1)
        return NAN;
    return network->axis[0].latency + (p - 1) * network->message_seconds +
           transfer(network, collective->bytes * (p - 1) / p);
}

/* Round a ring of all ranks a block makes all its hops but one: m_0 … m_d of them between children of
 * level d or of one further out, and the children's uplinks of every level carry
 * n (p-1)/p once: the hops' alphas + n (p-1)/p beta of the worst level. */
static double ring(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network), outer = 0, children = 1, latency = 0, least = INFINITY;
    for (int d = 0; d < network->axes; d++) {
        children *= (double)network->axis[d].size;
        latency += (children - outer) * network->axis[d].latency;
        least = fmin(least, network->axis[d].latency);
        outer = children;
    }
    return latency - least + (p - 1) * network->message_seconds +
           collective->bytes * (p - 1) / p / mtf_network_slowest(network);
}

/* Doubling or halving distances: ceil(lg p) alpha + n (p-1)/p beta. Allgathers of any p run it as
 * Bruck's; a reduce-scatter needs a power of two, or two more messages and about 2n. */
static double bruck(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network);
    if (network->axes != 1)
        return NAN;
    return ceil(log2(p)) * message(network) + transfer(network, collective->bytes * (p - 1) / p);
}

static double recursive_halving(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network), n = collective->bytes, gamma = network->reduce_seconds_per_byte;
    if (network->axes != 1)
        return NAN;
    if (is_power_of_two(p))
        return bruck(network, collective) + n * (p - 1) / p * gamma;
    return (floor(log2(p)) + 2) * message(network) + transfer(network, 2 * n) +
           n * (1 + (p - 1) / p) * gamma;
}

/* lg p (alpha + n beta + n gamma). */
static double recursive_doubling(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network), n = collective->bytes;
    if (network->axes != 1 || !is_power_of_two(p))
        return NAN;
    return log2(p) *
           (message(network) + transfer(network, n) + n * network->reduce_seconds_per_byte);
}

/* Recursive halving, then doubling back. */
static double rabenseifner(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network), n = collective->bytes, gamma = network->reduce_seconds_per_byte;
    if (network->axes != 1)
        return NAN;
    if (is_power_of_two(p))
        return 2 * bruck(network, collective) + n * (p - 1) / p * gamma;
    return (2 * floor(log2(p)) + 2) * message(network) +
           transfer(network, n * (2 * (p - 1) / p + 2)) + n * (1 + (p - 1) / p) * gamma;
}

static double pairwise_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network);
    if (network->axes != 1)
        return NAN;
    return (p - 1) * message(network) + transfer(network, collective->bytes * (p - 1) / p);
}

/* lg p alpha + (n/2) lg p beta; for other p the last round moves less, ceil counts it whole. */
static double bruck_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    double rounds = ceil(log2(ranks_of(network)));
    if (network->axes != 1)
        return NAN;
    return rounds * (message(network) + transfer(network, collective->bytes / 2));
}

/* lg p (alpha + n beta). */
static double binomial_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    if (network->axes != 1)
        return NAN;
    return ceil(log2(ranks_of(network))) *
           (message(network) + transfer(network, collective->bytes));
}

/* (lg p + p - 1) alpha + 2 n (p-1)/p beta, or 2 lg p alpha with Bruck's allgather. */
static double scatter_allgather(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes == 1 ? 2 * bruck(network, collective) : NAN;
}

/* A child's uplink of level d is one of B_d; one level as a network of its own. */
static MtfNetwork level(const MtfNetwork *network, int d) {
    MtfNetwork one = *network;
    one.axes = 1;
    one.axis[0] = network->axis[d];
    return one;
}

/* Level after level, the payload of level d being `share` of the whole per child: the members of a
 * child split the outer levels' work among them, so each level sees the full payload at the
 * bandwidth of a child. */
static double hierarchical(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = 0;
    if (network->axes < 2)
        return NAN;
    for (int d = 0; d < network->axes; d++) {
        MtfNetwork one = level(network, d);
        seconds +=
            fmin(fmin(direct(&one, collective), ring(&one, collective)), bruck(&one, collective));
    }
    return seconds;
}

/* Seconds that the busiest links are busy while all levels work. What leaves a child of level t
 * comes by the links of its own members, so a link of level d carries n (1 - 1 / (m_0 … m_d)). */
static double busiest_links(const MtfNetwork *network, const MtfCollective *collective) {
    double children = 1, busiest = 0;
    for (int d = 0; d < network->axes; d++) {
        children *= (double)network->axis[d].size;
        busiest =
            fmax(busiest, collective->bytes * (1 - 1 / children) / network->axis[d].bandwidth);
    }
    return busiest;
}

/* In k segments, all levels busy at once: the sum + (k-1) of the slowest level or the busiest
 * links. The scaling book's max over levels of n (m-1)/m / B, for k -> infinity, lets what leaves a
 * child pass by the links of its members. */
static double hierarchical_pipelined(const MtfNetwork *network, const MtfCollective *collective) {
    double best = INFINITY;
    if (network->axes < 2)
        return NAN;
    for (double k = 2; k <= 64; k *= 2) {
        MtfCollective segment = *collective;
        segment.bytes /= k;
        double slowest = busiest_links(network, &segment);
        for (int d = 0; d < network->axes; d++) {
            MtfNetwork one = level(network, d);
            slowest = fmax(slowest, fmin(direct(&one, &segment), bruck(&one, &segment)));
        }
        best = fmin(best, hierarchical(network, &segment) + (k - 1) * slowest);
    }
    return best;
}

/* All to all, directly: of the payload of a child's members, the part for ranks outside it leaves
 * over its uplink; alpha of the outermost level. */
static double direct_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    double p = ranks_of(network), inside = 1, slowest = 0, latency = 0;
    for (int d = network->axes - 1; d >= 0; d--) {
        const MtfNetworkAxis *axis = &network->axis[d];
        slowest = fmax(slowest, inside * collective->bytes * (p - inside) / p / axis->bandwidth);
        latency = fmax(latency, axis->latency);
        inside *= (double)axis->size;
    }
    return latency + (p - 1) * network->message_seconds + slowest;
}

/* Aggregated level by level: m messages instead of p. */
static double level_by_level_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = 0, inside = 1;
    if (network->axes < 2)
        return NAN;
    for (int d = network->axes - 1; d >= 0; d--) {
        MtfNetwork one = level(network, d);
        MtfCollective part = { .kind = MTF_ALLTOALL, .bytes = collective->bytes * inside };
        seconds += fmin(direct_alltoall(&one, &part), bruck_alltoall(&one, &part));
        inside *= (double)network->axis[d].size;
    }
    return seconds;
}

/* A broadcast over several levels: each level's best, from the outermost. */
static double level_by_level_bcast(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = 0;
    if (network->axes < 2)
        return NAN;
    for (int d = 0; d < network->axes; d++) {
        MtfNetwork one = level(network, d);
        seconds += fmin(binomial_bcast(&one, collective), scatter_allgather(&one, collective));
    }
    return seconds;
}

/* Ranks of a child of `inside` that send outside it, where each sends to the one `shift` places on.
 */
static double leaving(const MtfNetwork *network, const MtfCollective *collective, double inside) {
    double p = ranks_of(network), shift = fmod((double)collective->shift, p);
    shift += shift < 0 ? p : 0;
    return fmin(inside, fmin(shift, p - shift));
}

/* Neighbours: one message through the levels; a face on either side for a halo, which may send all
 * of a child's members outside; of a permutation those that leave it. In a full mesh a message has one link. */
static double send(const MtfNetwork *network, const MtfCollective *collective) {
    double latency = 0, slowest = 0, inside = 1;
    double messages = collective->kind == MTF_HALO ? 2 : 1, largest = collective->bytes;
    for (int i = 0; i < collective->faces && collective->kind == MTF_HALO; i++)
        largest = i == 0 ? collective->face[i] : largest + collective->face[i];
    for (int d = network->axes - 1; d >= 0; d--) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double senders = collective->kind == MTF_PERMUTE ? leaving(network, collective, inside)
                         : collective->kind == MTF_HALO  ? inside
                                                         : 1;
        double way = axis->pair > 0 ? axis->pair : axis->bandwidth;
        latency = fmax(latency, axis->latency);
        slowest = fmax(slowest, senders * messages * largest / way);
        inside *= (double)axis->size;
    }
    return slowest > 0 ? latency + messages * network->message_seconds + slowest : 0;
}

#define ROW(kinds) (kinds), true, MTF_ALGORITHM_REAL
#define REDUCE_SCATTER MTF_KIND_BIT(MTF_REDUCE_SCATTER)
#define ALLREDUCE MTF_KIND_BIT(MTF_ALLREDUCE)
#define ALLTOALL MTF_KIND_BIT(MTF_ALLTOALL)
#define BROADCAST MTF_KIND_BIT(MTF_BROADCAST)
#define NEIGHBORS MTF_KIND_BIT(MTF_PERMUTE) | MTF_KIND_BIT(MTF_HALO) | MTF_KIND_BIT(MTF_P2P)

static const MtfCollectiveAlgorithm rows[] = {
    { "switch", ROW(MTF_GATHER_KINDS), direct, NULL },
    { "ring", ROW(MTF_GATHER_KINDS), ring, NULL },
    { "bruck", ROW(MTF_KIND_BIT(MTF_ALLGATHER)), bruck, NULL },
    { "recursive_doubling", ROW(ALLREDUCE), NULL, recursive_doubling },
    { "rabenseifner", ROW(ALLREDUCE), NULL, rabenseifner },
    { "recursive_halving", ROW(REDUCE_SCATTER), NULL, recursive_halving },
    { "hierarchical", ROW(MTF_GATHER_KINDS), hierarchical, NULL },
    { "hierarchical_pipelined", ROW(MTF_GATHER_KINDS), hierarchical_pipelined, NULL },
    { "switch", ROW(ALLTOALL), NULL, direct_alltoall },
    { "pairwise", ROW(ALLTOALL), NULL, pairwise_alltoall },
    { "bruck", ROW(ALLTOALL), NULL, bruck_alltoall },
    { "level_by_level", ROW(ALLTOALL), NULL, level_by_level_alltoall },
    { "binomial", ROW(BROADCAST), NULL, binomial_bcast },
    { "scatter_allgather", ROW(BROADCAST), NULL, scatter_allgather },
    { "level_by_level", ROW(BROADCAST), NULL, level_by_level_bcast },
    { "switch", ROW(NEIGHBORS), NULL, send },
};

const MtfCollectiveFamily mtf_switch_algorithms = { rows, G_N_ELEMENTS(rows) };
