// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/merged_axes.h"
#include "layouts/base/error.h"

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

/* Three borders among five places: 5! / (2! 3!) = 10. */
static void neighbours_are_merged_in_every_way(void **state) {
    (void)state;
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
static void an_expanded_layout_places_the_same_parts(void **state) {
    (void)state;
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

static void few_axes_stay_as_they_are(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = mtf_graph_new("none");
    MtfMesh three = mesh_of("a:2;b:2;c:2"), six = mesh_of("a:2;b:2;c:2;d:2;e:2;f:2");
    assert_false(mtf_axes_should_merge(graph, &three));
    assert_false(mtf_axes_should_merge(graph, &six));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_merged_in_every_way),
        cmocka_unit_test(an_expanded_layout_places_the_same_parts),
        cmocka_unit_test(few_axes_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
