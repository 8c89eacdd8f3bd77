// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collectives/route_loads.h"

#include "cost/collectives/collective_algorithm.h"

#include <math.h>

void mtf_route_loads_init(MtfRouteLoads *loads, const MtfNetwork *network) {
    gsize links = (gsize)(2 * mtf_network_ranks(network)) * (gsize)MAX(1, network->axes);
    *loads = (MtfRouteLoads){ .network = network, .amount = g_new0(double, links) };
}

void mtf_route_loads_clear(MtfRouteLoads *loads) {
    g_free(loads->amount);
    loads->amount = NULL;
}

static double *link_of(const MtfRouteLoads *loads, int64_t rank, int axis, bool second) {
    return &loads->amount[(rank * loads->network->axes + axis) * 2 + second];
}

/* ---- Torus --------------------------------------------------------------------------------- */

static int64_t rank_of(const MtfNetwork *network, const int64_t *at) {
    int64_t rank = 0;
    for (int d = 0; d < network->axes; d++)
        rank = rank * network->axis[d].size + at[d];
    return rank;
}

/* Walks from `at` to coordinate `target` of axis `d`, loading each link; returns the latency. */
static double walk_axis(MtfRouteLoads *loads, int64_t *at, int d, int64_t target, double amount) {
    const MtfNetworkAxis *axis = &loads->network->axis[d];
    int64_t hops = mtf_axis_distance(axis, at[d], target);
    bool forward = (at[d] + hops) % axis->size == target && (axis->wrap || target > at[d]);
    for (int64_t i = 0; i < hops; i++) {
        *link_of(loads, rank_of(loads->network, at), d, !forward) += amount;
        at[d] = (at[d] + (forward ? 1 : axis->size - 1)) % axis->size;
    }
    return (double)hops * axis->latency;
}

static double walk_torus(MtfRouteLoads *loads, int64_t from, int64_t to, double amount) {
    int64_t at[MTF_NETWORK_AXES_MAX], target[MTF_NETWORK_AXES_MAX];
    double seconds = 0;
    mtf_network_coordinates(loads->network, from, at);
    mtf_network_coordinates(loads->network, to, target);
    for (int d = 0; d < loads->network->axes; d++)
        seconds += walk_axis(loads, at, d, target[d], amount);
    return seconds;
}

/* ---- Levels -------------------------------------------------------------------------------- */

/* A child of level d is `ranks` of them; the latency is that of the outermost switch on the way. */
static double climb(MtfRouteLoads *loads, int64_t from, int64_t to, double amount) {
    const MtfNetwork *network = loads->network;
    double latency = 0;
    int64_t ranks = 1;
    for (int d = network->axes - 1; d >= 0 && from / ranks != to / ranks; d--) {
        *link_of(loads, from / ranks * ranks, d, false) += amount;
        *link_of(loads, to / ranks * ranks, d, true) += amount;
        latency = network->axis[d].latency;
        ranks *= network->axis[d].size;
    }
    return latency;
}

/* ---- Both ---------------------------------------------------------------------------------- */

void mtf_route_loads_add(MtfRouteLoads *loads, int64_t from, int64_t to, double amount) {
    double seconds = (loads->network->switched ? climb : walk_torus)(loads, from, to, amount);
    loads->route_seconds = fmax(loads->route_seconds, seconds);
}

MtfBusyLink mtf_route_loads_busiest(const MtfRouteLoads *loads) {
    const MtfNetwork *network = loads->network;
    MtfBusyLink busiest = { 0 };
    for (int64_t rank = 0; rank < mtf_network_ranks(network); rank++)
        for (int d = 0; d < network->axes; d++)
            for (int second = 0; second < 2; second++) {
                double amount = *link_of(loads, rank, d, second != 0);
                double seconds = amount / network->axis[d].bandwidth;
                if (seconds > busiest.seconds)
                    busiest = (MtfBusyLink){ rank, d, second != 0, amount, seconds };
            }
    return busiest;
}
