// SPDX-License-Identifier: GPL-3.0-or-later
/* Part k of the payload, a D-th of it, goes round the axes k, k + 1, …, in halves both ways:
 *
 *     reduce-scatter   n - 1 hops along axis k, each of what a rank holds / n, then along axis k +
 * 1 allgather        the same backwards
 *
 * A rank begins a phase of a part when it has all of the phase before, whatever others do. */
#include "cost/collectives/collective_algorithm.h"
#include "cost/simulate/collective_simulator.h"
#include "cost/simulate/link_simulator.h"

#include <string.h>

typedef struct {
    MtfLinkSimulator *simulator;
    const MtfNetwork *network;
    int part, phase;
    double bytes; /* of a block */
    int *ready;   /* one a rank: when it has all of the phase before, or -1 */
    int *done;    /* when it has all of this one */
} Phase;

static int axis_of(const Phase *phase) {
    return (phase->part + phase->phase) % phase->network->axes;
}

/* What travels over one link at a time: all that a rank holds after the axes up to this one have
 * been scattered over, or half of it each way on a ring. */
static double block_bytes(const MtfNetwork *network, double payload, int part, int phase) {
    double bytes = payload / (double)network->axes;
    for (int i = 0; i <= phase; i++)
        bytes /= (double)network->axis[(part + i) % network->axes].size;
    return bytes / mtf_axis_links(&network->axis[(part + phase) % network->axes]);
}

static int64_t hops_from(const Phase *phase, int64_t rank, bool forward) {
    const MtfNetworkAxis *axis = &phase->network->axis[axis_of(phase)];
    int64_t at[MTF_NETWORK_AXES_MAX];
    mtf_network_coordinates(phase->network, rank, at);
    if (axis->wrap)
        return axis->size - 1;
    return forward ? axis->size - 1 - at[axis_of(phase)] : at[axis_of(phase)];
}

static int64_t next_rank(const Phase *phase, int64_t rank, bool forward) {
    return mtf_network_neighbor(phase->network, rank, axis_of(phase), forward);
}

static int send(const Phase *phase, int64_t rank, bool forward, int after) {
    int transfer =
        mtf_link_simulator_send(phase->simulator, rank, axis_of(phase), forward, phase->bytes);
    mtf_link_simulator_order(phase->simulator, after, transfer);
    return transfer;
}

/* A rank's block goes to all others on its line; each counts it as arrived. */
static void gather_block(const Phase *phase, int64_t rank, bool forward) {
    int last = phase->ready[rank];
    for (int64_t hops = hops_from(phase, rank, forward); hops > 0; hops--) {
        last = send(phase, rank, forward, last);
        rank = next_rank(phase, rank, forward);
        mtf_link_simulator_order(phase->simulator, last, phase->done[rank]);
    }
}

/* What is due to a rank comes from the farthest one, and takes up the terms of those it passes,
 * which must have them. */
static void scatter_block(const Phase *phase, int64_t rank, bool forward) {
    int64_t hops = hops_from(phase, rank, !forward), at = rank;
    int last = -1;
    for (int64_t hop = 0; hop < hops; hop++)
        at = next_rank(phase, at, !forward);
    for (int64_t hop = 0; hop < hops; hop++) {
        int transfer = send(phase, at, forward, phase->ready[at]);
        mtf_link_simulator_order(phase->simulator, last, transfer);
        last = transfer;
        at = next_rank(phase, at, forward);
    }
    mtf_link_simulator_order(phase->simulator, last, phase->done[rank]);
}

static void add_phase(Phase *phase, void (*move)(const Phase *phase, int64_t rank, bool forward)) {
    int64_t ranks = mtf_network_ranks(phase->network);
    for (int64_t rank = 0; rank < ranks; rank++) {
        phase->done[rank] = mtf_link_simulator_join(phase->simulator);
        mtf_link_simulator_order(phase->simulator, phase->ready[rank], phase->done[rank]);
    }
    for (int64_t i = 0; i < 2 * ranks; i++)
        move(phase, i / 2, i % 2 == 0);
    memcpy(phase->ready, phase->done, (size_t)ranks * sizeof *phase->done);
}

static void add_part(MtfLinkSimulator *simulator, const MtfNetwork *network,
                     const MtfCollective *collective, int part) {
    int64_t ranks = mtf_network_ranks(network);
    g_autofree int *ready = g_new(int, ranks), *done = g_new(int, ranks);
    Phase phase = { simulator, network, part, 0, 0, ready, done };
    for (int64_t rank = 0; rank < ranks; rank++)
        ready[rank] = -1;
    for (int j = 0; j < network->axes && collective->kind != MTF_ALLGATHER; j++) {
        phase.phase = j;
        phase.bytes = block_bytes(network, collective->bytes, part, j);
        add_phase(&phase, scatter_block);
    }
    for (int j = network->axes - 1; j >= 0 && collective->kind != MTF_REDUCE_SCATTER; j--) {
        phase.phase = j;
        phase.bytes = block_bytes(network, collective->bytes, part, j);
        add_phase(&phase, gather_block);
    }
}

double mtf_collective_simulate_unsynchronised(const MtfNetwork *network,
                                              const MtfCollective *collective) {
    MtfNetwork group;
    if (!mtf_collective_prepare(network, collective, &group) || group.switched ||
        !mtf_network_links_are_distinct(&group))
        return 0;
    g_autoptr(MtfLinkSimulator) simulator = mtf_link_simulator_new(&group);
    for (int part = 0; part < group.axes; part++)
        add_part(simulator, &group, collective, part);
    return mtf_link_simulator_run(simulator);
}
