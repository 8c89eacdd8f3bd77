// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/placement/placement.h"
#include "tests/support/cases/parse_graph.h"

/* Dimensions a=10 (0), b=3 (1), c=1 (2); input x[a, b, c]. */
static MtfGraph *new_graph(void) {
    return mtf_test_graph("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 10, 'b': 3, 'c': "
                          "1}, 'inputs': [{'name': 'x', 'dims': ['a', 'b', 'c'], 'feed': "
                          "'features'}], 'operations': []}");
}

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

static MtfPlacement place(int first, int second) {
    MtfPlacement placement = mtf_placement_replicated();
    placement.axis[0] = (int16_t)first;
    placement.axis[1] = (int16_t)second;
    return placement;
}

static void assert_range(MtfRange range, int64_t begin, int64_t end) {
    assert_int_equal(range.begin, begin);
    assert_int_equal(range.end, end);
}

/* 10 over 4: floor(10 i / 4) = 0 2 5 7 10. */
TEST(parts_that_do_not_divide_are_ragged) {
    assert_range(mtf_part(10, 0, 4), 0, 2);
    assert_range(mtf_part(10, 1, 4), 2, 5);
    assert_range(mtf_part(10, 2, 4), 5, 7);
    assert_range(mtf_part(10, 3, 4), 7, 10);
}

/* On a:2;b:5 both axes split dimension a, none splits b and c: 2 * 5 parts, 1 and 1; the largest
 * part of 10 over 10 is 1, of 10 over 4 is 3. */
TEST(axes_that_split_one_dimension_multiply_its_parts) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh = mesh_of("a:2;b:5");
    MtfPlacement placement = place(0, 0);
    int64_t parts[3];
    mtf_placement_parts(&mesh, &mtf_graph_tensor(graph, 0)->shape, &placement, parts);
    assert_int_equal(parts[0], 10);
    assert_int_equal(parts[1], 1);
    assert_int_equal(parts[2], 1);
    assert_int_equal(mtf_largest_part(10, 10), 1);
    assert_int_equal(mtf_largest_part(10, 4), 3);
}

/* 3 over 5: floor(3 i / 5) = 0 0 1 1 2 3. */
TEST(parts_may_be_empty) {
    assert_range(mtf_part(3, 0, 5), 0, 0);
    assert_range(mtf_part(3, 1, 5), 0, 1);
    assert_range(mtf_part(3, 2, 5), 1, 1);
    assert_range(mtf_part(3, 3, 5), 1, 2);
    assert_range(mtf_part(3, 4, 5), 2, 3);
}

/* n = 2^53 - 1 over p = 2^24: part 2^24 - 1 begins at floor((p - 1) n / p) = n - ceil(n / p), and
 * n / p = 2^29 - 2^-24. */
TEST(parts_of_huge_dimensions_do_not_overflow) {
    int64_t size = (INT64_C(1) << 53) - 1, parts = INT64_C(1) << 24;
    assert_range(mtf_part(size, parts - 1, parts), size - (INT64_C(1) << 29), size);
    assert_range(mtf_part(size, 1, parts), (INT64_C(1) << 29) - 1, (INT64_C(1) << 30) - 1);
}

TEST(parts_tile_the_dimension_evenly) {
    for (int64_t size = 1; size < 40; size++) {
        for (int64_t parts = 1; parts < 40; parts++) {
            int64_t at = 0;
            for (int64_t i = 0; i < parts; i++) {
                MtfRange range = mtf_part(size, i, parts);
                assert_int_equal(range.begin, at);
                assert_int_equal(range.begin, i * size / parts);
                assert_true(range.end - range.begin >= size / parts);
                assert_true(range.end - range.begin <= (size + parts - 1) / parts);
                at = range.end;
            }
            assert_int_equal(at, size);
        }
    }
}

/* Both axes of rows:2;cols:2 split a=10: processor (r, c) holds part 2r + c of 4. */
TEST(splits_of_one_dimension_nest_major_to_minor) {
    MtfMesh mesh = mesh_of("rows:2;cols:2");
    MtfPlacement both = place(0, 0);
    static const int64_t begins[] = { 0, 2, 5, 7, 10 };
    for (int rank = 0; rank < 4; rank++)
        assert_range(mtf_placement_range(&mesh, &both, 0, 10, rank), begins[rank],
                     begins[rank + 1]);
    assert_int_equal(mtf_placement_split_axes(&both, 0), 3);
    assert_int_equal(mtf_placement_split_axes(&both, 1), 0);
}

/* On rows:2;cols:3 with rows=a cols=b: processor 5 is row 1, column 2: a in [5, 10), b in [2, 3).
 */
TEST(each_axis_cuts_its_own_dimension) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh = mesh_of("rows:2;cols:3");
    MtfPlacement placement = place(0, 1);
    const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
    assert_range(mtf_placement_range(&mesh, &placement, 0, 10, 5), 5, 10);
    assert_range(mtf_placement_range(&mesh, &placement, 1, 3, 5), 2, 3);
    assert_range(mtf_placement_range(&mesh, &placement, 2, 1, 5), 0, 1);
    assert_int_equal(mtf_local_elements(graph, &mesh, shape, &placement, 5), 5);
    assert_int_equal(mtf_largest_elements(graph, &mesh, shape, &placement), 5);
}

/* a=10 over 4 parts: largest 3; c=1 over 2 parts: largest 1, and rank 0 holds none of it. */
TEST(the_largest_slice_bounds_all_others) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh = mesh_of("rows:4;cols:2");
    MtfPlacement placement = place(0, 2);
    const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
    assert_int_equal(mtf_largest_elements(graph, &mesh, shape, &placement), 3 * 3 * 1);
    int64_t sum = 0;
    for (int rank = 0; rank < 8; rank++) {
        int64_t elements = mtf_local_elements(graph, &mesh, shape, &placement, rank);
        assert_true(elements <= 9);
        sum += elements;
    }
    assert_int_equal(sum, 30);
    assert_int_equal(mtf_local_elements(graph, &mesh, shape, &placement, 0), 0);
}

TEST(partial_and_whole_hold_everything) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh = mesh_of("rows:4;cols:2");
    MtfPlacement placement = place(MTF_PARTIAL_SUM, MTF_REPLICATED);
    const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
    assert_int_equal(mtf_local_elements(graph, &mesh, shape, &placement, 7), 30);
    assert_int_equal(mtf_placement_partial_axes(&placement), 1);
    placement = place(MTF_PARTIAL_SUM, MTF_PARTIAL_MAX);
    assert_int_equal(mtf_placement_partial_axes(&placement), 3);
}

TEST(a_placement_prints_axis_by_axis) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfMesh mesh = mesh_of("rows:4;cols:2;deep:1");
    MtfPlacement placement = place(1, MTF_PARTIAL_MAX);
    g_autofree char *text = mtf_placement_format(graph, &mesh, &placement);
    assert_string_equal(text, "rows=b cols=partial:max deep=replicated");
}

TEST(a_split_dimension_must_be_one_of_the_tensor) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph =
        mtf_test_graph("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 2, 'b': 2}, 'inputs': "
                       "[{'name': 'x', 'dims': ['a'], 'feed': 'features'}], 'operations': []}");
    MtfMesh mesh = mesh_of("rows:2");
    MtfPlacement placement = place(1, MTF_REPLICATED);
    assert_false(mtf_placement_check(graph, &mesh, 0, &placement, &error));
    assert_string_equal(error->message, "axis \"rows\" splits tensor \"x\" along \"b\", a "
                                        "dimension it does not have");
    g_clear_error(&error);
    placement = place(0, 0);
    assert_false(mtf_placement_check(graph, &mesh, 0, &placement, &error));
    assert_string_equal(error->message, "tensor \"x\" is placed on an axis the mesh lacks");
    placement = place(0, MTF_REPLICATED);
    assert_true(mtf_placement_check(graph, &mesh, 0, &placement, NULL));
}
