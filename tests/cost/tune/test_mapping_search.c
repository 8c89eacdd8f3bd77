// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/tune/mapping_search.h"

#include <string.h>

/* A torus of equal links, all axes rings but those of two places. */
static MtfMachine *torus_machine(const char *sizes) {
    g_auto(GStrv) words = g_strsplit(sizes, "x", -1);
    GString *axes = g_string_new(NULL);
    for (char **word = words; *word != NULL; word++)
        g_string_append_printf(
            axes, "%s{\"size\":%s,\"wrap\":%s,\"bandwidth\":4.5e10,\"latency\":1e-6}",
            axes->len > 0 ? "," : "", *word, strcmp(*word, "2") == 0 ? "false" : "true");
    g_autofree char *text =
        g_strdup_printf("{\"meshtf_machine\":1,\"name\":\"t\",\"torus\":[%s],\"device\":{\"flops\":"
                        "{\"f32\":1e12},\"memory_bytes\":1,\"memory_bandwidth\":1e12}}",
                        axes->str);
    g_string_free(axes, TRUE);
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse("t", text, strlen(text), NULL);
    MtfJson root = mtf_json_root(document);
    return mtf_machine_from_json(&root, NULL);
}

static MtfMappingSearch search(const char *torus, int axes, const int64_t *mesh,
                               const MtfCollectiveTraffic *traffic, int count, MtfMeshMap *map) {
    g_autoptr(MtfMachine) machine = torus_machine(torus);
    assert_non_null(machine);
    assert_true(mtf_mesh_map_init(map, machine, axes, mesh, NULL));
    MtfMappingSearch found = mtf_mapping_search(machine, map, traffic, count, INT64_MAX);
    assert_true(mtf_mapping_is_whole(&map->mapping));
    assert_true(found.exhaustive);
    assert_true(found.seconds <= found.lexicographic);
    double again = mtf_traffic_seconds(machine, map, traffic, count);
    assert_true(again <= found.seconds * (1 + 1e-12) && again >= found.seconds * (1 - 1e-12));
    return found;
}

/* The shapes on which Mesh-TensorFlow's automatic mapping is worse than the identity. */
TEST(on_16x16x2_the_search_is_no_worse_than_the_identity) {
    static const int64_t meshes[][3] = { { 16, 16, 2 }, { 8, 64, 1 }, { 4, 128, 1 } };
    for (int i = 0; i < 3; i++)
        for (unsigned mask = 1; mask < 8; mask++) {
            MtfCollectiveTraffic traffic[] = { { MTF_ALLREDUCE, mask, 1e8, 1 },
                                               { MTF_ALLTOALL, mask ^ 3, 1e6, 3 } };
            MtfMeshMap map;
            search("16x16x2", 3, meshes[i], traffic, 2, &map);
        }
}

/* 4x128 in order cuts the first ring in 4 strided places and 4 neighbours. With all the traffic on
 * the 4, those should be neighbours on one ring or two. */
TEST(traffic_on_a_small_axis_moves_it_off_the_strided_places) {
    MtfCollectiveTraffic traffic = { MTF_ALLREDUCE, 1, 1e8, 1 };
    MtfMeshMap map;
    MtfMappingSearch found = search("16x16x2", 2, (int64_t[]){ 4, 128 }, &traffic, 1, &map);
    assert_true(found.seconds < 0.9 * found.lexicographic);
    for (int i = 0; i < map.mapping.pieces; i++)
        if (map.mapping.piece[i].mesh_axis == 0)
            assert_int_equal(map.mapping.piece[i].stride, 1);
}

/* 4x2 dealt to a mesh 2x4: the 4 is AB, BA or B, the pair the rest: AB B, BA B, B A. */
TEST(every_deal_is_tried_once) {
    MtfCollectiveTraffic traffic = { MTF_ALLREDUCE, 1, 1e6, 1 };
    MtfMeshMap map;
    assert_int_equal(search("4x2", 2, (int64_t[]){ 2, 4 }, &traffic, 1, &map).candidates, 3);
    /* 4x4 onto 4x4, each axis one of AA, AB, BA, BB (pieces of 2): AA BB, AB AB, AB BA, BA BA; the
     * other three are these with the physical axes exchanged. */
    assert_int_equal(search("4x4", 2, (int64_t[]){ 4, 4 }, &traffic, 1, &map).candidates, 4);
}

/* A mesh axis of 16 over 4x4 shifted by one: in row-major order a carry crosses the grid; along a
 * snake every neighbour is one hop away: alpha + bytes / B. */
TEST(a_snake_gives_neighbours_one_hop) {
    MtfCollectiveTraffic traffic = { MTF_PERMUTE, 1, 4.5e4, 1 };
    MtfMeshMap map;
    MtfMappingSearch found = search("4x4", 1, (int64_t[]){ 16 }, &traffic, 1, &map);
    assert_true(found.seconds < found.lexicographic);
    assert_true(found.seconds > 1.999e-6 && found.seconds < 2.001e-6);
}

/* Random tori and traffic, against trying every relabelled deal by brute force is covered by
 * every_deal_is_tried_once; here: never worse, always whole, for sizes that do not divide too. */
TEST(the_search_is_never_worse_on_ragged_sizes) {
    static const struct {
        const char *torus;
        int64_t mesh[3];
    } cases[] = { { "6x10", { 4, 15, 1 } }, { "12x2", { 3, 8, 1 } },  { "3x5x4", { 4, 15, 1 } },
                  { "8x8", { 2, 16, 2 } },  { "4x4x4", { 8, 8, 1 } }, { "9x2", { 6, 3, 1 } },
                  { "7x3", { 21, 1, 1 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int kind = 0; kind < MTF_COLLECTIVE_KINDS; kind++) {
            MtfCollectiveTraffic traffic[] = { { (MtfCollectiveKind)kind, 1, 1e6, 1 },
                                               { MTF_ALLGATHER, 2, 1e5, 2 } };
            MtfMeshMap map;
            search(cases[i].torus, 3, cases[i].mesh, traffic, 2, &map);
        }
}

TEST(the_limit_ends_the_search) {
    g_autoptr(MtfMachine) machine = torus_machine("16x16x2");
    MtfMeshMap map;
    assert_true(mtf_mesh_map_init(&map, machine, 2, (int64_t[]){ 8, 64 }, NULL));
    MtfCollectiveTraffic traffic = { MTF_ALLREDUCE, 1, 1e6, 1 };
    MtfMappingSearch found = mtf_mapping_search(machine, &map, &traffic, 1, 2);
    assert_false(found.exhaustive);
    assert_true(found.seconds <= found.lexicographic);
}
