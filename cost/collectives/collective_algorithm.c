// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collectives/collective_algorithm.h"

#include <math.h>
#include <stdlib.h>

#define MAX_SEGMENTS 1024.0

double mtf_axis_links(const MtfNetworkAxis *axis) {
    return axis->wrap ? 2 : 1;
}

double mtf_axis_reach(const MtfNetworkAxis *axis) {
    return (double)(axis->wrap ? axis->size / 2 : axis->size - 1);
}

bool mtf_network_links_are_distinct(const MtfNetwork *network) {
    unsigned seen = 0;
    for (int d = 0; d < network->axes; d++) {
        unsigned bit = 1U << network->axis[d].link;
        if ((seen & bit) != 0)
            return false;
        seen |= bit;
    }
    return true;
}

double mtf_network_slowest(const MtfNetwork *network) {
    double slowest = INFINITY;
    for (int d = 0; d < network->axes; d++)
        if (network->axis[d].size > 1)
            slowest = fmin(slowest, network->axis[d].bandwidth);
    return slowest;
}

double mtf_axis_gather(const MtfNetwork *network, int d, double bytes) {
    const MtfNetworkAxis *axis = &network->axis[d];
    double n = (double)axis->size;
    return mtf_axis_reach(axis) * (axis->latency + network->message_seconds) +
           (n - 1) / n * bytes / (mtf_axis_links(axis) * axis->bandwidth);
}

/* c of a ring is n/8, for odd n (n^2 - 1) / (8n); of a line floor(n/2) ceil(n/2) / n. In a line the
 * first byte needs n - 1 hops to its end but only half of them before its busiest link. */
double mtf_axis_exchange(const MtfNetwork *network, int d, double bytes) {
    const MtfNetworkAxis *axis = &network->axis[d];
    double n = (double)axis->size, half = floor(n / 2), other = n - half;
    double hop = axis->latency + network->message_seconds;
    if (axis->wrap)
        return half * hop + bytes * half * other / (2 * n) / axis->bandwidth;
    return fmax((n - 1) * hop, half * hop + bytes * half * other / n / axis->bandwidth);
}

double mtf_chain_seconds(double hops, double latency, double bytes, double bandwidth,
                         double message_seconds, int64_t segments) {
    double k = (double)segments, o = message_seconds;
    if (segments == 0 && o > 0)
        k = round(sqrt(fmax(hops - 1, 0) * bytes / (o * bandwidth)));
    else if (segments == 0)
        k = MAX_SEGMENTS;
    if (segments == 0)
        k = fmin(fmax(k, 1), MAX_SEGMENTS);
    return latency + (hops + k - 1) * (o + bytes / (k * bandwidth));
}

void mtf_network_coordinates(const MtfNetwork *network, int64_t rank, int64_t *at) {
    for (int d = network->axes - 1; d >= 0; d--) {
        at[d] = rank % network->axis[d].size;
        rank /= network->axis[d].size;
    }
}

int64_t mtf_axis_distance(const MtfNetworkAxis *axis, int64_t from, int64_t to) {
    int64_t forward = llabs(to - from);
    return axis->wrap && axis->size - forward < forward ? axis->size - forward : forward;
}

/* The farthest place along one axis; the last of equals in a ring's favour is the middle. */
static int64_t farthest(const MtfNetworkAxis *axis, int64_t from) {
    if (axis->wrap)
        return (from + axis->size / 2) % axis->size;
    return from >= axis->size - 1 - from ? 0 : axis->size - 1;
}

int64_t mtf_collective_target(const MtfNetwork *network, const MtfCollective *collective) {
    if (collective->to != collective->from)
        return collective->to;
    int64_t at[MTF_NETWORK_AXES_MAX], target = 0;
    mtf_network_coordinates(network, collective->from, at);
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        target = target * axis->size + farthest(axis, at[d]);
    }
    return target;
}
