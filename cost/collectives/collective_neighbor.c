// SPDX-License-Identifier: GPL-3.0-or-later
/* Messages to single partners: a cyclic shift of all ranks (permute), faces to both neighbours on
 * every axis (halo), one rank to another (p2p). */
#include "cost/collectives/collective_algorithm.h"
#include "cost/collectives/route_loads.h"

#include <math.h>

static int64_t shift_of(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network), shift = collective->shift % ranks;
    return shift < 0 ? shift + ranks : shift;
}

/* One axis: h = min(s, n-s) hops the shorter way, a link carries h messages: h (alpha + b/B). On a
 * line the n-1 … s messages that wrap travel back over n-s links, and storing them on the way fills
 * the pipe once more: max(s, n-s) alpha + (min(s, n-s) + 1) b/B. */
static double single_path(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    if (network->axes != 1)
        return NAN;
    int64_t shift = shift_of(network, collective);
    double near = (double)MIN(shift, axis->size - shift), far = (double)axis->size - near;
    double message = collective->bytes / axis->bandwidth;
    if (axis->wrap)
        return near * (axis->latency + message);
    return near == 0 ? 0 : far * axis->latency + (near + 1) * message;
}

/* The same on a line with the messages cut small enough to leave no pipe to fill. */
static double line_pipelined(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    if (network->axes != 1 || axis->wrap)
        return NAN;
    int64_t shift = shift_of(network, collective);
    double near = (double)MIN(shift, axis->size - shift), far = (double)axis->size - near;
    return near == 0 ? 0 : far * axis->latency + near * collective->bytes / axis->bandwidth;
}

/* A share (n-s)/n forward over s hops, the rest backward over n-s: both directions carry
 * b s (n-s) / n. */
static double both_ways(const MtfNetwork *network, const MtfCollective *collective) {
    const MtfNetworkAxis *axis = &network->axis[0];
    if (network->axes != 1 || !axis->wrap)
        return NAN;
    double n = (double)axis->size, shift = (double)shift_of(network, collective);
    if (shift == 0)
        return 0;
    return fmax(shift, n - shift) * axis->latency +
           collective->bytes * shift * (n - shift) / (n * axis->bandwidth);
}

#define MAX_ROUTED_RANKS 65536

/* Several axes: every message takes its axes in order; the busiest link, counted, sets the pace. */
static double dimension_order(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network), shift = shift_of(network, collective);
    if (ranks > MAX_ROUTED_RANKS)
        return NAN;
    MtfRouteLoads loads;
    mtf_route_loads_init(&loads, network);
    for (int64_t rank = 0; rank < ranks; rank++)
        mtf_route_loads_add(&loads, rank, (rank + shift) % ranks, collective->bytes);
    double seconds = loads.route_seconds + mtf_route_loads_busiest(&loads).seconds;
    mtf_route_loads_clear(&loads);
    return seconds;
}

static double face_of(const MtfCollective *collective, int d) {
    return d < collective->faces ? collective->face[d] : collective->bytes;
}

/* Every axis has links of its own both ways, so the largest face sets the time: alpha + face/B.
 * On a line the ends have one neighbour only. */
static double halo_open(const MtfNetwork *network, const MtfCollective *collective) {
    double latency = 0, slowest = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        if (axis->size == 1)
            continue;
        latency = fmax(latency, axis->latency + network->message_seconds);
        slowest = fmax(slowest, face_of(collective, d) / axis->bandwidth);
    }
    return latency + slowest;
}

/* Periodic faces: on a line the ends' faces cross the whole line beside the others:
 * (n-1) alpha + 2 face/B. */
static double halo_periodic(const MtfNetwork *network, const MtfCollective *collective) {
    double seconds = halo_open(network, collective);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double reach = (double)(axis->size - 1);
        if (!axis->wrap && axis->size > 1)
            seconds = fmax(seconds, reach * axis->latency + network->message_seconds +
                                        2 * face_of(collective, d) / axis->bandwidth);
    }
    return seconds;
}

/* Point to point. Ports of a device: 2 an axis, 1 at the end of a line. */
static int ports_at(const MtfNetwork *network, const int64_t *at) {
    int ports = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        if (axis->size > 1)
            ports += axis->wrap || (at[d] > 0 && at[d] < axis->size - 1) ? 2 : 1;
    }
    return ports;
}

typedef struct {
    int64_t from[MTF_NETWORK_AXES_MAX], to[MTF_NETWORK_AXES_MAX];
    double latency; /* of the shortest route */
    int shortest;   /* routes of that length that share no link */
    int ports;      /* the fewer of both ends: routes of any length that share no link */
} Ends;

static Ends find_ends(const MtfNetwork *network, const MtfCollective *collective) {
    Ends ends = { .latency = 0 };
    mtf_network_coordinates(network, collective->from, ends.from);
    mtf_network_coordinates(network, mtf_collective_target(network, collective), ends.to);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        int64_t hops = mtf_axis_distance(axis, ends.from[d], ends.to[d]);
        ends.latency += (double)hops * axis->latency;
        ends.shortest += hops > 0;
        ends.shortest += hops > 0 && axis->wrap && 2 * hops == axis->size;
    }
    ends.ports = MIN(ports_at(network, ends.from), ports_at(network, ends.to));
    return ends;
}

static double send_over(const MtfNetwork *network, const MtfCollective *collective, int paths) {
    Ends ends = find_ends(network, collective);
    if (paths > ends.ports)
        return NAN;
    return ends.latency + network->message_seconds +
           collective->bytes / (paths * mtf_network_slowest(network));
}

static double one_port(const MtfNetwork *network, const MtfCollective *collective) {
    return send_over(network, collective, 1);
}

static double two_port(const MtfNetwork *network, const MtfCollective *collective) {
    return send_over(network, collective, 2);
}

static double three_port(const MtfNetwork *network, const MtfCollective *collective) {
    return send_over(network, collective, 3);
}

static double four_port(const MtfNetwork *network, const MtfCollective *collective) {
    return send_over(network, collective, 4);
}

static double six_port(const MtfNetwork *network, const MtfCollective *collective) {
    return send_over(network, collective, 6);
}

static double shortest_paths(const MtfNetwork *network, const MtfCollective *collective) {
    Ends ends = find_ends(network, collective);
    return send_over(network, collective, MIN(ends.shortest, ends.ports));
}

/* The longest detour: the long way round a ring that the route uses, or one step aside and back. */
static double detour(const MtfNetwork *network, const Ends *ends) {
    double longest = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        int64_t hops = mtf_axis_distance(axis, ends->from[d], ends->to[d]);
        int64_t more = hops == 0 || !axis->wrap ? 2 : axis->size - 2 * hops;
        if (axis->size > 1)
            longest = fmax(longest, (double)more * axis->latency);
    }
    return longest;
}

static double all_ports(const MtfNetwork *network, const MtfCollective *collective) {
    Ends ends = find_ends(network, collective);
    return send_over(network, collective, ends.ports) + detour(network, &ends);
}

#define PERMUTE(use, price) MTF_KIND_BIT(MTF_PERMUTE), false, MTF_ALGORITHM_##use, NULL, price
#define HALO(use, price) MTF_KIND_BIT(MTF_HALO), false, MTF_ALGORITHM_##use, NULL, price
#define P2P(use, price) MTF_KIND_BIT(MTF_P2P), false, MTF_ALGORITHM_##use, NULL, price

static const MtfCollectiveAlgorithm rows[] = {
    { "single_path", PERMUTE(REAL, single_path) },
    { "line", PERMUTE(REAL, line_pipelined) },
    { "both_ways", PERMUTE(REAL, both_ways) },
    { "split", PERMUTE(NAMED, both_ways) },
    { "dimension_order", PERMUTE(REAL, dimension_order) },
    { "open", HALO(REAL, halo_open) },
    { "non_periodic", HALO(NAMED, halo_open) },
    { "periodic", HALO(NAMED, halo_periodic) },
    { "one_port", P2P(REAL, one_port) },
    { "shortest_paths", P2P(REAL, shortest_paths) },
    { "all_ports", P2P(REAL, all_ports) },
    { "two_port", P2P(NAMED, two_port) },
    { "three_port", P2P(NAMED, three_port) },
    { "four_port", P2P(NAMED, four_port) },
    { "six_port", P2P(NAMED, six_port) },
};

const MtfCollectiveFamily mtf_neighbor_algorithms = { rows, G_N_ELEMENTS(rows) };
