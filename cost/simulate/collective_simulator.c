// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/simulate/collective_simulator.h"

#include "cost/collectives/collective_algorithm.h"
#include "cost/simulate/link_simulator.h"
#include "cost/simulate/switch_simulator.h"

#include <math.h>
#include <string.h>

/* Parts that a message over several hops is cut into where a formula lets it flow. */
#define FLOW_PARTS 16

/* A phase moves what every rank holds along one axis, from every rank to every other on its line.
 * Each origin's bundle goes forward and backward hop by hop:
 *
 *     gather     the whole block at every hop; in an even ring the last hop carries a half
 *     exchange   one partner's part less at every hop
 *     around     halves, forward and backward all the way round                               */
typedef enum { GATHER, EXCHANGE, AROUND } PhaseKind;

typedef struct {
    MtfLinkSimulator *simulator;
    const MtfNetwork *network;
    PhaseKind kind;
    int axis;
    double bytes; /* that one rank holds */
} Phase;

/* Hops that a bundle makes in one direction from place `at`. */
static int64_t hops_of(const Phase *phase, int64_t at, bool forward) {
    const MtfNetworkAxis *axis = &phase->network->axis[phase->axis];
    if (!axis->wrap)
        return forward ? axis->size - 1 - at : at;
    return phase->kind == AROUND ? axis->size - 1 : axis->size / 2;
}

/* Bytes that a bundle of `hops` hops carries at hop `hop` (from 1). In an even ring the partner
 * opposite is served by halves from both sides. */
static double bytes_of(const Phase *phase, int64_t hops, int64_t hop) {
    const MtfNetworkAxis *axis = &phase->network->axis[phase->axis];
    bool halves = axis->wrap && axis->size % 2 == 0;
    if (phase->kind == AROUND)
        return axis->wrap ? phase->bytes / 2 : phase->bytes;
    if (phase->kind == GATHER)
        return halves && hop == hops ? phase->bytes / 2 : phase->bytes;
    double part = phase->bytes / (double)axis->size;
    return part * ((double)(hops - hop + 1) - (halves ? 0.5 : 0));
}

/* One bundle; `after` releases it, `before` waits for it. */
static void send_bundle(const Phase *phase, int64_t rank, bool forward, int after, int before) {
    int64_t at[MTF_NETWORK_AXES_MAX];
    mtf_network_coordinates(phase->network, rank, at);
    int64_t hops = hops_of(phase, at[phase->axis], forward);
    int last = after;
    for (int64_t hop = 1; hop <= hops; hop++) {
        int transfer = mtf_link_simulator_send(phase->simulator, rank, phase->axis, forward,
                                               bytes_of(phase, hops, hop));
        mtf_link_simulator_order(phase->simulator, last, transfer);
        rank = mtf_network_neighbor(phase->network, rank, phase->axis, forward);
        last = transfer;
    }
    mtf_link_simulator_order(phase->simulator, last, before);
}

/* An exchange on a line: a message of its own for each partner, the farthest first, so that the
 * middle link starts early and never waits. */
static void exchange_on_lines(const Phase *phase, int after, int before) {
    int64_t ranks = mtf_network_ranks(phase->network), at[MTF_NETWORK_AXES_MAX];
    int64_t size = phase->network->axis[phase->axis].size;
    for (int64_t distance = size - 1; distance > 0; distance--)
        for (int64_t i = 0; i < 2 * ranks; i++) {
            int64_t rank = i / 2;
            bool forward = i % 2 == 0;
            int last = after;
            mtf_network_coordinates(phase->network, rank, at);
            if (distance > hops_of(phase, at[phase->axis], forward))
                continue;
            for (int64_t hop = 0; hop < distance; hop++) {
                int transfer = mtf_link_simulator_send(phase->simulator, rank, phase->axis, forward,
                                                       phase->bytes / (double)size);
                mtf_link_simulator_order(phase->simulator, last, transfer);
                rank = mtf_network_neighbor(phase->network, rank, phase->axis, forward);
                last = transfer;
            }
            mtf_link_simulator_order(phase->simulator, last, before);
        }
}

static void send_phase(const Phase *phase, int after, int before) {
    int64_t ranks = mtf_network_ranks(phase->network);
    if (phase->kind == EXCHANGE && !phase->network->axis[phase->axis].wrap) {
        exchange_on_lines(phase, after, before);
        return;
    }
    for (int64_t rank = 0; rank < ranks; rank++) {
        send_bundle(phase, rank, true, after, before);
        send_bundle(phase, rank, false, after, before);
    }
}

/* All parts of a bucket algorithm: part k of share x_k visits the axes order[k], order[k + 1], … An
 * allgather starts with the smallest blocks, so it runs a reduce-scatter's phases backwards. */
typedef struct {
    const MtfNetwork *network;
    PhaseKind kind;
    double bytes;
    const double *share;
    const int *order;
} Bucket;

/* What a rank holds of part k before phase j, counted from the end of the allgather. */
static double held_bytes(const Bucket *bucket, int k, int j) {
    double bytes = bucket->bytes * bucket->share[bucket->order[k]];
    for (int i = 0; i <= j && bucket->kind != EXCHANGE; i++) {
        int axis = bucket->order[(k + i) % bucket->network->axes];
        bytes /= (double)bucket->network->axis[axis].size;
    }
    return bytes;
}

static void add_bucket_phase(MtfLinkSimulator *simulator, const Bucket *bucket, int k, int j,
                             int after, int before) {
    Phase phase = { .simulator = simulator,
                    .network = bucket->network,
                    .kind = bucket->kind,
                    .axis = bucket->order[(k + j) % bucket->network->axes],
                    .bytes = held_bytes(bucket, k, j) };
    send_phase(&phase, after, before);
}

/* The allgather (or exchange) with a barrier after each phase. */
static MtfLinkSimulator *bucket_with_barriers(const Bucket *bucket) {
    MtfLinkSimulator *simulator = mtf_link_simulator_new(bucket->network);
    int axes = bucket->network->axes, barrier = mtf_link_simulator_join(simulator);
    for (int j = axes - 1; j >= 0; j--) {
        int next = mtf_link_simulator_join(simulator);
        mtf_link_simulator_order(simulator, barrier, next);
        for (int k = 0; k < axes; k++)
            add_bucket_phase(simulator, bucket, k, j, barrier, next);
        barrier = next;
    }
    return simulator;
}

static bool shares_of(const MtfNetwork *network, bool fitted, double *share, int *order) {
    double sum = 0;
    for (int d = 0; d < network->axes; d++) {
        const MtfNetworkAxis *axis = &network->axis[d];
        double n = (double)axis->size;
        order[d] = d;
        share[d] = fitted ? mtf_axis_links(axis) * axis->bandwidth * n / (n - 1) : 1;
        sum += share[d];
    }
    for (int d = 0; d < network->axes; d++)
        share[d] /= sum;
    return mtf_network_links_are_distinct(network);
}

static double seconds_of(MtfLinkSimulator *simulator) {
    double seconds = mtf_link_simulator_run(simulator);
    mtf_link_simulator_free(simulator);
    return seconds;
}

/* An allgather, the reduce-scatter that is its reverse, or both, without arithmetic. */
static double gather_seconds(MtfLinkSimulator *gather, MtfCollectiveKind kind) {
    double seconds = 0;
    if (kind != MTF_ALLGATHER)
        seconds += seconds_of(mtf_link_simulator_reverse(gather));
    if (kind != MTF_REDUCE_SCATTER)
        seconds += mtf_link_simulator_run(gather);
    mtf_link_simulator_free(gather);
    return seconds;
}

static double simulate_bucket_order(const Bucket *bucket, const MtfCollective *collective) {
    MtfLinkSimulator *simulator = bucket_with_barriers(bucket);
    if (bucket->kind == EXCHANGE)
        return seconds_of(simulator);
    return gather_seconds(simulator, collective->kind);
}

/* The better of the two cyclic orders of three axes, as the formula takes it. */
static double simulate_bucket(const MtfNetwork *network, const MtfCollective *collective,
                              PhaseKind kind, bool fitted) {
    double share[MTF_NETWORK_AXES_MAX];
    int order[MTF_NETWORK_AXES_MAX];
    if (!shares_of(network, fitted, share, order))
        return NAN;
    Bucket bucket = { network, kind, collective->bytes, share, order };
    double seconds = simulate_bucket_order(&bucket, collective);
    if (network->axes != 3)
        return seconds;
    int turned[] = { 0, 2, 1 };
    bucket.order = turned;
    return fmin(seconds, simulate_bucket_order(&bucket, collective));
}

static double simulate_shortest(const MtfNetwork *network, const MtfCollective *collective) {
    return simulate_bucket(network, collective, GATHER, false);
}

static double simulate_multiring_equal(const MtfNetwork *network, const MtfCollective *collective) {
    return simulate_bucket(network, collective, AROUND, false);
}

static double simulate_multiring_fitted(const MtfNetwork *network,
                                        const MtfCollective *collective) {
    return simulate_bucket(network, collective, AROUND, true);
}

static double simulate_exchange(const MtfNetwork *network, const MtfCollective *collective) {
    return simulate_bucket(network, collective, EXCHANGE, false);
}

static double simulate_one_axis(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes == 1 ? simulate_shortest(network, collective) : NAN;
}

/* On a line, and on a ring as if it were one. */
static double simulate_line(const MtfNetwork *network, const MtfCollective *collective) {
    MtfNetwork open = *network;
    open.axis[0].wrap = false;
    return simulate_one_axis(&open, collective);
}

static double simulate_ring(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axis[0].wrap ? simulate_one_axis(network, collective) : NAN;
}

static double simulate_ring_halves(const MtfNetwork *network, const MtfCollective *collective) {
    bool ring = network->axes == 1 && network->axis[0].wrap;
    return ring ? simulate_multiring_equal(network, collective) : NAN;
}

static double simulate_ring_exchange(const MtfNetwork *network, const MtfCollective *collective) {
    bool ring = network->axes == 1 && network->axis[0].wrap;
    return ring ? simulate_exchange(network, collective) : NAN;
}

static double simulate_line_exchange(const MtfNetwork *network, const MtfCollective *collective) {
    MtfNetwork open = *network;
    open.axis[0].wrap = false;
    return network->axes == 1 ? simulate_exchange(&open, collective) : NAN;
}

/* The axis of least bandwidth among those not in `done` (bits). */
static int weakest_axis(const MtfNetwork *network, unsigned done) {
    double least = INFINITY;
    int weakest = 0;
    for (int d = 0; d < network->axes; d++) {
        double links = mtf_axis_links(&network->axis[d]) * network->axis[d].bandwidth;
        if ((done >> d & 1) != 0 || links >= least)
            continue;
        least = links;
        weakest = d;
    }
    return weakest;
}

/* One axis after another, the one with the most bandwidth last in an allgather. */
static double simulate_axis_by_axis(const MtfNetwork *network, const MtfCollective *collective) {
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    double bytes = collective->bytes / (double)mtf_network_ranks(network);
    bool exchange = collective->kind == MTF_ALLTOALL;
    int barrier = mtf_link_simulator_join(simulator);
    unsigned done = 0;
    for (int i = 0; i < network->axes; i++) {
        int axis = weakest_axis(network, done), next = mtf_link_simulator_join(simulator);
        Phase phase = { simulator, network, exchange ? EXCHANGE : GATHER, axis,
                        exchange ? collective->bytes : bytes };
        send_phase(&phase, barrier, next);
        done |= 1U << axis;
        bytes *= (double)network->axis[axis].size;
        barrier = next;
    }
    return exchange ? seconds_of(simulator) : gather_seconds(simulator, collective->kind);
}

/* The axis and direction that lead from a place of the snake to the next. */
static int64_t snake_step(const MtfNetwork *network, int64_t index, int *axis, bool *forward) {
    int64_t sides[MTF_NETWORK_AXES_MAX], from[MTF_NETWORK_AXES_MAX], to[MTF_NETWORK_AXES_MAX];
    int64_t ranks = mtf_network_ranks(network), rank = 0;
    for (int d = 0; d < network->axes; d++)
        sides[d] = network->axis[d].size;
    mtf_snake_place(sides, network->axes, (index + ranks) % ranks, from);
    mtf_snake_place(sides, network->axes, (index + 1) % ranks, to);
    for (int d = 0; d < network->axes; d++) {
        rank = rank * sides[d] + from[d];
        if (from[d] == to[d])
            continue;
        *axis = d;
        *forward = to[d] == from[d] + 1;
    }
    return rank;
}

/* The transfer from one place of the snake to the next or the one before. */
static int send_on_snake(MtfLinkSimulator *simulator, const MtfNetwork *network, int64_t index,
                         bool onward, double bytes) {
    int axis = 0;
    bool forward = true;
    int64_t rank = snake_step(network, onward ? index : index - 1, &axis, &forward);
    if (onward)
        return mtf_link_simulator_send(simulator, rank, axis, forward, bytes);
    int64_t next = mtf_network_neighbor(network, rank, axis, forward);
    return mtf_link_simulator_send(simulator, next, axis, !forward, bytes);
}

static double simulate_snake(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network);
    if (network->axes < 2 || ranks % 2 != 0)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    double block = collective->bytes / (double)ranks;
    for (int64_t origin = 0; origin < 2 * ranks; origin++) {
        bool onward = origin < ranks;
        int last = -1;
        for (int64_t hop = 1; hop <= ranks / 2; hop++) {
            int64_t index = onward ? origin + hop - 1 : origin - hop + 1;
            int transfer = send_on_snake(simulator, network, index % ranks, onward,
                                         hop == ranks / 2 ? block / 2 : block);
            mtf_link_simulator_order(simulator, last, transfer);
            last = transfer;
        }
    }
    return gather_seconds(simulator, collective->kind);
}

/* One step of a rank towards the centre of the grid: along the first axis on which it is off. False
 * at the centre. */
static bool step_to_centre(const MtfNetwork *network, int64_t rank, int *axis, bool *forward) {
    int64_t at[MTF_NETWORK_AXES_MAX];
    mtf_network_coordinates(network, rank, at);
    for (int d = 0; d < network->axes; d++) {
        int64_t centre = network->axis[d].size / 2;
        if (at[d] == centre)
            continue;
        *axis = d;
        *forward = at[d] < centre;
        return true;
    }
    return false;
}

/* Adds one segment's transfers up the tree (from each rank to its parent) and down again. */
static void add_tree_segment(MtfLinkSimulator *simulator, const MtfNetwork *network, double bytes) {
    int64_t ranks = mtf_network_ranks(network);
    g_autofree int *up = g_new(int, ranks), *down = g_new(int, ranks);
    int root = mtf_link_simulator_join(simulator), axis;
    bool forward;
    for (int64_t rank = 0; rank < ranks; rank++) {
        up[rank] = down[rank] = root;
        if (!step_to_centre(network, rank, &axis, &forward))
            continue;
        int64_t parent = mtf_network_neighbor(network, rank, axis, forward);
        up[rank] = mtf_link_simulator_send(simulator, rank, axis, forward, bytes);
        down[rank] = mtf_link_simulator_send(simulator, parent, axis, !forward, bytes);
    }
    for (int64_t rank = 0; rank < ranks; rank++) {
        if (!step_to_centre(network, rank, &axis, &forward))
            continue;
        int64_t parent = mtf_network_neighbor(network, rank, axis, forward);
        mtf_link_simulator_order(simulator, up[rank], up[parent]);
        mtf_link_simulator_order(simulator, down[parent], down[rank]);
    }
}

static double simulate_tree_reduce(const MtfNetwork *network, const MtfCollective *collective) {
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    int64_t segments = collective->segments > 0 ? collective->segments : FLOW_PARTS;
    for (int64_t s = 0; s < segments; s++)
        add_tree_segment(simulator, network, collective->bytes / (double)segments);
    return seconds_of(simulator);
}

static double simulate_line_reduce(const MtfNetwork *network, const MtfCollective *collective) {
    return network->axes == 1 ? simulate_tree_reduce(network, collective) : NAN;
}

/* A message of `bytes` in segments over `hops` links along axis 0. */
typedef struct {
    int64_t rank, hops;
    bool forward;
    double bytes;
    int64_t segments;
} Chain;

static void send_chain(MtfLinkSimulator *simulator, const MtfNetwork *network, Chain chain) {
    for (int64_t s = 0; s < chain.segments; s++) {
        int last = -1;
        int64_t at = chain.rank;
        for (int64_t hop = 0; hop < chain.hops; hop++) {
            int transfer = mtf_link_simulator_send(simulator, at, 0, chain.forward,
                                                   chain.bytes / (double)chain.segments);
            mtf_link_simulator_order(simulator, last, transfer);
            at = mtf_network_neighbor(network, at, 0, chain.forward);
            last = transfer;
        }
    }
}

static double simulate_bcast_halves(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t segments = collective->segments > 0 ? collective->segments : FLOW_PARTS;
    int64_t hops = network->axis[0].size - 1;
    if (network->axes != 1 || !network->axis[0].wrap)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    for (int forward = 0; forward < 2; forward++)
        send_chain(
            simulator, network,
            (Chain){ collective->from, hops, forward != 0, collective->bytes / 2, segments });
    return seconds_of(simulator);
}

static double simulate_bcast_line(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t segments = collective->segments > 0 ? collective->segments : FLOW_PARTS;
    int64_t from = collective->from, size = network->axis[0].size;
    if (network->axes != 1 || network->axis[0].wrap)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    send_chain(simulator, network,
               (Chain){ from, size - 1 - from, true, collective->bytes, segments });
    send_chain(simulator, network, (Chain){ from, from, false, collective->bytes, segments });
    return seconds_of(simulator);
}

static int64_t shift_on(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t n = network->axis[0].size, shift = collective->shift % n;
    return shift < 0 ? shift + n : shift;
}

/* Whole messages the shorter way round. */
static double simulate_single_path(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t n = network->axis[0].size, shift = shift_on(network, collective);
    bool forward = 2 * shift <= n;
    if (network->axes != 1 || !network->axis[0].wrap)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    for (int64_t rank = 0; rank < n; rank++)
        send_chain(simulator, network,
                   (Chain){ rank, MIN(shift, n - shift), forward, collective->bytes, 1 });
    return seconds_of(simulator);
}

/* A share each way round, in parts. */
static double simulate_both_ways(const MtfNetwork *network, const MtfCollective *collective) {
    int64_t n = network->axis[0].size, shift = shift_on(network, collective);
    if (network->axes != 1 || !network->axis[0].wrap)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    double onward = collective->bytes * (double)(n - shift) / (double)n;
    for (int64_t rank = 0; rank < n; rank++) {
        send_chain(simulator, network, (Chain){ rank, shift, true, onward, FLOW_PARTS });
        send_chain(simulator, network,
                   (Chain){ rank, n - shift, false, collective->bytes - onward, FLOW_PARTS });
    }
    return seconds_of(simulator);
}

static double simulate_halo(const MtfNetwork *network, const MtfCollective *collective) {
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    int64_t ranks = mtf_network_ranks(network);
    for (int64_t rank = 0; rank < ranks; rank++)
        for (int i = 0; i < 2 * network->axes; i++) {
            int axis = i / 2;
            double face = axis < collective->faces ? collective->face[axis] : collective->bytes;
            bool exists = mtf_network_neighbor(network, rank, axis, i % 2 != 0) >= 0;
            if (exists && network->axis[axis].size > 1)
                mtf_link_simulator_send(simulator, rank, axis, i % 2 != 0, face);
        }
    return seconds_of(simulator);
}

/* Partners at distance 1, 2, 4, … on each axis in turn exchange `bytes`, which shrink by `shrink`;
 * every rank goes on when its own partner's message is complete. */
static void add_exchange_step(MtfLinkSimulator *simulator, const MtfNetwork *network, int axis,
                              int64_t distance, double bytes, int *arrived) {
    int64_t ranks = mtf_network_ranks(network), at[MTF_NETWORK_AXES_MAX];
    g_autofree int *complete = g_new(int, ranks);
    for (int64_t rank = 0; rank < ranks; rank++)
        complete[rank] = mtf_link_simulator_join(simulator);
    for (int64_t i = 0; i < ranks * FLOW_PARTS; i++) {
        int64_t here = i / FLOW_PARTS;
        int last = arrived[here];
        mtf_network_coordinates(network, here, at);
        bool forward = (at[axis] & distance) == 0;
        for (int64_t hop = 0; hop < distance; hop++) {
            int transfer =
                mtf_link_simulator_send(simulator, here, axis, forward, bytes / FLOW_PARTS);
            mtf_link_simulator_order(simulator, last, transfer);
            here = mtf_network_neighbor(network, here, axis, forward);
            last = transfer;
        }
        mtf_link_simulator_order(simulator, last, complete[here]);
    }
    memcpy(arrived, complete, (size_t)ranks * sizeof *arrived);
}

static double simulate_recursive_doubling(const MtfNetwork *network,
                                          const MtfCollective *collective) {
    int64_t ranks = mtf_network_ranks(network);
    if ((ranks & (ranks - 1)) != 0)
        return NAN;
    MtfLinkSimulator *simulator = mtf_link_simulator_new(network);
    g_autofree int *arrived = g_new(int, ranks);
    for (int64_t rank = 0; rank < ranks; rank++)
        arrived[rank] = -1;
    for (int d = 0; d < network->axes; d++)
        for (int64_t distance = 1; distance < network->axis[d].size; distance *= 2)
            add_exchange_step(simulator, network, d, distance, collective->bytes, arrived);
    return seconds_of(simulator);
}

static const MtfSimulationRow rows[] = {
    { "ring", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT, simulate_ring },
    { "ring_halves", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT, simulate_ring_halves },
    { "line", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT, simulate_line },
    { "shortest_bidir", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT, simulate_shortest },
    { "multiring_bucket_nminus1", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT,
      simulate_multiring_equal },
    { "multiring_sync_opt_split", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT,
      simulate_multiring_fitted },
    { "axis_by_axis", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT, simulate_axis_by_axis },
    { "snake_ring", MTF_GATHER_KINDS, false, MTF_SIMULATION_EXACT_PLAIN, simulate_snake },
    { "line_reduce_bcast", MTF_KIND_BIT(MTF_ALLREDUCE), false, MTF_SIMULATION_EXACT_PLAIN,
      simulate_line_reduce },
    { "tree_reduce_bcast", MTF_KIND_BIT(MTF_ALLREDUCE), false, MTF_SIMULATION_EXACT_PLAIN,
      simulate_tree_reduce },
    { "recursive_doubling", MTF_KIND_BIT(MTF_ALLREDUCE), false, MTF_SIMULATION_ESTIMATE,
      simulate_recursive_doubling },
    { "ring", MTF_KIND_BIT(MTF_ALLTOALL), false, MTF_SIMULATION_EXACT, simulate_ring_exchange },
    { "line", MTF_KIND_BIT(MTF_ALLTOALL), false, MTF_SIMULATION_ESTIMATE, simulate_line_exchange },
    { "bucket_a2a", MTF_KIND_BIT(MTF_ALLTOALL), false, MTF_SIMULATION_EXACT, simulate_exchange },
    { "axis_by_axis", MTF_KIND_BIT(MTF_ALLTOALL), false, MTF_SIMULATION_EXACT,
      simulate_axis_by_axis },
    { "ring_bidir_halves", MTF_KIND_BIT(MTF_BROADCAST), false, MTF_SIMULATION_EXACT_PLAIN,
      simulate_bcast_halves },
    { "line", MTF_KIND_BIT(MTF_BROADCAST), false, MTF_SIMULATION_EXACT_PLAIN, simulate_bcast_line },
    { "single_path", MTF_KIND_BIT(MTF_PERMUTE), false, MTF_SIMULATION_EXACT, simulate_single_path },
    { "both_ways", MTF_KIND_BIT(MTF_PERMUTE), false, MTF_SIMULATION_ESTIMATE, simulate_both_ways },
    { "open", MTF_KIND_BIT(MTF_HALO), false, MTF_SIMULATION_EXACT, simulate_halo },
};

const MtfSimulationRow *mtf_collective_simulation_row(int i) {
    int on_tori = (int)G_N_ELEMENTS(rows);
    if (i < 0)
        return NULL;
    return i < on_tori ? &rows[i] : mtf_switch_simulation_row(i - on_tori);
}

bool mtf_collective_simulate(const MtfNetwork *network, const MtfCollective *collective,
                             const char *algorithm, double *seconds) {
    MtfNetwork group;
    const MtfSimulationRow *row;
    if (!mtf_collective_prepare(network, collective, &group))
        return false;
    for (int i = 0; (row = mtf_collective_simulation_row(i)) != NULL; i++) {
        if (strcmp(row->name, algorithm) != 0 || row->switched != group.switched ||
            (row->kinds & MTF_KIND_BIT(collective->kind)) == 0)
            continue;
        double simulated = row->simulate(&group, collective);
        if (!isnan(simulated))
            *seconds = simulated;
        return !isnan(simulated);
    }
    return false;
}
