// SPDX-License-Identifier: GPL-3.0-or-later
/* Algorithms: the rival algorithms of the collectives, each a row with the formula of its price.
 * Rows live in sibling files, one family a file; collective.c joins them and picks the cheapest.
 *
 *     collective_axis.c       one axis: rings both ways round, lines, strided rings
 *     collective_bucket.c     several axes: rotated copies, one axis after another, Hamiltonian rings
 *     collective_tree.c       trees and recursive exchanges, broadcast
 *     collective_alltoall.c   all-to-all
 *     collective_neighbor.c   permute, halo, point to point
 *     collective_switch.c     a switch and levels of switches
 *
 * Allgather, reduce-scatter and allreduce share `gather`: a reduce-scatter is an allgather simulated
 * backwards that also adds, an allreduce is both. A formula returns NAN where its algorithm does not
 * apply. Sources are named at each formula; "bucket" is Jain and Sabharwal, ICS 2010; measured
 * agreement is by cost/simulate/collective_simulator.h. */
#ifndef MTF_COLLECTIVE_ALGORITHM_H
#define MTF_COLLECTIVE_ALGORITHM_H

#include "cost/collectives/collective.h"

#define MTF_KIND_BIT(kind) (1U << (kind))
#define MTF_GATHER_KINDS \
    (MTF_KIND_BIT(MTF_ALLREDUCE) | MTF_KIND_BIT(MTF_REDUCE_SCATTER) | MTF_KIND_BIT(MTF_ALLGATHER))

enum {
    MTF_ALGORITHM_REAL = 0,
    MTF_ALGORITHM_NAMED = 1, /* priced when named, never chosen: an idealisation or a second name */
    MTF_ALGORITHM_SEGMENTED = 2, /* its payload travels in `segments` parts */
};

typedef struct {
    const char *name;
    unsigned kinds; /* bits of MtfCollectiveKind */
    bool switched;  /* for levels instead of a torus */
    unsigned use;
    double (*gather)(const MtfNetwork *network, const MtfCollective *collective);
    double (*seconds)(const MtfNetwork *network, const MtfCollective *collective);
} MtfCollectiveAlgorithm;

typedef struct {
    const MtfCollectiveAlgorithm *rows;
    int count;
} MtfCollectiveFamily;

extern const MtfCollectiveFamily mtf_axis_algorithms;
extern const MtfCollectiveFamily mtf_bucket_algorithms;
extern const MtfCollectiveFamily mtf_tree_algorithms;
extern const MtfCollectiveFamily mtf_alltoall_algorithms;
extern const MtfCollectiveFamily mtf_neighbor_algorithms;
extern const MtfCollectiveFamily mtf_switch_algorithms;

/* Links of an axis that a device can send on at once: 2 in a ring, 1 at the end of a line. */
double mtf_axis_links(const MtfNetworkAxis *axis);

/* Hops to the farthest place of an axis, by the shortest way: n/2 in a ring, n - 1 in a line. */
double mtf_axis_reach(const MtfNetworkAxis *axis);

/* Whether no two axes share links, so that all may work at once. */
bool mtf_network_links_are_distinct(const MtfNetwork *network);

/* The slowest link of the network, bytes a second. */
double mtf_network_slowest(const MtfNetwork *network);

/* Allgather of `bytes` along one axis, shortest way round, and its all-to-all counterpart. */
double mtf_axis_gather(const MtfNetwork *network, int d, double bytes);
double mtf_axis_exchange(const MtfNetwork *network, int d, double bytes);

/* A chain of `hops` stores that forward `bytes` in segments through links of `bandwidth`:
 * latency + (hops + k - 1) (o + bytes / (k bandwidth)), with the k that costs least when `segments`
 * is 0 (k = sqrt((hops - 1) bytes / (o bandwidth)), at most 1024). */
double mtf_chain_seconds(double hops, double latency, double bytes, double bandwidth,
                         double message_seconds, int64_t segments);

/* The network that the collective really has: every stride-th place, and but for halos, whose faces
 * are numbered by axis, without axes of size 1. False when there is nothing to do: one rank or no
 * bytes. */
bool mtf_collective_prepare(const MtfNetwork *network, const MtfCollective *collective,
                            MtfNetwork *prepared);

/* The coordinates of a rank of the network (row-major). */
void mtf_network_coordinates(const MtfNetwork *network, int64_t rank, int64_t *at);

/* Hops from `from` to `to` along one axis, by the shortest way. */
int64_t mtf_axis_distance(const MtfNetworkAxis *axis, int64_t from, int64_t to);

/* Where a collective's message goes from rank `from`: its `to`, or the farthest corner when the
 * collective names none (from equals to). */
int64_t mtf_collective_target(const MtfNetwork *network, const MtfCollective *collective);

#endif
