// SPDX-License-Identifier: GPL-3.0-or-later
/* Paths on a mesh with an axis taken apart into neighbours, against paths on the mesh itself. */
#include "tests/support/cmocka.h"

#include "layouts/placement/reshard.h"
#include "tests/support/cases/reshard_program.h"

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

static MtfReshardPath path_of(const MtfGraph *graph, const MtfMesh *mesh, const MtfPlacement *from,
                              const MtfPlacement *to) {
    MtfReshardPath path;
    mtf_reshard_path(graph, mesh, &mtf_graph_tensor(graph, 0)->shape, from, to, &path);
    return path;
}

/* Each axis of two taken apart: a:4;b:6 -> a:2;b:2;c:2;d:3. */
static MtfPlacement taken_apart(const MtfPlacement *placement) {
    MtfPlacement apart = mtf_placement_replicated();
    for (int a = 0; a < 4; a++)
        apart.axis[a] = placement->axis[a / 2];
    return apart;
}

static unsigned axes_apart(unsigned axes) {
    return ((axes & 1) != 0 ? 3U : 0) | ((axes & 2) != 0 ? 12U : 0);
}

static void check_pair(const MtfGraph *graph, const MtfPlacement *from, const MtfPlacement *to) {
    MtfMesh two = mesh_of("a:4;b:6"), four = mesh_of("a:2;b:2;c:2;d:3");
    MtfPlacement from_apart = taken_apart(from), to_apart = taken_apart(to);
    MtfReshardPath whole = path_of(graph, &two, from, to);
    MtfReshardPath apart = path_of(graph, &four, &from_apart, &to_apart);
    assert_int_equal(apart.n_ops, whole.n_ops);
    assert_true(apart.cost == whole.cost);
    for (int i = 0; i < whole.n_ops; i++) {
        assert_int_equal(apart.ops[i].kind, whole.ops[i].kind);
        assert_int_equal(apart.ops[i].axes, axes_apart(whole.ops[i].axes));
    }
}

TEST(neighbours_that_lie_alike_reshard_like_one_axis) {
    MtfMesh two = mesh_of("a:4;b:6");
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(3, (int64_t[]){ 48, 24, 13 }, MTF_F32);
    g_autoptr(GArray) placements = mtf_reshard_placements(&two, 3);
    for (guint i = 0; i < placements->len; i++)
        for (guint j = 0; j < placements->len; j++)
            check_pair(graph, &g_array_index(placements, MtfPlacement, i),
                       &g_array_index(placements, MtfPlacement, j));
}

/* Of 4096 elements, 3/4 enter the links, once; axis by axis that would be 1/2 and 1/4 in two calls. */
TEST(partial_sums_of_two_axes_are_scattered_in_one_call) {
    MtfMesh mesh = mesh_of("a:2;b:2");
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(1, (int64_t[]){ 4096 }, MTF_F32);
    MtfPlacement from = mtf_placement_replicated(), to = from;
    from.axis[0] = from.axis[1] = MTF_PARTIAL_SUM;
    to.axis[0] = to.axis[1] = 0;
    MtfReshardPath path = path_of(graph, &mesh, &from, &to);
    assert_int_equal(path.n_ops, 1);
    assert_int_equal(path.ops[0].kind, MTF_RESHARD_REDUCE_SCATTER);
    assert_int_equal(path.ops[0].axes, 3);
    assert_true(path.cost == 1024 + 3072);
}
