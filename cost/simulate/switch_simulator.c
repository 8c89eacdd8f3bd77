// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/simulate/switch_simulator.h"

#include "cost/collectives/collective_algorithm.h"
#include "cost/simulate/flow_simulator.h"

#include <math.h>
#include <string.h>

/* Segments that a pipelined algorithm is tried with. */
#define MOST_SEGMENTS 16

/* ---- Messages -------------------------------------------------------------------------------- */

typedef struct {
    MtfFlowSimulator *simulator;
    const MtfNetwork *network;
    int64_t ranks;
    int first_link[MTF_NETWORK_AXES_MAX]; /* of level d: that of its child 0, up; down is one more
                                           */
    int64_t below[MTF_NETWORK_AXES_MAX];  /* ranks in a child of level d */
    int *arrived;                         /* one a rank: the message that it must have, or -1 */
} Room;

static void room_init(Room *room, const MtfNetwork *network) {
    *room = (Room){ .simulator = mtf_flow_simulator_new(), .network = network };
    room->ranks = mtf_network_ranks(network);
    room->arrived = g_new(int, room->ranks);
    int64_t below = 1, children = room->ranks;
    for (int d = network->axes - 1; d >= 0; d--) {
        room->below[d] = below;
        for (int64_t child = 0; child < children; child++) {
            int link = mtf_flow_simulator_link(room->simulator, network->axis[d].bandwidth);
            room->first_link[d] = child == 0 ? link : room->first_link[d];
        }
        below *= network->axis[d].size;
        children /= network->axis[d].size;
    }
    for (int64_t rank = 0; rank < room->ranks; rank++)
        room->arrived[rank] = -1;
}

static MtfFlowSimulator *room_leave(Room *room) {
    g_free(room->arrived);
    return room->simulator;
}

/* The outermost level at which two ranks are in different children. */
static int turning_level(const Room *room, int64_t a, int64_t b) {
    int level = 0;
    while (a / room->below[level] == b / room->below[level])
        level++;
    return level;
}

static int send(const Room *room, int64_t from, int64_t to, double bytes, int after) {
    int links[MTF_FLOW_LINKS_MAX], n = 0, turn = turning_level(room, from, to);
    for (int d = turn; d < room->network->axes; d++) {
        links[n++] = room->first_link[d] + 2 * (int)(from / room->below[d]);
        links[n++] = room->first_link[d] + 2 * (int)(to / room->below[d]) + 1;
    }
    int flow = mtf_flow_simulator_send(room->simulator, bytes, room->network->axis[turn].latency,
                                       links, n);
    mtf_flow_simulator_order(room->simulator, after, flow);
    return flow;
}

static int point(const Room *room) {
    return mtf_flow_simulator_send(room->simulator, 0, 0, NULL, 0);
}

/* Every rank has what `messages` of this round bring it. */
static void end_round(Room *room, const int *messages) {
    memcpy(room->arrived, messages, (size_t)room->ranks * sizeof *messages);
}

/* All ranks wait for all. */
static void add_barrier(const Room *room, int *ranks) {
    int barrier = point(room);
    for (int64_t rank = 0; rank < room->ranks; rank++) {
        mtf_flow_simulator_order(room->simulator, ranks[rank], barrier);
        ranks[rank] = barrier;
    }
}

static double seconds_of(MtfFlowSimulator *simulator) {
    double seconds = mtf_flow_simulator_run(simulator);
    mtf_flow_simulator_free(simulator);
    return seconds;
}

/* An allgather, the reduce-scatter that is its reverse, or both, without arithmetic. */
static double gather_seconds(MtfFlowSimulator *gather, MtfCollectiveKind kind) {
    double seconds = 0;
    if (kind != MTF_ALLGATHER)
        seconds += seconds_of(mtf_flow_simulator_reverse(gather));
    if (kind != MTF_REDUCE_SCATTER)
        seconds += mtf_flow_simulator_run(gather);
    mtf_flow_simulator_free(gather);
    return seconds;
}

static bool is_power_of_two(int64_t n) {
    return (n & (n - 1)) == 0;
}

/* ---- One switch ------------------------------------------------------------------------------ */

/* Each to each other at once. */
static void send_all_pairs(const Room *room, double bytes) {
    for (int64_t distance = 1; distance < room->ranks; distance++)
        for (int64_t rank = 0; rank < room->ranks; rank++)
            send(room, rank, (rank + distance) % room->ranks, bytes, -1);
}

static double simulate_direct(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    send_all_pairs(&room, collective->bytes / (double)room.ranks);
    MtfFlowSimulator *simulator = room_leave(&room);
    return collective->kind == MTF_ALLTOALL ? seconds_of(simulator)
                                            : gather_seconds(simulator, collective->kind);
}

/* Every rank's block goes round; a rank passes on one block at a time. */
static double simulate_ring(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    g_autofree int *messages = g_new(int, room.ranks);
    for (int64_t step = 1; step < room.ranks; step++) {
        for (int64_t rank = 0; rank < room.ranks; rank++) {
            int64_t to = (rank + 1) % room.ranks;
            messages[to] =
                send(&room, rank, to, collective->bytes / (double)room.ranks, room.arrived[rank]);
        }
        end_round(&room, messages);
    }
    return gather_seconds(room_leave(&room), collective->kind);
}

/* Round k: 2^k blocks, or what is left, to the rank 2^k before. */
static void add_bruck(Room *room, double block) {
    g_autofree int *messages = g_new(int, room->ranks);
    for (int64_t k = 1; k < room->ranks; k *= 2) {
        for (int64_t rank = 0; rank < room->ranks; rank++) {
            int64_t to = (rank + room->ranks - k) % room->ranks;
            messages[to] =
                send(room, rank, to, block * (double)MIN(k, room->ranks - k), room->arrived[rank]);
        }
        end_round(room, messages);
    }
}

static double simulate_bruck(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    add_bruck(&room, collective->bytes / (double)room.ranks);
    return gather_seconds(room_leave(&room), collective->kind);
}

/* Partners at distance k exchange. */
static void add_exchange(Room *room, int64_t k, double bytes) {
    g_autofree int *messages = g_new(int, room->ranks);
    for (int64_t rank = 0; rank < room->ranks; rank++)
        messages[rank ^ k] = send(room, rank, rank ^ k, bytes, room->arrived[rank]);
    end_round(room, messages);
}

static double simulate_recursive_doubling(const MtfNetwork *network,
                                          const MtfCollective *collective) {
    Room room;
    if (!is_power_of_two(mtf_network_ranks(network)))
        return NAN;
    room_init(&room, network);
    for (int64_t k = 1; k < room.ranks; k *= 2)
        add_exchange(&room, k, collective->bytes);
    return seconds_of(room_leave(&room));
}

/* Halves, quarters, …; an allreduce goes back the same way. */
static double simulate_recursive_halving(const MtfNetwork *network,
                                         const MtfCollective *collective) {
    Room room;
    if (!is_power_of_two(mtf_network_ranks(network)))
        return NAN;
    room_init(&room, network);
    for (int64_t k = room.ranks / 2; k >= 1; k /= 2)
        add_exchange(&room, k, collective->bytes * (double)k / (double)room.ranks);
    for (int64_t k = 1; k < room.ranks && collective->kind == MTF_ALLREDUCE; k *= 2)
        add_exchange(&room, k, collective->bytes * (double)k / (double)room.ranks);
    return seconds_of(room_leave(&room));
}

/* One partner after another, at distance 1, 2, 3, … */
static double simulate_pairwise(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    g_autofree int *messages = g_new(int, room.ranks);
    for (int64_t k = 1; k < room.ranks; k++) {
        for (int64_t rank = 0; rank < room.ranks; rank++) {
            int64_t to = (rank + k) % room.ranks;
            messages[to] =
                send(&room, rank, to, collective->bytes / (double)room.ranks, room.arrived[rank]);
        }
        end_round(&room, messages);
    }
    return seconds_of(room_leave(&room));
}

/* Round k: the blocks for ranks at a distance with bit k go 2^k places on. */
static double simulate_bruck_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    g_autofree int *messages = g_new(int, room.ranks);
    for (int64_t k = 1; k < room.ranks; k *= 2) {
        int64_t blocks = 0;
        for (int64_t distance = 0; distance < room.ranks; distance++)
            blocks += (distance & k) != 0;
        for (int64_t rank = 0; rank < room.ranks; rank++) {
            int64_t to = (rank + k) % room.ranks;
            messages[to] =
                send(&room, rank, to, collective->bytes * (double)blocks / (double)room.ranks,
                     room.arrived[rank]);
        }
        end_round(&room, messages);
    }
    return seconds_of(room_leave(&room));
}

/* From rank 0, who has it, to k, 2k, … more ranks with each round. */
static void add_binomial(Room *room, double bytes) {
    for (int64_t k = 1; k < room->ranks; k *= 2)
        for (int64_t rank = 0; rank < k && rank + k < room->ranks; rank++) {
            int message = send(room, rank, rank + k, bytes, room->arrived[rank]);
            room->arrived[rank] = room->arrived[rank + k] = message;
        }
}

static double simulate_binomial(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    add_binomial(&room, collective->bytes);
    return seconds_of(room_leave(&room));
}

/* Ranks [first, first + n) get their blocks from `first`, who has them: half of them first. */
static void add_scatter(Room *room, int64_t first, int64_t n, double block) {
    if (n <= 1)
        return;
    int64_t mine = (n + 1) / 2, middle = first + mine;
    int message = send(room, first, middle, block * (double)(n - mine), room->arrived[first]);
    room->arrived[first] = room->arrived[middle] = message;
    add_scatter(room, first, mine, block);
    add_scatter(room, middle, n - mine, block);
}

static double simulate_scatter_allgather(const MtfNetwork *network,
                                         const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    double block = collective->bytes / (double)room.ranks;
    add_scatter(&room, 0, room.ranks, block);
    add_barrier(&room, room.arrived);
    add_bruck(&room, block);
    return seconds_of(room_leave(&room));
}

/* ---- Several levels -------------------------------------------------------------------------- */

/* At one level each rank sends `bytes` to each of its counterparts in the other children of its
 * switch. `ready` and `done` are one a rank. */
static void add_level(const Room *room, int d, double bytes, const int *ready, int *done) {
    int64_t below = room->below[d], size = room->network->axis[d].size;
    for (int64_t rank = 0; rank < room->ranks; rank++)
        done[rank] = point(room);
    for (int64_t rank = 0; rank < room->ranks; rank++) {
        int64_t at = rank / below % size;
        mtf_flow_simulator_order(room->simulator, ready[rank], done[rank]);
        for (int64_t distance = 1; distance < size; distance++) {
            int64_t to = rank + ((at + distance) % size - at) * below;
            int message = send(room, rank, to, bytes, ready[rank]);
            mtf_flow_simulator_order(room->simulator, message, done[to]);
        }
    }
}

/* An allgather of a segment, the outermost level first, where blocks are small. Level by level a
 * segment waits for the one before it, whose end `levels` holds. */
static void add_segment(Room *room, double bytes, int *levels) {
    g_autofree int *ready = g_new(int, room->ranks), *done = g_new(int, room->ranks);
    double held = bytes / (double)room->ranks;
    int last = -1;
    for (int d = 0; d < room->network->axes; d++) {
        int start = point(room);
        mtf_flow_simulator_order(room->simulator, last, start);
        mtf_flow_simulator_order(room->simulator, levels[d], start);
        for (int64_t rank = 0; rank < room->ranks; rank++)
            ready[rank] = start;
        add_level(room, d, held, ready, done);
        add_barrier(room, done);
        last = levels[d] = done[0];
        held *= (double)room->network->axis[d].size;
    }
}

static double simulate_segments(const MtfNetwork *network, const MtfCollective *collective,
                                int segments) {
    Room room;
    int levels[MTF_NETWORK_AXES_MAX];
    room_init(&room, network);
    for (int d = 0; d < network->axes; d++)
        levels[d] = -1;
    for (int s = 0; s < segments; s++)
        add_segment(&room, collective->bytes / segments, levels);
    return gather_seconds(room_leave(&room), collective->kind);
}

static double simulate_hierarchical(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes > 1 ? simulate_segments(network, collective, 1) : NAN;
}

static double simulate_pipelined(const MtfNetwork *network, const MtfCollective *collective) {
    double best = INFINITY;
    for (int k = 2; k <= MOST_SEGMENTS; k *= 2)
        best = fmin(best, simulate_segments(network, collective, k));
    return network->axes > 1 ? best : NAN;
}

static double simulate_levels_alltoall(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    if (network->axes < 2)
        return NAN;
    room_init(&room, network);
    g_autofree int *done = g_new(int, room.ranks);
    for (int d = network->axes - 1; d >= 0; d--) {
        add_level(&room, d, collective->bytes / (double)network->axis[d].size, room.arrived, done);
        add_barrier(&room, done);
        end_round(&room, done);
    }
    return seconds_of(room_leave(&room));
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

static double simulate_p2p(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    room_init(&room, network);
    send(&room, collective->from, mtf_collective_target(network, collective), collective->bytes,
         -1);
    return seconds_of(room_leave(&room));
}

static double simulate_permute(const MtfNetwork *network, const MtfCollective *collective) {
    Room room;
    int64_t ranks = mtf_network_ranks(network), shift = (collective->shift % ranks + ranks) % ranks;
    if (shift == 0)
        return NAN;
    room_init(&room, network);
    for (int64_t rank = 0; rank < room.ranks; rank++)
        send(&room, rank, (rank + shift) % room.ranks, collective->bytes, -1);
    return seconds_of(room_leave(&room));
}

#define ROW(name, kinds, claim, simulate) \
    { name, kinds, true, claim, simulate }
#define ALLTOALL MTF_KIND_BIT(MTF_ALLTOALL)
#define BROADCAST MTF_KIND_BIT(MTF_BROADCAST)

static const MtfSimulationRow rows[] = {
    ROW("switch", MTF_GATHER_KINDS, MTF_SIMULATION_EXACT, simulate_direct),
    ROW("ring", MTF_GATHER_KINDS, MTF_SIMULATION_EXACT_PLAIN, simulate_ring),
    ROW("bruck", MTF_KIND_BIT(MTF_ALLGATHER), MTF_SIMULATION_EXACT, simulate_bruck),
    ROW("recursive_doubling", MTF_KIND_BIT(MTF_ALLREDUCE), MTF_SIMULATION_EXACT,
        simulate_recursive_doubling),
    ROW("rabenseifner", MTF_KIND_BIT(MTF_ALLREDUCE), MTF_SIMULATION_EXACT,
        simulate_recursive_halving),
    ROW("recursive_halving", MTF_KIND_BIT(MTF_REDUCE_SCATTER), MTF_SIMULATION_EXACT,
        simulate_recursive_halving),
    ROW("hierarchical", MTF_GATHER_KINDS, MTF_SIMULATION_EXACT, simulate_hierarchical),
    ROW("hierarchical_pipelined", MTF_GATHER_KINDS, MTF_SIMULATION_ESTIMATE, simulate_pipelined),
    ROW("switch", ALLTOALL, MTF_SIMULATION_EXACT, simulate_direct),
    ROW("pairwise", ALLTOALL, MTF_SIMULATION_EXACT, simulate_pairwise),
    ROW("bruck", ALLTOALL, MTF_SIMULATION_ESTIMATE, simulate_bruck_alltoall),
    ROW("level_by_level", ALLTOALL, MTF_SIMULATION_EXACT, simulate_levels_alltoall),
    ROW("binomial", BROADCAST, MTF_SIMULATION_EXACT, simulate_binomial),
    ROW("scatter_allgather", BROADCAST, MTF_SIMULATION_EXACT, simulate_scatter_allgather),
    ROW("switch", MTF_KIND_BIT(MTF_P2P), MTF_SIMULATION_EXACT, simulate_p2p),
    ROW("switch", MTF_KIND_BIT(MTF_PERMUTE), MTF_SIMULATION_EXACT, simulate_permute),
};

const MtfSimulationRow *mtf_switch_simulation_row(int i) {
    return i >= 0 && i < (int)G_N_ELEMENTS(rows) ? &rows[i] : NULL;
}
