// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/facts/link_loads.h"

#include <math.h>

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* A mesh laid on a slice of equal links, one collective of one step, and the loads of that. */
static MtfLinkLoads *loads_of(const MtfMeshMap *map, const MtfTrafficRow *row) {
    MtfSchedule schedule = { .nanoseconds = 1000000000 };
    MtfStepFacts facts = { .schedule = &schedule };
    g_autoptr(GArray) traffic = g_array_new(FALSE, FALSE, sizeof *row);
    facts.pricer.map = *map;
    facts.traffic = g_array_append_vals(traffic, row, 1);
    return mtf_link_loads_new(&facts);
}

static MtfMeshMap mesh_on(int mesh_axes, const int64_t *mesh, int axes, const int64_t *sizes,
                          bool wrap) {
    MtfMeshMap map = { .slice = { .axes = axes } };
    for (int p = 0; p < axes; p++)
        map.slice.axis[p] = (MtfNetworkAxis){
            .size = sizes[p], .wrap = wrap, .link = p, .bandwidth = 1e9, .latency = 1e-6
        };
    map.mapping = mtf_mapping_lexicographic(mesh_axes, mesh, axes, sizes);
    return map;
}

/* What each of 16 ranks puts on links, 100 bytes, is half for each way round. */
TEST(a_ring_is_loaded_evenly) {
    MtfMeshMap map = mesh_on(1, (int64_t[]){ 16 }, 1, (int64_t[]){ 16 }, true);
    g_autoptr(MtfLinkLoads) loads = loads_of(
        &map, &(MtfTrafficRow){ .kind = MTF_RESHARD_ALLREDUCE, .axes = 1, .link_bytes = 100 });
    for (int i = 0; i < 16; i++)
        assert_close(loads->axis[0].bytes[i], 50);
    assert_close(loads->axis[0].busiest, 50);
    assert_close(mtf_link_utilisation(loads, 0, 50), 50e-9);
}

/* Two lines of 8: 8 ranks put 8 * 70 bytes on 7 links in two directions, 40 each; nothing crosses
 * from one to the other. */
TEST(a_line_leaves_the_links_between_lines_idle) {
    MtfMeshMap map = mesh_on(2, (int64_t[]){ 2, 8 }, 1, (int64_t[]){ 16 }, true);
    g_autoptr(MtfLinkLoads) loads = loads_of(
        &map, &(MtfTrafficRow){ .kind = MTF_RESHARD_ALLGATHER, .axes = 2, .link_bytes = 70 });
    for (int i = 0; i < 16; i++)
        assert_close(loads->axis[0].bytes[i], i % 8 == 7 ? 0 : 40);
}

/* Rows are places 0 and 8, 1 and 9, …: 8 rings of two hops, each of which passes 8 links. A hop
 * carries 30 / 2 bytes one way, and every link is in all 8 rings. */
TEST(groups_that_interleave_share_links) {
    MtfMeshMap map = mesh_on(2, (int64_t[]){ 2, 8 }, 1, (int64_t[]){ 16 }, true);
    g_autoptr(MtfLinkLoads) loads = loads_of(
        &map, &(MtfTrafficRow){ .kind = MTF_RESHARD_ALLGATHER, .axes = 1, .link_bytes = 30 });
    for (int i = 0; i < 16; i++)
        assert_close(loads->axis[0].bytes[i], 8 * 15);
}

/* Without wrap they are lines of one hop: link 0 lies in that of place 0 alone, link 7 in all 8. */
TEST(lines_that_interleave_pile_up_in_the_middle) {
    MtfMeshMap map = mesh_on(2, (int64_t[]){ 2, 8 }, 1, (int64_t[]){ 16 }, false);
    g_autoptr(MtfLinkLoads) loads = loads_of(
        &map, &(MtfTrafficRow){ .kind = MTF_RESHARD_ALLGATHER, .axes = 1, .link_bytes = 1 });
    for (int i = 0; i < 16; i++)
        assert_close(loads->axis[0].bytes[i], i < 8 ? i + 1 : 15 - i);
}

/* Both mesh axes together are the whole ring, though neither is. */
TEST(pieces_that_continue_one_another_are_one_ring) {
    MtfMeshMap map = mesh_on(2, (int64_t[]){ 2, 8 }, 1, (int64_t[]){ 16 }, true);
    g_autoptr(MtfLinkLoads) loads = loads_of(
        &map, &(MtfTrafficRow){ .kind = MTF_RESHARD_ALLREDUCE, .axes = 3, .link_bytes = 100 });
    for (int i = 0; i < 16; i++)
        assert_close(loads->axis[0].bytes[i], 50);
}

/* Where members are neighbours, what all ranks put on links is what all links carry. */
TEST(nothing_is_lost_and_nothing_is_added) {
    static const int64_t tori[][3] = { { 4, 4, 4 }, { 8, 2, 2 }, { 3, 5, 2 } };
    for (gsize t = 0; t < G_N_ELEMENTS(tori); t++)
        for (int wrap = 0; wrap < 2; wrap++)
            for (unsigned axes = 1; axes < 8; axes++) {
                MtfMeshMap map = mesh_on(3, tori[t], 3, tori[t], wrap != 0);
                g_autoptr(MtfLinkLoads) loads = loads_of(
                    &map, &(MtfTrafficRow){
                              .kind = MTF_RESHARD_ALLTOALL, .axes = axes, .link_bytes = 9 });
                double sum = 0;
                int64_t ranks = tori[t][0] * tori[t][1] * tori[t][2];
                for (int p = 0; p < 3; p++)
                    for (int64_t i = 0; i < tori[t][p]; i++)
                        sum += 2 * loads->axis[p].bytes[i] * (double)(ranks / tori[t][p]);
                assert_close(sum, 9 * (double)ranks);
            }
}

/* Two nodes of four devices, rows over nodes, cols within. Rows: of an allreduce of 100 bytes each
 * device sends 2 * 100 / 2, a node that of its four. Cols: 2 * 100 * 3 / 4 a device, none leaves
 * the node. All-to-all over both: 7 / 8 of 100 a device, and 4 * 100 / 2 a node. */
TEST(ports_of_switches_carry_what_leaves_their_child) {
    static const struct {
        MtfReshardKind kind;
        unsigned axes;
        double node, device;
    } cases[] = {
        { MTF_RESHARD_ALLREDUCE, 1, 400, 100 },
        { MTF_RESHARD_ALLREDUCE, 2, 0, 150 },
        { MTF_RESHARD_ALLGATHER, 1, 200, 50 },
        { MTF_RESHARD_ALLTOALL, 3, 200, 87.5 },
    };
    MtfMeshMap map = mesh_on(2, (int64_t[]){ 2, 4 }, 2, (int64_t[]){ 2, 4 }, false);
    map.slice.switched = true;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(MtfLinkLoads) loads = loads_of(
            &map, &(MtfTrafficRow){ .kind = cases[i].kind, .axes = cases[i].axes, .bytes = 100 });
        assert_close(loads->axis[0].bytes[0], cases[i].node);
        assert_close(loads->axis[1].bytes[0], cases[i].device);
    }
}
