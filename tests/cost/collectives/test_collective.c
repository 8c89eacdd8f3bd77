// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/collectives/collective.h"
#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

enum { ID, KIND, ALGORITHM, DIMS, WRAP, BYTES, ALPHA, BANDWIDTH, EXPECTED, TOLERANCE, COLUMNS };

static MtfNetwork network_of(char **row) {
    MtfNetwork network = { .switched = strcmp(row[WRAP], "-") == 0 };
    g_auto(GStrv) sizes = g_strsplit(row[DIMS], "x", -1);
    for (int d = 0; sizes[d] != NULL; d++)
        network.axis[network.axes++] = (MtfNetworkAxis){
            .size = g_ascii_strtoll(sizes[d], NULL, 10),
            .wrap = !network.switched && row[WRAP][d] == '1',
            .link = d,
            .bandwidth = g_ascii_strtod(row[BANDWIDTH], NULL),
            .latency = g_ascii_strtod(row[ALPHA], NULL),
        };
    return network;
}

/* "periodic faces 1,2,4 MiB" */
static void read_faces(const char *algorithm, MtfCollective *collective) {
    const char *text = strstr(algorithm, "faces ");
    if (text == NULL)
        return;
    g_auto(GStrv) words = g_strsplit(text + strlen("faces "), ",", -1);
    for (char **word = words; *word != NULL; word++)
        collective->face[collective->faces++] = g_ascii_strtod(*word, NULL) * 0x1p20;
}

static void check_row(char **row) {
    MtfNetwork network = network_of(row);
    MtfCollective collective = { .bytes = g_ascii_strtod(row[BYTES], NULL), .shift = 1 };
    assert_true(mtf_collective_kind_parse(row[KIND], &collective.kind, NULL));
    read_faces(row[ALGORITHM], &collective);
    MtfCollectivePrice price;
    g_autoptr(GError) error = NULL;
    if (!mtf_collective_named(&network, &collective, row[ALGORITHM], &price, &error))
        fail_msg("%s: %s", row[ID], error->message);
    double expected = g_ascii_strtod(row[EXPECTED], NULL);
    double tolerance = g_ascii_strtod(row[TOLERANCE], NULL);
    if (fabs(price.seconds - expected) > tolerance * expected)
        fail_msg("%s: %.9g seconds, %.9g expected", row[ID], price.seconds, expected);
    assert_true(price.seconds >= mtf_collective_bound(&network, &collective));
}

static int check_file(const char *path) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    int rows = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) row = g_strsplit(*line, "\t", -1);
        if ((*line)[0] == '#' || g_strv_length(row) < COLUMNS)
            continue;
        check_row(row);
        rows++;
    }
    return rows;
}

TEST(hand_derived_rows_hold) {
    assert_true(check_file("tests/golden/collectives.tsv") > 30);
}

TEST(golden_rows_of_the_field_hold) {
    if (check_file("../shared/data/torus_golden.tsv") == 0)
        skip();
}

/* Random cases: a small counter-based generator, so that every case has a number. */
static guint64 mix(guint64 x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static guint64 draw(guint64 *state, guint64 below) {
    *state += 1;
    return mix(*state) % below;
}

static MtfNetwork random_network(guint64 *state) {
    MtfNetwork network = { .axes = 1 + (int)draw(state, 3) };
    double latency = 1e-7 * (double)(1 + draw(state, 30));
    for (int d = 0; d < network.axes; d++)
        network.axis[d] = (MtfNetworkAxis){
            .size = 2 + (int64_t)draw(state, 8),
            .wrap = draw(state, 2) == 0,
            .link = d,
            .bandwidth = 1e9 * (double)(1 + draw(state, 4)),
            .latency = latency,
        };
    return network;
}

static double random_bytes(guint64 *state) {
    return exp2((double)draw(state, 32));
}

static double best_seconds(const MtfNetwork *network, MtfCollectiveKind kind, double bytes) {
    MtfCollective collective = { .kind = kind, .bytes = bytes, .shift = 1 };
    return mtf_collective_best(network, &collective).seconds;
}

#define CASES 2000
#define ALL_MEET MTF_BROADCAST

TEST(no_price_is_below_the_bound) {
    guint64 seed = 1;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork network = random_network(&seed);
        network.switched = i % 4 == 0;
        double bytes = random_bytes(&seed);
        for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
            MtfCollective c = { .kind = (MtfCollectiveKind)kind, .bytes = bytes, .shift = 1 };
            double bound = mtf_collective_bound(&network, &c);
            g_autoptr(GArray) prices = mtf_collective_prices(&network, &c);
            assert_true(bound > 0 && prices->len > 0);
            for (guint p = 0; p < prices->len; p++)
                assert_true(g_array_index(prices, MtfCollectivePrice, p).seconds >= bound);
        }
    }
}

TEST(prices_rise_with_bytes) {
    guint64 seed = 2;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork network = random_network(&seed);
        network.switched = i % 4 == 0;
        network.message_seconds = i % 2 == 0 ? 1e-6 : 0;
        double bytes = random_bytes(&seed), more = bytes * (1 + (double)draw(&seed, 100) / 50);
        for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
            MtfCollectiveKind k = (MtfCollectiveKind)kind;
            double less = best_seconds(&network, k, bytes);
            assert_true(less <= best_seconds(&network, k, more) * (1 + 1e-12));
        }
    }
}

TEST(a_wrap_link_never_slows) {
    guint64 seed = 3;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork ring = random_network(&seed), line;
        int d = (int)draw(&seed, (guint64)ring.axes);
        ring.axis[d].wrap = true;
        line = ring;
        line.axis[d].wrap = false;
        double bytes = random_bytes(&seed);
        for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
            MtfCollectiveKind k = (MtfCollectiveKind)kind;
            double with = best_seconds(&ring, k, bytes), without = best_seconds(&line, k, bytes);
            if (k != MTF_P2P && with > without * (1 + 1e-12))
                fail_msg("case %d %s: %g s with the wrap link, %g s without", i,
                         mtf_collective_kind_name(k), with, without);
        }
    }
}

TEST(the_order_of_axes_does_not_matter) {
    guint64 seed = 4;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork network = random_network(&seed), other = network;
        int a = (int)draw(&seed, (guint64)network.axes),
            b = (int)draw(&seed, (guint64)network.axes);
        other.axis[a] = network.axis[b];
        other.axis[b] = network.axis[a];
        double bytes = random_bytes(&seed);
        for (int kind = 0; kind <= ALL_MEET; kind++) {
            MtfCollectiveKind k = (MtfCollectiveKind)kind;
            double one = best_seconds(&network, k, bytes), two = best_seconds(&other, k, bytes);
            if (fabs(one - two) > 1e-9 * one)
                fail_msg("case %d %s: %g s and %g s", i, mtf_collective_kind_name(k), one, two);
        }
    }
}

TEST(an_allreduce_is_a_reduce_scatter_and_an_allgather) {
    static const char *const names[] = {
        "ring", "line", "axis_by_axis", "shortest_bidir", "multiring_sync_opt_split", "snake_ring"
    };
    guint64 seed = 5;
    int compared = 0;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork network = random_network(&seed);
        network.reduce_seconds_per_byte = 1e-11;
        double bytes = 1e6 + random_bytes(&seed);
        MtfCollective ar = { .kind = MTF_ALLREDUCE, .bytes = bytes };
        MtfCollective rs = { .kind = MTF_REDUCE_SCATTER, .bytes = bytes };
        MtfCollective ag = { .kind = MTF_ALLGATHER, .bytes = bytes };
        const char *name = names[draw(&seed, G_N_ELEMENTS(names))];
        MtfCollectivePrice both, first, second;
        if (!mtf_collective_named(&network, &ar, name, &both, NULL) ||
            !mtf_collective_named(&network, &rs, name, &first, NULL) ||
            !mtf_collective_named(&network, &ag, name, &second, NULL))
            continue;
        assert_true(fabs(both.seconds - first.seconds - second.seconds) <= 1e-9 * both.seconds);
        compared++;
    }
    assert_true(compared > CASES / 4);
}

TEST(the_cheapest_leads_the_list) {
    guint64 seed = 6;
    for (int i = 0; i < CASES; i++) {
        MtfNetwork network = random_network(&seed);
        MtfCollective c = { .kind = (MtfCollectiveKind)draw(&seed, MTF_COLLECTIVE_KINDS),
                            .bytes = random_bytes(&seed),
                            .shift = 1 };
        g_autoptr(GArray) prices = mtf_collective_prices(&network, &c);
        MtfCollectivePrice best = mtf_collective_best(&network, &c);
        assert_true(g_array_index(prices, MtfCollectivePrice, 0).seconds == best.seconds);
    }
}

TEST(one_rank_costs_nothing) {
    MtfNetwork network = { .axes = 2,
                           .axis = { { .size = 1, .bandwidth = 1, .latency = 1 },
                                     { .size = 1, .bandwidth = 1, .latency = 1 } } };
    for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
        MtfCollective c = { .kind = (MtfCollectiveKind)kind, .bytes = 1e9, .shift = 1 };
        assert_true(mtf_collective_best(&network, &c).seconds == 0);
        assert_true(mtf_collective_bound(&network, &c) == 0);
    }
}

/* A place has no link along an axis of one place, wrapped or not. */
TEST(an_axis_of_one_place_changes_nothing) {
    const MtfNetworkAxis ring = { .size = 8, .wrap = true, .bandwidth = 1e9, .latency = 1e-6 };
    const MtfNetworkAxis line = { .size = 4, .link = 2, .bandwidth = 1e9, .latency = 1e-6 };
    MtfNetwork plain = { .axes = 2, .axis = { ring, line } };
    MtfNetwork padded = { .axes = 3, .axis = { ring, ring, line } };
    padded.axis[1] = (MtfNetworkAxis){ .size = 1, .wrap = true, .link = 1, .bandwidth = 1e9 };
    for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
        MtfCollective c = { .kind = (MtfCollectiveKind)kind, .bytes = 1e6, .shift = 3 };
        assert_true(mtf_collective_best(&padded, &c).seconds ==
                    mtf_collective_best(&plain, &c).seconds);
    }
    plain.axes = 1;
    padded.axes = 2;
    MtfCollective shift = { .kind = MTF_PERMUTE, .bytes = 1e6, .shift = 3 };
    assert_true(mtf_collective_best(&padded, &shift).seconds ==
                mtf_collective_best(&plain, &shift).seconds);
}

TEST(unknown_and_inapplicable_algorithms_are_bad_input) {
    MtfNetwork network = { .axes = 1, .axis = { { .size = 4, .bandwidth = 1, .latency = 1 } } };
    MtfCollective c = { .kind = MTF_ALLGATHER, .bytes = 1 };
    MtfCollectivePrice price;
    GError *error = NULL;
    assert_false(mtf_collective_named(&network, &c, "teleport", &price, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "shortest_bidir"));
    g_clear_error(&error);
    assert_false(mtf_collective_named(&network, &c, "ring", &price, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    g_clear_error(&error);
}

/* 4x4 in two directions, 1 GiB: two Hamiltonian rings reach the bandwidth bound, as the bucket
 * does; on 8x4 only the rings do. */
TEST(hamiltonian_rings_reach_the_bound_on_unequal_axes) {
    MtfNetwork network = { .axes = 2,
                           .axis = {
                               { .size = 8, .wrap = true, .bandwidth = 4.5e10 },
                               { .size = 4, .wrap = true, .link = 1, .bandwidth = 4.5e10 } } };
    MtfCollective c = { .kind = MTF_ALLREDUCE, .bytes = 0x1p30 };
    MtfCollectivePrice best = mtf_collective_best(&network, &c);
    assert_string_equal(best.algorithm, "hamiltonian_rings");
    assert_true(fabs(best.seconds / mtf_collective_bound(&network, &c) - 1) < 1e-12);
}
