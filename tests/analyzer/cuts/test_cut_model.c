// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/cuts/cut_model.h"

#include <math.h>

/* Bytes between two units that take a second each. */
#define CROSSING 3e9

/* What two stages of so many devices take more than their units: the first receives gradients, the second as much of
 * activations, and each waits for its own. */
static double carried(const MtfMachine *machine, int64_t devices) {
    MtfUnitPrice price = { .known = true, .seconds = 1 };
    MtfUnitWay way = { .devices = devices, .name = (char *)"by hand", .price = &price };
    MtfGraphUnits units = { .units = 2,
                            .begin = (int[]){ 0, 1, 2 },
                            .kind = (int[]){ 0, 0 },
                            .kinds = 1,
                            .crossing = (double[]){ 0, CROSSING, 0 } };
    g_autoptr(GPtrArray) ways = g_ptr_array_new();
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_ptr_array_add(ways, &way);
    g_array_append_vals(places, units.begin, 3);
    g_array_append_val(sizes, devices);
    MtfCutModel model = { .units = &units,
                          .places = places,
                          .sizes = sizes,
                          .ways = ways,
                          .recomputations = 1,
                          .variant = { .microbatches = 1 },
                          .machine = machine,
                          .devices = 2 * devices,
                          .memory = 1000000000000,
                          .stages = 2,
                          .chunks = 1 };
    g_autoptr(MtfCutPlan) plan = mtf_cut_model_solve(&model);
    assert_non_null(plan);
    assert_int_equal(plan->stages->len, 2);
    double first = g_array_index(plan->stages, MtfCutStage, 0).seconds;
    double second = g_array_index(plan->stages, MtfCutStage, 1).seconds;
    assert_true(fabs(second - first) < 1e-9 * first);
    return first + second - 2;
}

static void assert_carried(const MtfMachine *machine, int64_t devices, const MtfNetworkAxis *level,
                           double share) {
    double wanted = 2 * (level->latency + share * CROSSING / level->bandwidth);
    assert_true(fabs(carried(machine, devices) - wanted) < 1e-9 * wanted);
}

/* Nodes of eight, in halves of four, with one slow link a node: through it goes all that a node's stage receives,
 * half of what one of two nodes does. Inside a node the
 * slow link has no part in it. */
TEST(devices_of_a_node_share_its_link) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("p3.16xlarge", NULL);
    assert_non_null(machine);
    const MtfNetworkAxis *cluster = &machine->network.axis[0], *node = cluster + 1;
    assert_carried(machine, 8, cluster, 1);
    assert_carried(machine, 16, cluster, 0.5);
    assert_carried(machine, 4, node, 1);
}

/* Every device has links of its own. */
TEST(devices_of_a_torus_share_none) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v4", NULL);
    assert_non_null(machine);
    assert_carried(machine, 8, &machine->network.axis[0], 1.0 / 8);
}
