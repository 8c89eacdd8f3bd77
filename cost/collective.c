// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/collective.h"

#include <math.h>

/* One axis of n places as a ring (wrap), a line or a switch. */

static double links_of(const MtfNetwork *network, int d) {
    return !network->switched && network->axis[d].wrap ? 2 : 1;
}

static double steps_of(const MtfNetwork *network, int d) {
    int64_t n = network->axis[d].size;
    return (double)(!network->switched && network->axis[d].wrap ? n / 2 : n - 1);
}

/* Allgather of `bytes` (the output) along one axis. */
static double axis_gather(const MtfNetwork *network, int d, double bytes) {
    const MtfNetworkAxis *axis = &network->axis[d];
    double n = (double)axis->size;
    return steps_of(network, d) * axis->latency +
           (n - 1) / n * bytes / (links_of(network, d) * axis->bandwidth);
}

/* Reduce-scatter of `bytes` (the input) along the axes, one after another from the last, halving
 * the payload as it goes; an allgather runs the same way back. */
static double gather_axis_by_axis(const MtfNetwork *network, double bytes, double reduce) {
    double seconds = 0;
    for (int d = network->axes - 1; d >= 0; d--) {
        double n = (double)network->axis[d].size;
        seconds += axis_gather(network, d, bytes) + (n - 1) / n * bytes * reduce;
        bytes /= n;
    }
    return seconds;
}

/* All-to-all of `bytes` (the send buffer) along one axis: the busiest link carries bytes * c. */
static double axis_exchange(const MtfNetwork *network, int d, double bytes) {
    const MtfNetworkAxis *axis = &network->axis[d];
    double n = (double)axis->size;
    double even = (double)(axis->size / 2), odd = (double)((axis->size + 1) / 2);
    double c = even * odd / n;
    if (network->switched)
        c = (n - 1) / n;
    else if (axis->wrap)
        c = axis->size % 2 == 0 ? n / 8 : (n * n - 1) / (8 * n);
    return steps_of(network, d) * axis->latency + bytes * c / axis->bandwidth;
}

static double exchange_axis_by_axis(const MtfNetwork *network, double bytes) {
    double seconds = 0;
    for (int d = 0; d < network->axes; d++)
        seconds += axis_exchange(network, d, bytes);
    return seconds;
}

static double send_across(const MtfNetwork *network, double bytes) {
    double seconds = 0, slowest = 0;
    for (int d = 0; d < network->axes; d++) {
        seconds += (network->switched ? 1 : steps_of(network, d)) * network->axis[d].latency;
        slowest = MAX(slowest, bytes / network->axis[d].bandwidth);
    }
    return seconds + slowest;
}

static double axis_by_axis(const MtfNetwork *network, const MtfCollective *collective) {
    double bytes = collective->bytes, gamma = network->reduce_seconds_per_byte;
    switch (collective->kind) {
    case MTF_ALLREDUCE:
        return gather_axis_by_axis(network, bytes, gamma) + gather_axis_by_axis(network, bytes, 0);
    case MTF_REDUCE_SCATTER:
        return gather_axis_by_axis(network, bytes, gamma);
    case MTF_ALLGATHER:
        return gather_axis_by_axis(network, bytes, 0);
    case MTF_ALLTOALL:
        return exchange_axis_by_axis(network, bytes);
    default:
        return send_across(network, bytes);
    }
}

MtfCollectivePrice mtf_collective_best(const MtfNetwork *network, const MtfCollective *collective) {
    if (mtf_network_ranks(network) == 1 || collective->bytes <= 0)
        return (MtfCollectivePrice){ "none", 0 };
    return (MtfCollectivePrice){ "axis_by_axis", axis_by_axis(network, collective) };
}

/* Every rank must receive the part it lacks over its links, and a first byte must cross the
 * diameter. */
double mtf_collective_bound(const MtfNetwork *network, const MtfCollective *collective) {
    double ranks = (double)mtf_network_ranks(network), ports = 0, latency = 0;
    if (ranks == 1 || collective->bytes <= 0)
        return 0;
    for (int d = 0; d < network->axes; d++) {
        ports += links_of(network, d) * network->axis[d].bandwidth;
        latency += (network->switched ? 1 : steps_of(network, d)) * network->axis[d].latency;
    }
    return MAX(latency, (ranks - 1) / ranks * collective->bytes / ports);
}

static bool measured_seconds(const MtfMachine *machine, const MtfNetwork *group,
                             MtfCollectiveKind kind, double bytes, double *seconds) {
    g_autofree char *name = g_strdup_printf("%s/%" G_GINT64_FORMAT, mtf_collective_kind_name(kind),
                                            mtf_network_ranks(group));
    const MtfMachineCurve *curve = mtf_machine_curve(machine, name);
    if (curve != NULL)
        *seconds = mtf_machine_curve_at(curve, bytes);
    return curve != NULL;
}

double mtf_collective_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                              MtfCollectiveKind kind, unsigned mesh_axes_mask, double bytes) {
    MtfNetwork group = mtf_mesh_map_group(map, mesh_axes_mask);
    MtfCollective collective = { .kind = kind, .bytes = bytes };
    double seconds = 0;
    if (group.axes == 0 || bytes <= 0)
        return 0;
    if (machine->curves->len > 0 && measured_seconds(machine, &group, kind, bytes, &seconds))
        return seconds;
    return mtf_collective_best(&group, &collective).seconds;
}

/* The mean number of hops from a rank to a member of its group, itself included. */
static double mean_hops(const MtfNetwork *network) {
    double hops = 0;
    for (int d = 0; d < network->axes; d++) {
        double n = (double)network->axis[d].size;
        if (network->switched)
            hops += (n - 1) / n;
        else if (network->axis[d].wrap)
            hops += network->axis[d].size % 2 == 0 ? n / 4 : (n * n - 1) / (4 * n);
        else
            hops += (n * n - 1) / (3 * n);
    }
    return hops;
}

double mtf_collective_link_bytes(const MtfMeshMap *map, MtfCollectiveKind kind,
                                 unsigned mesh_axes_mask, double bytes) {
    MtfNetwork group = mtf_mesh_map_group(map, mesh_axes_mask);
    double ranks = (double)mtf_network_ranks(&group);
    if (ranks == 1)
        return 0;
    switch (kind) {
    case MTF_ALLREDUCE:
        return 2 * (ranks - 1) / ranks * bytes;
    case MTF_ALLTOALL:
        return mean_hops(&group) * bytes;
    default:
        return (ranks - 1) / ranks * bytes;
    }
}
