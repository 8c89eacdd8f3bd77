// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/merged_answer.h"
#include "analyzer/layout_search/merged_axes.h"

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

/* Three borders among five places: 5! / (2! 3!) = 10. */
TEST(neighbours_are_merged_in_every_way) {
    MtfMesh mesh = mesh_of("a:2;b:3;c:4;d:5;e:6;f:7");
    g_autoptr(GArray) merges = mtf_axis_merges(&mesh, 3);
    assert_int_equal(merges->len, 10);
    for (guint i = 0; i < merges->len; i++) {
        const MtfAxisMerge *merge = &g_array_index(merges, MtfAxisMerge, i);
        int sizes[3] = { 1, 1, 1 };
        assert_int_equal(merge->mesh.n_axes, 3);
        assert_int_equal(mtf_mesh_size(&merge->mesh), mtf_mesh_size(&mesh));
        for (int a = 0; a < 6; a++) {
            sizes[merge->axis[a]] *= mesh.axes[a].size;
            assert_true(a == 0 || merge->axis[a] >= merge->axis[a - 1]);
        }
        for (int m = 0; m < 3; m++)
            assert_int_equal(merge->mesh.axes[m].size, sizes[m]);
    }
}

/* Every processor holds the same part of a tensor, whichever mesh says so. */
TEST(an_expanded_layout_places_the_same_parts) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("one");
    int rows = mtf_graph_add_dimension(graph, "rows", 25, NULL);
    int columns = mtf_graph_add_dimension(graph, "columns", 18, NULL);
    MtfShape shape = { .rank = 2, .dims = { rows, columns } };
    int tensor = mtf_graph_add_input(graph, "x", &shape, MTF_F32, (MtfFeed){ 0 }, NULL);
    MtfMesh mesh = mesh_of("a:2;b:3;c:2;d:2");
    g_autoptr(GArray) merges = mtf_axis_merges(&mesh, 3);
    for (guint i = 0; i < merges->len; i++) {
        const MtfAxisMerge *merge = &g_array_index(merges, MtfAxisMerge, i);
        g_autoptr(MtfLayout) merged = mtf_layout_new(graph, &merge->mesh);
        merged->tensors[tensor].axis[0] = (int16_t)rows;
        merged->tensors[tensor].axis[1] = (int16_t)columns;
        merged->tensors[tensor].axis[2] = (int16_t)rows;
        g_autoptr(MtfLayout) layout = mtf_axis_merge_expand(graph, &mesh, merge, merged);
        assert_true(mtf_layout_check(graph, layout, NULL));
        for (int rank = 0; rank < 24; rank++)
            for (int d = 0; d < 2; d++) {
                int dim = shape.dims[d];
                int64_t size = mtf_graph_size(graph, dim);
                MtfRange wanted =
                    mtf_placement_range(&merge->mesh, &merged->tensors[tensor], dim, size, rank);
                MtfRange found =
                    mtf_placement_range(&mesh, &layout->tensors[tensor], dim, size, rank);
                assert_int_equal(found.begin, wanted.begin);
                assert_int_equal(found.end, wanted.end);
            }
    }
}

TEST(few_axes_stay_as_they_are) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("none");
    MtfMesh three = mesh_of("a:2;b:2;c:2"), six = mesh_of("a:2;b:2;c:2;d:2;e:2;f:2");
    assert_false(mtf_axes_should_merge(graph, &three));
    assert_false(mtf_axes_should_merge(graph, &six));
}

static void lies_the_same(const MtfMesh *mesh, const MtfAxisMerge *merge,
                          const MtfMapping *merged) {
    MtfMapping mapping;
    assert_true(mtf_merged_mapping_expand(mesh, merge, merged, &mapping));
    for (int rank = 0; rank < mtf_mesh_size(mesh); rank++)
        assert_int_equal(mtf_mapping_place(&mapping, rank), mtf_mapping_place(merged, rank));
}

/* On a torus of 4x6x4, in order and with the axes of the merged mesh dealt out the other way round. */
TEST(an_expanded_mapping_lays_each_processor_in_its_place) {
    MtfMesh mesh = mesh_of("a:2;b:2;c:2;d:3;e:2;f:2");
    const int64_t torus[] = { 4, 6, 4 };
    g_autoptr(GArray) merges = mtf_axis_merges(&mesh, 3);
    for (guint i = 0; i < merges->len; i++) {
        const MtfAxisMerge *merge = &g_array_index(merges, MtfAxisMerge, i);
        int64_t sizes[3];
        for (int m = 0; m < 3; m++)
            sizes[m] = merge->mesh.axes[m].size;
        MtfMapping in_order = mtf_mapping_lexicographic(3, sizes, 3, torus);
        lies_the_same(&mesh, merge, &in_order);
    }
    MtfMapping turned = { .mesh_axes = 3,
                          .physical_axes = 3,
                          .mesh_sizes = { 4, 6, 4 },
                          .physical_sizes = { 4, 6, 4 },
                          .pieces = 3,
                          .piece = { { 0, 2, 4, 1 }, { 1, 1, 6, 1 }, { 2, 0, 4, 1 } } };
    for (guint i = 0; i < merges->len; i++) {
        const MtfAxisMerge *merge = &g_array_index(merges, MtfAxisMerge, i);
        if (merge->mesh.axes[0].size == 4 && merge->mesh.axes[1].size == 6)
            lies_the_same(&mesh, merge, &turned);
    }
}

/* A piece of three places cannot be two axes of two, nor can a walk that turns within them. */
TEST(a_mapping_that_cannot_be_divided_is_refused) {
    MtfMesh mesh = mesh_of("a:2;b:3;c:2;d:5");
    g_autoptr(GArray) merges = mtf_axis_merges(&mesh, 3);
    MtfAxisMerge merge = g_array_index(merges, MtfAxisMerge, 0);
    for (guint i = 0; i < merges->len; i++)
        if (g_array_index(merges, MtfAxisMerge, i).mesh.axes[0].size == 6)
            merge = g_array_index(merges, MtfAxisMerge, i);
    MtfMapping merged = { .mesh_axes = 3,
                          .physical_axes = 3,
                          .mesh_sizes = { 6, 2, 5 },
                          .physical_sizes = { 3, 4, 5 },
                          .pieces = 4,
                          .piece = {
                              { 0, 0, 3, 1 }, { 0, 1, 2, 2 }, { 1, 1, 2, 1 }, { 2, 2, 5, 1 } } };
    MtfMapping mapping;
    assert_true(mtf_mapping_is_whole(&merged));
    assert_false(mtf_merged_mapping_expand(&mesh, &merge, &merged, &mapping));
    merged.piece[0] = (MtfMappingPiece){ 0, 1, 2, 2 };
    merged.piece[1] = (MtfMappingPiece){ 0, 0, 3, 1 };
    lies_the_same(&mesh, &merge, &merged);
    merged.snake = 1;
    assert_false(mtf_merged_mapping_expand(&mesh, &merge, &merged, &mapping));
}

TEST(of_several_meshes_those_of_many_axes_are_left_out) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("one");
    MtfShape shape = { .rank = 5 };
    for (int i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("d%d", i);
        shape.dims[i] = mtf_graph_add_dimension(graph, name, 8, NULL);
    }
    mtf_graph_add_input(graph, "x", &shape, MTF_F32, (MtfFeed){ 0 }, NULL);
    g_autoptr(MtfMachine) machine = mtf_machine_load("cpu-host", NULL);
    MtfMesh six = mesh_of("a:2;b:2;c:2;d:2;e:2;f:2"), three = mesh_of("x:4;y:4;z:4");
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(meshes, three);
    assert_null(mtf_merged_meshes_new(graph, meshes, machine));
    g_array_append_val(meshes, six);
    g_autoptr(MtfMergedMeshes) merged = mtf_merged_meshes_new(graph, meshes, machine);
    assert_int_equal(merged->searched->len, 1);
    assert_int_equal(merged->merges->len, 0);
    assert_true(mtf_mesh_equal(&g_array_index(merged->searched, MtfMesh, 0), &three));
    g_array_remove_index(meshes, 0);
    g_autoptr(MtfMergedMeshes) alone = mtf_merged_meshes_new(graph, meshes, machine);
    assert_int_equal(alone->searched->len, 10);
}
