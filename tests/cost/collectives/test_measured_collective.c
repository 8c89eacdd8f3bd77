// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/collectives/measured_collective.h"

#include <math.h>

#define BYTES 1e6

static MtfNetwork switch_of(int64_t ranks) {
    MtfNetwork network = { .switched = true, .axes = 1 };
    network.axis[0] = (MtfNetworkAxis){ .size = ranks, .bandwidth = 1e9, .latency = 1e-6 };
    return network;
}

static double formula(int64_t ranks, double bytes) {
    MtfNetwork network = switch_of(ranks);
    MtfCollective collective = { .kind = MTF_ALLREDUCE, .bytes = bytes };
    return mtf_collective_best(&network, &collective).seconds;
}

static void measure(MtfMachine *machine, const char *name, int64_t ranks, double ratio) {
    double x[] = { BYTES / 2, BYTES, 2 * BYTES }, y[3];
    for (int i = 0; i < 3; i++)
        y[i] = ratio * formula(ranks, x[i]);
    mtf_machine_add_curve(machine, name, 3, x, y);
}

/* Groups of 2 take 3 times what the formula says, groups of 8 take 12 times. */
static MtfMachine *measured_machine(void) {
    MtfMachine *machine = mtf_machine_new();
    measure(machine, "allreduce/2", 2, 3);
    measure(machine, "allreduce/8", 8, 12);
    return machine;
}

static double asked(const MtfMachine *machine, int64_t ranks) {
    MtfNetwork network = switch_of(ranks);
    double seconds = 0;
    assert_true(mtf_measured_collective(machine, &network, MTF_ALLREDUCE, BYTES, &seconds));
    return seconds / formula(ranks, BYTES);
}

/* ln 4 lies half way between ln 2 and ln 8: the root of 3 x 12. */
TEST(sizes_between_take_what_lies_between) {
    g_autoptr(MtfMachine) machine = measured_machine();
    assert_true(fabs(asked(machine, 2) - 3) < 1e-9);
    assert_true(fabs(asked(machine, 4) - 6) < 1e-9);
    assert_true(fabs(asked(machine, 8) - 12) < 1e-9);
    assert_true(asked(machine, 3) > 3 && asked(machine, 3) < 6);
}

TEST(sizes_beyond_are_as_far_off_as_the_last) {
    g_autoptr(MtfMachine) machine = measured_machine();
    assert_true(fabs(asked(machine, 16) - 12) < 1e-9);
    assert_true(fabs(asked(machine, 1000) - 12) < 1e-9);
}

TEST(what_was_not_measured_is_told) {
    g_autoptr(MtfMachine) machine = measured_machine();
    MtfNetwork two = switch_of(2), four = switch_of(4), many = switch_of(64);
    g_autofree char *none = mtf_unmeasured_collective(machine, &two, MTF_ALLREDUCE);
    g_autofree char *between = mtf_unmeasured_collective(machine, &four, MTF_ALLREDUCE);
    g_autofree char *beyond = mtf_unmeasured_collective(machine, &many, MTF_ALLREDUCE);
    assert_null(none);
    assert_string_equal(between,
                        "allreduce over 4 ranks, by formula as those over 2 and 8 are to theirs");
    assert_string_equal(beyond,
                        "allreduce over 64 ranks, by formula as those over 8 are to theirs");
}

TEST(other_kinds_and_networks_keep_their_formulas) {
    g_autoptr(MtfMachine) machine = measured_machine();
    MtfNetwork four = switch_of(4), ring = { .axes = 1, .axis = { four.axis[0] } };
    double seconds;
    assert_false(mtf_measured_collective(machine, &four, MTF_ALLGATHER, BYTES, &seconds));
    assert_false(mtf_measured_collective(machine, &ring, MTF_ALLREDUCE, BYTES, &seconds));
    assert_null(mtf_unmeasured_collective(machine, &ring, MTF_ALLREDUCE));
    assert_null(mtf_unmeasured_collective(machine, &four, MTF_ALLGATHER));
}
