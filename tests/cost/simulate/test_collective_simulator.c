// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/simulate/collective_trial.h"
#include "cost/simulate/link_simulator.h"

#include <math.h>
#include <string.h>

#define TRIALS 300

TEST(exact_formulas_agree_with_the_simulation) {
    int judged = 0;
    for (uint64_t i = 0; i < TRIALS; i++) {
        MtfCollectiveTrial trial = mtf_collective_trial(7, i);
        if (trial.claim != MTF_SIMULATION_EXACT)
            continue;
        g_autofree char *text = mtf_collective_trial_text(&trial);
        if (fabs(trial.simulated / trial.formula - 1) > 1e-9)
            fail_msg("trial %d: %s: %.9g s simulated, %.9g s by formula", (int)i, text,
                     trial.simulated, trial.formula);
        judged++;
    }
    assert_true(judged > TRIALS / 2);
}

/* Estimates on switches, and on links that are shared. */
static bool is_rough(const MtfCollectiveTrial *trial) {
    return trial->claim == MTF_SIMULATION_ESTIMATE &&
           (trial->network.switched || mtf_collective_trial_shares(trial));
}

TEST(estimates_stay_within_a_third_of_the_simulation) {
    for (uint64_t i = 0; i < TRIALS; i++) {
        MtfCollectiveTrial trial = mtf_collective_trial(8, i);
        double ratio = trial.simulated / trial.formula;
        g_autofree char *text = mtf_collective_trial_text(&trial);
        if (is_rough(&trial))
            continue;
        if (ratio < 0.67 || ratio > 1.34)
            fail_msg("trial %d: %s: %.9g s simulated, %.9g s by formula", (int)i, text,
                     trial.simulated, trial.formula);
    }
}

/* Among groups that share links a pipe's parts queue behind those of others, and a snake is priced
 * as if all its links were as slow as those of the shared axis. On switches a ring is priced as if
 * all links were as slow as the slowest, and a pipe as if all its segments kept the busiest links
 * busy. */
TEST(rough_estimates_are_too_low_by_half_at_most) {
    int judged = 0;
    for (uint64_t i = 0; i < 2 * TRIALS; i++) {
        MtfCollectiveTrial trial = mtf_collective_trial(10, i);
        if (!is_rough(&trial))
            continue;
        double ratio = trial.simulated / trial.formula;
        g_autofree char *text = mtf_collective_trial_text(&trial);
        if (ratio > (trial.network.switched ? 1.2 : 1.5))
            fail_msg("trial %d: %s: %.9g s simulated, %.9g s by formula", (int)i, text,
                     trial.simulated, trial.formula);
        judged++;
    }
    assert_true(judged > 30);
}

/* 4 of 8 places of a ring, both groups at work, 3 steps each way of half a block: a link carries
 * the parts of 2 groups at each of them. Blocks of 1 MB / 4 / 2 at 1e9 B/s: 3 x 2 x 0.125 ms, and a
 * hop of a member is two of 1 us. */
TEST(groups_that_interleave_wait_for_each_other_on_the_links) {
    MtfNetwork network = { .axes = 1 };
    network.axis[0] =
        (MtfNetworkAxis){ .size = 8, .wrap = true, .bandwidth = 1e9, .latency = 1e-6 };
    MtfCollective gather = { .kind = MTF_ALLGATHER, .bytes = 1e6, .stride = 2 };
    double seconds;
    assert_true(mtf_collective_simulate(&network, &gather, "ring_halves", &seconds));
    assert_true(fabs(seconds - (3 * 2 * 0.125e-3 + 3 * 2e-6)) < 1e-12);
}

/* No algorithm that can be simulated beats the bound; recursive doubling and permutes included. */
TEST(no_simulation_beats_the_bound) {
    for (uint64_t i = 0; i < TRIALS; i++) {
        MtfCollectiveTrial trial = mtf_collective_trial(9, i);
        double bound = mtf_collective_bound(&trial.network, &trial.collective);
        assert_true(trial.simulated >= bound * (1 - 1e-9));
    }
}

static MtfNetwork rings(int axes, const int64_t *sizes) {
    MtfNetwork network = { .axes = axes };
    for (int d = 0; d < axes; d++)
        network.axis[d] = (MtfNetworkAxis){
            .size = sizes[d], .wrap = true, .link = d, .bandwidth = 4.5e10, .latency = 1e-6
        };
    return network;
}

/* Rows that an independent simulator (ASTRA-sim, congestion-aware) gave, among the golden rows:
 * multiring_bucket_nminus1 and bucket_a2a of 1 MiB on 8, 4x4 and 4x4x4. */
TEST(simulations_agree_with_astra_sim) {
    static const struct {
        MtfCollectiveKind kind;
        const char *algorithm;
        int axes;
        int64_t sizes[3];
        double seconds;
    } rows[] = {
        { MTF_ALLREDUCE, "multiring_bucket_nminus1", 1, { 8 }, 3.4384e-5 },
        { MTF_REDUCE_SCATTER, "multiring_bucket_nminus1", 2, { 4, 4 }, 1.146e-5 },
        { MTF_ALLGATHER, "multiring_bucket_nminus1", 3, { 4, 4, 4 }, 1.2816e-5 },
        { MTF_ALLTOALL, "bucket_a2a", 1, { 8 }, 2.73e-5 },
        { MTF_ALLTOALL, "bucket_a2a", 2, { 4, 4 }, 1.565e-5 },
        { MTF_ALLTOALL, "bucket_a2a", 3, { 4, 4, 4 }, 1.7646e-5 },
        { MTF_ALLGATHER, "shortest_bidir", 3, { 4, 4, 4 }, 9.819e-6 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        MtfNetwork network = rings(rows[i].axes, rows[i].sizes);
        MtfCollective collective = { .kind = rows[i].kind, .bytes = 0x1p20 };
        double seconds;
        assert_true(mtf_collective_simulate(&network, &collective, rows[i].algorithm, &seconds));
        assert_true(fabs(seconds / rows[i].seconds - 1) < 1e-3);
    }
}

/* Without barriers the parts of a bucket algorithm collide on unequal axes, not on equal ones. A
 * comparison that could not tell the two apart would be worth nothing. */
TEST(a_missing_barrier_shows) {
    MtfCollective collective = { .kind = MTF_ALLREDUCE, .bytes = 0x1p30 };
    static const int64_t sizes[][3] = { { 4, 4 }, { 8, 4 }, { 16, 4 } };
    double ratio[3];
    for (int i = 0; i < 3; i++) {
        MtfNetwork network = rings(2, sizes[i]);
        double with;
        assert_true(
            mtf_collective_simulate(&network, &collective, "multiring_bucket_nminus1", &with));
        ratio[i] = mtf_collective_simulate_unsynchronised(&network, &collective) / with;
    }
    assert_true(fabs(ratio[0] - 1) < 1e-3);
    assert_true(ratio[1] > 1.1 && ratio[2] > ratio[1]);
}

/* What the ASTRA-sim runs of ../shared/torus.md found, over the bandwidth bound: an allreduce of 1
 * GiB in equal parts, without a barrier anywhere, not even between its two halves. With a barrier
 * between them it is another algorithm, and other figures. */
TEST(collisions_are_those_of_astra_sim) {
    static const struct {
        int axes;
        int64_t sizes[3];
        double ratio;
    } rows[] = { { 2, { 8, 4 }, 1.45 }, { 2, { 16, 4 }, 1.57 }, { 3, { 8, 4, 4 }, 1.86 } };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        MtfCollective both = { .kind = MTF_ALLREDUCE, .bytes = 0x1p30 }, gather = both;
        MtfNetwork network = rings(rows[i].axes, rows[i].sizes);
        double bound = mtf_collective_bound(&network, &both);
        double fused = mtf_collective_simulate_unsynchronised(&network, &both) / bound;
        assert_true(fabs(fused - rows[i].ratio) < 0.01);
        gather.kind = MTF_ALLGATHER;
        double alone = mtf_collective_simulate_unsynchronised(&network, &gather);
        gather.kind = MTF_REDUCE_SCATTER;
        alone += mtf_collective_simulate_unsynchronised(&network, &gather);
        assert_true(fabs(alone / bound - rows[i].ratio) > 0.05);
    }
}

/* Two Hamiltonian rings without a common link on a torus of two axes. `across[i * n + j]` says to
 * which ring the link from (i, j) to (i, j + 1) belongs, `down` likewise to (i + 1, j). At first
 * the rows are one ring's and the columns the other's; exchanging the four sides of a unit square
 * keeps every place on two links of each ring and joins (or parts) loops. */
typedef struct {
    int64_t m, n;
    bool across[256], down[256]; /* true: the first ring's */
} TwoRings;

/* Length of the loop of one ring through place 0; notes the walk in `walk` as 4 directions. */
static int64_t walk_ring(const TwoRings *rings_of, bool first, int *walk) {
    int64_t m = rings_of->m, n = rings_of->n, i = 0, j = 0, length = 0;
    int came = -1;
    do {
        const bool open[4] = { rings_of->across[i * n + j] == first,
                               rings_of->across[i * n + (j + n - 1) % n] == first,
                               rings_of->down[i * n + j] == first,
                               rings_of->down[(i + m - 1) % m * n + j] == first };
        int way = 0;
        while (!open[way] || way == came)
            way++;
        walk[length++] = way;
        j = (j + (way == 0 ? 1 : way == 1 ? n - 1 : 0)) % n;
        i = (i + (way == 2 ? 1 : way == 3 ? m - 1 : 0)) % m;
        came = way ^ 1;
    } while (i != 0 || j != 0);
    return length;
}

static void exchange_square(TwoRings *r, int64_t i, int64_t j) {
    bool *sides[] = { &r->across[i * r->n + j], &r->across[(i + 1) % r->m * r->n + j],
                      &r->down[i * r->n + j], &r->down[i * r->n + (j + 1) % r->n] };
    bool alternate = *sides[0] == *sides[1] && *sides[2] == *sides[3] && *sides[0] != *sides[2];
    for (int s = 0; s < 4 && alternate; s++)
        *sides[s] = !*sides[s];
}

static guint64 mix(guint64 x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Random exchanges that keep or lengthen the loops through place 0 until both hold every place. */
static bool find_two_rings(TwoRings *r, int *first, int *second) {
    int64_t places = r->m * r->n, best = 0;
    for (int64_t p = 0; p < places; p++) {
        r->across[p] = true;
        r->down[p] = false;
    }
    for (guint64 step = 0; step < 200000 && best < 2 * places; step++) {
        TwoRings trial = *r;
        for (guint64 k = 0; k <= mix(step) % 3; k++)
            exchange_square(&trial, (int64_t)(mix(step * 7 + k) % (guint64)r->m),
                            (int64_t)(mix(step * 7 + k + 3) % (guint64)r->n));
        int64_t held = walk_ring(&trial, true, first) + walk_ring(&trial, false, second);
        if (held < best)
            continue;
        best = held;
        *r = trial;
    }
    return walk_ring(r, true, first) == places && walk_ring(r, false, second) == places;
}

/* Simulates an allgather of half of every block round one ring, both ways. */
static void send_round(MtfLinkSimulator *simulator, const MtfNetwork *network, const int *walk,
                       double block) {
    int64_t ranks = mtf_network_ranks(network), at[256], rank = 0;
    for (int64_t p = 0; p < ranks; p++) {
        at[p] = rank;
        rank = mtf_network_neighbor(network, rank, walk[p] < 2, walk[p] % 2 == 0);
    }
    assert_int_equal(rank, 0);
    for (int64_t origin = 0; origin < 2 * ranks; origin++) {
        bool onward = origin % 2 == 0;
        int last = -1;
        for (int64_t hop = 1; hop <= ranks / 2; hop++) {
            int64_t p = (origin / 2 + (onward ? hop - 1 : ranks - hop + 1)) % ranks;
            int way = onward ? walk[p] : walk[(p + ranks - 1) % ranks] ^ 1;
            double bytes = hop == ranks / 2 && ranks % 2 == 0 ? block / 2 : block;
            int transfer = mtf_link_simulator_send(simulator, at[p], way < 2, way % 2 == 0, bytes);
            mtf_link_simulator_order(simulator, last, transfer);
            last = transfer;
        }
    }
}

TEST(hamiltonian_rings_exist_and_take_what_the_formula_says) {
    for (int64_t m = 3; m <= 8; m++)
        for (int64_t n = m; n <= 8; n++) {
            TwoRings r = { .m = m, .n = n };
            int first[256], second[256];
            if (!find_two_rings(&r, first, second))
                fail_msg("no two rings found on %dx%d", (int)m, (int)n);
            MtfNetwork network = rings(2, (int64_t[]){ m, n });
            MtfCollective collective = { .kind = MTF_ALLGATHER, .bytes = 1e8 };
            g_autoptr(MtfLinkSimulator) simulator = mtf_link_simulator_new(&network);
            double block = collective.bytes / (double)(m * n) / 2;
            send_round(simulator, &network, first, block);
            send_round(simulator, &network, second, block);
            MtfCollectivePrice price;
            assert_true(
                mtf_collective_named(&network, &collective, "hamiltonian_rings", &price, NULL));
            assert_true(fabs(mtf_link_simulator_run(simulator) / price.seconds - 1) < 1e-9);
        }
}

/* A mesh n/s x … on a ring or line of n: mesh axis 0 holds every s-th place, and its s groups
 * gather at once over the physical links, s of them a hop. */
static double simulate_all_groups(const MtfNetwork *axis, int64_t stride, double bytes) {
    g_autoptr(MtfLinkSimulator) simulator = mtf_link_simulator_new(axis);
    int64_t n = axis->axis[0].size, m = n / stride;
    bool wrap = axis->axis[0].wrap;
    for (int64_t i = 0; i < 2 * n; i++) {
        bool forward = i % 2 == 0;
        int64_t at = i / 2, place = at / stride;
        int64_t hops = wrap ? m / 2 : forward ? m - 1 - place : place;
        int last = -1;
        for (int64_t hop = 1; hop <= hops * stride; hop++) {
            bool half = wrap && m % 2 == 0 && hop > (hops - 1) * stride;
            int transfer = mtf_link_simulator_send(simulator, at, 0, forward,
                                                   bytes / (double)m / (half ? 2 : 1));
            mtf_link_simulator_order(simulator, last, transfer);
            at = mtf_network_neighbor(axis, at, 0, forward);
            last = transfer;
        }
    }
    return mtf_link_simulator_run(simulator);
}

TEST(interleaved_groups_take_what_their_share_of_the_links_says) {
    static const int64_t sizes[][2] = { { 16, 2 }, { 16, 4 }, { 16, 8 }, { 12, 4 }, { 9, 3 } };
    for (gsize i = 0; i < 2 * G_N_ELEMENTS(sizes); i++) {
        int64_t n = sizes[i / 2][0], stride = sizes[i / 2][1];
        MtfMeshMap map = { .slice = rings(1, &n) };
        map.slice.axis[0].wrap = i % 2 == 0;
        map.mapping = mtf_mapping_lexicographic(2, (int64_t[]){ n / stride, stride }, 1, &n);
        MtfNetwork group = mtf_mesh_map_group(&map, 1);
        MtfCollective collective = { .kind = MTF_ALLGATHER, .bytes = 1e7 };
        MtfCollectivePrice price = mtf_collective_best(&group, &collective);
        double simulated = simulate_all_groups(&map.slice, stride, collective.bytes);
        if (fabs(simulated / price.seconds - 1) > 1e-9)
            fail_msg("%d places by %d: %g s simulated, %g s by formula", (int)n, (int)stride,
                     simulated, price.seconds);
    }
}
