// SPDX-License-Identifier: GPL-3.0-or-later
/* Allgather, reduce-scatter and allreduce over several axes, as the price of a reduce-scatter of
 * V bytes (an allgather runs the same phases backwards).
 *
 * Rotated copies ("bucket"): the payload is cut into D parts of shares x_k; part k visits the axes
 * k, k+1, … in turn, so that in each phase every axis serves one part:
 *
 *     phase          0         1         2
 *     part 0       axis 0    axis 1    axis 2
 *     part 1       axis 1    axis 2    axis 0
 *     part 2       axis 2    axis 0    axis 1
 *
 *     T = sum over phases j of max over k of
 *             steps alpha + (n-1)/n * x_k V / (w B prod of the sizes visited before)
 *
 * exact when phases are synchronised; w = 2 for a ring, 1 for a line. */
#include "cost/collectives/collective_algorithm.h"

#include <math.h>
#include <stdlib.h>

/* Above this many axes only the sorted order of axes is tried. */
#define MAX_PERMUTED_AXES 4

typedef struct Rotation {
    const MtfNetwork *network;
    double bytes;
    bool around; /* n - 1 steps all the way round instead of floor(n/2) the shorter way */
    double share[MTF_NETWORK_AXES_MAX];
    double segments;
    int order[MTF_NETWORK_AXES_MAX];
    double (*price)(const struct Rotation *rotation);
    double best;
} Rotation;

static double phase_seconds(const Rotation *r, int axis, double bytes) {
    const MtfNetworkAxis *a = &r->network->axis[axis];
    double n = (double)a->size;
    double steps = r->around ? n - 1 : mtf_axis_reach(a);
    return steps * (a->latency + r->network->message_seconds) +
           (n - 1) / n * bytes / (mtf_axis_links(a) * a->bandwidth);
}

static double rotation_seconds(const Rotation *r) {
    int axes = r->network->axes;
    double left[MTF_NETWORK_AXES_MAX], seconds = 0;
    for (int k = 0; k < axes; k++)
        left[k] = r->share[r->order[k]] * r->bytes;
    for (int j = 0; j < axes; j++) {
        double slowest = 0;
        for (int k = 0; k < axes; k++) {
            int axis = r->order[(k + j) % axes];
            slowest = fmax(slowest, phase_seconds(r, axis, left[k]));
            left[k] /= (double)r->network->axis[axis].size;
        }
        seconds += slowest;
    }
    return seconds;
}

/* Tries all permutations of the places of `order` from `fixed` on; from 1, every cyclic order. */
static void try_orders(Rotation *r, int fixed) {
    int axes = r->network->axes;
    if (fixed >= axes - 1 || axes > MAX_PERMUTED_AXES) {
        r->best = fmin(r->best, r->price(r));
        return;
    }
    for (int i = fixed; i < axes; i++) {
        int first = r->order[fixed];
        r->order[fixed] = r->order[i];
        r->order[i] = first;
        try_orders(r, fixed + 1);
        r->order[i] = r->order[fixed];
        r->order[fixed] = first;
    }
}

static double best_order(Rotation *r, int fixed) {
    if (!mtf_network_links_are_distinct(r->network))
        return NAN;
    for (int d = 0; d < r->network->axes; d++)
        r->order[d] = d;
    r->best = INFINITY;
    try_orders(r, fixed);
    return r->best;
}

static double best_rotation(Rotation *r) {
    r->price = rotation_seconds;
    return best_order(r, 1);
}

static double equal_shares(const MtfNetwork *network, double bytes, bool around) {
    Rotation r = { .network = network, .bytes = bytes, .around = around };
    for (int d = 0; d < network->axes; d++)
        r.share[d] = 1.0 / network->axes;
    return best_rotation(&r);
}

/* x_k in proportion to w B n/(n-1): part k's first phase then takes as long on every axis. The axes
 * in `open` count as lines in the shares, though not in the times. */
static double fitted_shares(const MtfNetwork *network, double bytes, bool around, unsigned open) {
    Rotation r = { .network = network, .bytes = bytes, .around = around };
    double sum = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double n = (double)axis->size, links = (open >> d & 1) != 0 ? 1 : mtf_axis_links(axis);
        r.share[d] = links * axis->bandwidth * n / (n - 1);
        sum += r.share[d];
    }
    for (int d = 0; d < network->axes; d++)
        r.share[d] /= sum;
    return best_rotation(&r);
}

/* The shares fitted to every choice of rings and lines: later phases may want other shares than the
 * first, and a wrap link then never makes the price worse. */
static double best_fitted_shares(const MtfNetwork *network, double bytes) {
    double best = fitted_shares(network, bytes, false, 0);
    unsigned choices = network->axes <= MAX_PERMUTED_AXES ? 1U << network->axes : 1;
    for (unsigned open = 1; open < choices; open++)
        best = fmin(best, fitted_shares(network, bytes, false, open));
    return best;
}

static double shortest_bidir(const MtfNetwork *network, const MtfCollective *collective) {
    return equal_shares(network, collective->bytes, false);
}

static double shortest_bidir_opt_split(const MtfNetwork *network, const MtfCollective *collective) {
    return best_fitted_shares(network, collective->bytes);
}

static double multiring_equal_split(const MtfNetwork *network, const MtfCollective *collective) {
    return equal_shares(network, collective->bytes, true);
}

static double multiring_opt_split(const MtfNetwork *network, const MtfCollective *collective) {
    return fitted_shares(network, collective->bytes, true, 0);
}

static int by_falling_capacity(const void *a, const void *b) {
    const MtfNetworkAxis *x = a, *y = b;
    double p = mtf_axis_links(x) * x->bandwidth, q = mtf_axis_links(y) * y->bandwidth;
    return (p < q) - (p > q);
}

/* One axis after another, the axis with the most bandwidth first while the payload is whole; uses
 * 1/D of the links. */
static double axis_by_axis(const MtfNetwork *network, const MtfCollective *collective) {
    MtfNetwork sorted = *network;
    double seconds = 0, bytes = collective->bytes;
    qsort(sorted.axis, (size_t)sorted.axes, sizeof sorted.axis[0], by_falling_capacity);
    for (int d = 0; d < sorted.axes; d++) {
        seconds += mtf_axis_gather(&sorted, d, bytes);
        bytes /= (double)sorted.axis[d].size;
    }
    return seconds;
}

/* The same in k segments, one behind the other: the sum of the stages + (k-1) of the longest. */
static double pipeline_seconds(const Rotation *r) {
    double bytes = r->bytes / r->segments, sum = 0, longest = 0;
    for (int i = 0; i < r->network->axes; i++) {
        int axis = r->order[i];
        double seconds = mtf_axis_gather(r->network, axis, bytes);
        sum += seconds;
        longest = fmax(longest, seconds);
        bytes /= (double)r->network->axis[axis].size;
    }
    return sum + (r->segments - 1) * longest;
}

static double axis_by_axis_pipelined(const MtfNetwork *network, const MtfCollective *collective) {
    Rotation r = { .network = network, .bytes = collective->bytes, .price = pipeline_seconds };
    double first = collective->segments > 0 ? (double)collective->segments : 2;
    double last = collective->segments > 0 ? first : 64, best = INFINITY;
    if (network->axes < 2 || !mtf_network_links_are_distinct(network))
        return NAN;
    for (r.segments = first; r.segments <= last; r.segments *= 2)
        best = fmin(best, best_order(&r, 0));
    return best;
}

/* Whether every axis is a ring of three or more. */
static bool is_true_torus(const MtfNetwork *network) {
    for (int d = 0; d < network->axes; d++)
        if (!network->axis[d].wrap || network->axis[d].size < 3)
            return false;
    return true;
}

static double longest_hop(const MtfNetwork *network) {
    double latency = 0;
    for (int d = 0; d < network->axes; d++)
        latency = fmax(latency, network->axis[d].latency);
    return latency + network->message_seconds;
}

/* A product of D rings decomposes into D Hamiltonian rings without a common link (Aubert and
 * Schneider 1982); 1/D of the payload goes both ways round each:
 * floor(N/2) alpha + (N-1)/N V / (2 D B). */
static double hamiltonian_rings(const MtfNetwork *network, const MtfCollective *collective) {
    if (network->axes < 2 || !is_true_torus(network) || !mtf_network_links_are_distinct(network))
        return NAN;
    double ranks = (double)mtf_network_ranks(network);
    return floor(ranks / 2) * longest_hop(network) +
           (ranks - 1) / ranks * collective->bytes /
               (2 * network->axes * mtf_network_slowest(network));
}

/* One ring folded through a grid as a snake; it closes when the number of places is even:
 * floor(N/2) alpha + (N-1)/N V / (2B). */
static double snake_ring(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network);
    if (network->axes < 2 || ranks % 2 != 0 || !mtf_network_links_are_distinct(network))
        return NAN;
    double n = (double)ranks;
    return n / 2 * longest_hop(network) +
           (n - 1) / n * collective->bytes / (2 * mtf_network_slowest(network));
}

#define REAL false, MTF_ALGORITHM_REAL
#define NAMED false, MTF_ALGORITHM_NAMED

static const MtfCollectiveAlgorithm rows[] = {
    { "shortest_bidir", MTF_GATHER_KINDS, REAL, shortest_bidir, NULL },
    { "shortest_bidir_opt_split", MTF_GATHER_KINDS, REAL, shortest_bidir_opt_split, NULL },
    { "multiring_bucket_nminus1", MTF_GATHER_KINDS, REAL, multiring_equal_split, NULL },
    { "multiring_sync_equal_split", MTF_GATHER_KINDS, NAMED, multiring_equal_split, NULL },
    { "multiring_sync_opt_split", MTF_GATHER_KINDS, REAL, multiring_opt_split, NULL },
    { "axis_by_axis", MTF_GATHER_KINDS, REAL, axis_by_axis, NULL },
    { "hierarchical", MTF_GATHER_KINDS, NAMED, axis_by_axis, NULL },
    { "axis_by_axis_pipelined", MTF_GATHER_KINDS, false, MTF_ALGORITHM_SEGMENTED,
      axis_by_axis_pipelined, NULL },
    { "hamiltonian_rings", MTF_GATHER_KINDS, REAL, hamiltonian_rings, NULL },
    { "snake_ring", MTF_GATHER_KINDS, REAL, snake_ring, NULL },
};

const MtfCollectiveFamily mtf_bucket_algorithms = { rows, G_N_ELEMENTS(rows) };
