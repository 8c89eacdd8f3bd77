// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/collectives/collective.h"

#include <math.h>

static bool near(double value, double expected) {
    return fabs(value - expected) <= 1e-9 * fabs(expected);
}

static MtfMeshMap lay(const MtfMachine *machine, int axes, const int64_t *sizes) {
    MtfMeshMap map;
    assert_true(mtf_mesh_map_init(&map, machine, axes, sizes, NULL));
    assert_true(mtf_mapping_is_whole(&map.mapping));
    return map;
}

static void check_axis(const MtfNetwork *group, int d, int64_t size, bool wrap, double share) {
    assert_true(d < group->axes);
    assert_int_equal(group->axis[d].size, size);
    assert_int_equal(group->axis[d].wrap, wrap);
    assert_true(near(group->axis[d].bandwidth / (3.1e10 * 0.95), share));
}

/* Rank 64 r + c lies at chip x = 2 r + c / 32: r is every second place of the first ring, c two
 * neighbours of it, the whole second ring and the pair. */
TEST(mesh_8x64_takes_parts_of_a_ring_of_16) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    MtfMeshMap map = lay(machine, 2, (int64_t[]){ 8, 64 });
    MtfNetwork rows = mtf_mesh_map_group(&map, 1), cols = mtf_mesh_map_group(&map, 2);
    assert_int_equal(rows.axes, 1);
    check_axis(&rows, 0, 8, true, 0.5);
    assert_true(near(rows.axis[0].latency, 2e-6));
    assert_int_equal(cols.axes, 3);
    check_axis(&cols, 0, 2, false, 1);
    check_axis(&cols, 1, 16, true, 1);
    MtfNetwork both = mtf_mesh_map_group(&map, 3);
    assert_int_equal(both.axes, 3);
    check_axis(&both, 0, 16, true, 1);
}

/* Two nodes of 8: mesh 8x2 puts the pairs inside a node and the 8 across: four members in each
 * node, which share the node's uplink with the other group. */
TEST(groups_share_the_uplink_of_a_node) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("a100", NULL);
    MtfMeshMap map = lay(machine, 2, (int64_t[]){ 8, 2 });
    MtfNetwork rows = mtf_mesh_map_group(&map, 1), cols = mtf_mesh_map_group(&map, 2);
    assert_int_equal(cols.axes, 1);
    assert_int_equal(cols.axis[0].size, 2);
    assert_int_equal(rows.axes, 2);
    assert_int_equal(rows.axis[0].size, 2);
    assert_true(near(rows.axis[0].bandwidth, 2e11 * 0.78 / 2));
    assert_int_equal(rows.axis[1].size, 4);
    assert_true(near(rows.axis[1].bandwidth, 3e11 * 0.78));
}

TEST(one_rank_costs_nothing) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    MtfMeshMap map = lay(machine, 2, (int64_t[]){ 1, 32 });
    for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
        MtfCollectiveKind k = (MtfCollectiveKind)kind;
        assert_true(mtf_collective_seconds(machine, &map, k, 1, 1e6) == 0);
        assert_true(mtf_collective_seconds(machine, &map, k, 2, 1e6) > 0);
        assert_true(mtf_collective_link_bytes(&map, k, 1, 1e6) == 0);
    }
}
