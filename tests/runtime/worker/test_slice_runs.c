// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs of slices against the plainest enumeration: every position's index, one by one. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/slice.h"
#include "runtime/worker/slice_runs.h"
#include "tests/support/cases/random_layout.h"

/* A graph of one variable with random sizes, some of them 1. */
static MtfGraph *random_variable(GRand *random) {
    MtfGraph *graph = mtf_graph_new("one");
    MtfShape shape = { .rank = g_rand_int_range(random, 0, 5) };
    for (int i = 0; i < shape.rank; i++) {
        char name[] = { 'a', (char)('0' + i), '\0' };
        shape.dims[i] = mtf_graph_add_dimension(graph, name, g_rand_int_range(random, 1, 7), NULL);
    }
    mtf_graph_add_variable(graph, "v", &shape, MTF_F32, (MtfInit){ 0 }, MTF_MEMORY_VARIABLE, NULL);
    return graph;
}

/* Whole or split on each axis, as variables may be. */
static MtfLayout *random_placement(GRand *random, const MtfGraph *graph) {
    MtfMesh mesh = mtf_random_mesh(random, g_rand_int_range(random, 1, 9));
    MtfLayout *layout = mtf_layout_new(graph, &mesh);
    int rank = mtf_graph_tensor(graph, 0)->shape.rank;
    for (int a = 0; a < mesh.n_axes; a++) {
        int choice = g_rand_int_range(random, -1, MAX(rank, 1));
        if (choice >= 0 && choice < rank)
            layout->tensors[0].axis[a] = (int16_t)mtf_graph_tensor(graph, 0)->shape.dims[choice];
    }
    return layout;
}

/* A program that keeps the variable and does nothing. */
static void init_program(MtfProgram *program, const MtfGraph *graph, const MtfLayout *layout,
                         int *buffers) {
    *program = (MtfProgram){ .graph = graph, .layout = layout, .tensor_buffers = buffers };
    program->buffers = g_array_new(FALSE, TRUE, sizeof(MtfBuffer));
    MtfBuffer buffer = { .tensor = 0, .placement = layout->tensors[0] };
    g_array_append_val(program->buffers, buffer);
    buffers[0] = 0;
}

/* Whether the runs of `share` in [low, high) are the positions of `slice` there, in order. */
static void check_runs(const MtfShare *share, const MtfOperand *slice, int64_t low, int64_t high) {
    MtfRuns runs = mtf_runs(share, low, high);
    int64_t count = 0;
    int64_t elements = share->empty ? 0 : mtf_slice_elements(&share->box);
    for (int64_t p = share->first, left = 0, i = 0; i < elements; i++, p++) {
        int64_t index = mtf_slice_global_index(slice, p);
        if (index < low || index >= high)
            continue;
        if (left == 0) {
            assert_true(mtf_runs_next(&runs));
            assert_int_equal(runs.index, index);
            assert_int_equal(runs.position, p);
            left = runs.count;
        }
        assert_int_equal(index, runs.index + runs.count - left);
        assert_int_equal(p, runs.position + runs.count - left);
        left--;
        count++;
    }
    assert_false(mtf_runs_next(&runs));
    assert_int_equal(mtf_share_count(share, low, high), count);
}

static void check_shares(GRand *random, const MtfProgram *program, int64_t total) {
    g_autofree int *owners = g_new0(int, total + 1);
    int ranks = mtf_mesh_size(&program->layout->mesh);
    for (int r = 0; r < ranks; r++) {
        MtfShare kept = mtf_share_kept(program, 0, r);
        MtfShare owned = mtf_share_owned(program, 0, r);
        int64_t low = g_rand_int_range(random, 0, (gint32)total + 1);
        int64_t high = g_rand_int_range(random, (gint32)low, (gint32)total + 1);
        check_runs(&kept, &kept.box, low, high);
        check_runs(&owned, &kept.box, low, high);
        check_runs(&owned, &kept.box, 0, total);
        MtfRuns runs = mtf_runs(&owned, 0, total);
        while (mtf_runs_next(&runs))
            for (int64_t i = 0; i < runs.count; i++)
                owners[runs.index + i]++;
    }
    for (int64_t i = 0; i < total; i++)
        assert_int_equal(owners[i], 1);
}

TEST(runs_are_a_slice_s_elements_and_every_element_has_one_owner) {
    for (guint32 seed = 0; seed < 3000; seed++) {
        int buffers[1];
        MtfProgram program;
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(MtfGraph) graph = random_variable(random);
        g_autoptr(MtfLayout) layout = random_placement(random, graph);
        init_program(&program, graph, layout, buffers);
        check_shares(random, &program,
                     mtf_graph_elements(graph, &mtf_graph_tensor(graph, 0)->shape));
        g_array_unref(program.buffers);
    }
}

/* The index without padding of element `index` of the padded variable, or -1 for one of padding. */
static int64_t unpadded_index(const MtfGraph *graph, int64_t index) {
    const MtfShape *shape = &mtf_graph_tensor(graph, 0)->shape;
    int64_t result = 0, stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t size = mtf_graph_size(graph, shape->dims[i]);
        int64_t counted = mtf_graph_unpadded_size(graph, shape->dims[i]);
        if (index % size >= counted)
            return -1;
        result += index % size * stride;
        stride *= counted;
        index /= size;
    }
    return result;
}

/* Every element of a rank's slice, one by one, against the runs of what it keeps. */
static void check_padded(const MtfProgram *program, int rank, const MtfOperand *slice,
                         int64_t total) {
    g_autofree int64_t *position = g_new(int64_t, total + 1);
    for (int64_t i = 0; i < total; i++)
        position[i] = -1;
    for (int64_t p = 0; p < mtf_slice_elements(slice); p++) {
        int64_t index = unpadded_index(program->graph, mtf_slice_global_index(slice, p));
        if (index >= 0)
            position[index] = p;
    }
    MtfShare kept = mtf_share_kept(program, 0, rank);
    MtfRuns runs = mtf_runs(&kept, 0, total);
    int64_t last = -1;
    while (mtf_runs_next(&runs))
        for (int64_t i = 0; i < runs.count; i++) {
            assert_true(runs.index + i > last);
            last = runs.index + i;
            assert_int_equal(position[last], runs.position + i);
            position[last] = -1;
        }
    for (int64_t i = 0; i < total; i++)
        assert_int_equal(position[i], -1);
}

TEST(padding_is_passed_over) {
    for (guint32 seed = 0; seed < 2000; seed++) {
        int buffers[1];
        MtfProgram program;
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(MtfGraph) graph = random_variable(random);
        g_autoptr(MtfLayout) layout = random_placement(random, graph);
        MtfOperand slices[16];
        init_program(&program, graph, layout, buffers);
        int ranks = mtf_mesh_size(&layout->mesh);
        assert_true(ranks <= 16);
        for (int r = 0; r < ranks; r++)
            slices[r] = mtf_share_kept(&program, 0, r).box;
        for (int d = 0; d < (int)graph->dimensions->len; d++)
            if (mtf_graph_size(graph, d) > 1 && g_rand_boolean(random))
                mtf_graph_dimension(graph, d)->unpadded =
                    g_rand_int_range(random, 1, (gint32)mtf_graph_size(graph, d));
        for (int r = 0; r < ranks; r++)
            check_padded(&program, r, &slices[r],
                         mtf_graph_unpadded_elements(graph, &mtf_graph_tensor(graph, 0)->shape));
        g_array_unref(program.buffers);
    }
}

/* [4, 6] split by columns over 2 ranks: rows of 3. Whole rows are one run over all of them. */
TEST(rows_that_touch_are_one_run) {
    MtfShare columns = {
        .box = { .rank = 2, .size = { 4, 3 }, .begin = { 0, 3 }, .global = { 4, 6 } },
        .extent = { 4, 3 }
    };
    MtfRuns runs = mtf_runs(&columns, 0, 24);
    assert_true(mtf_runs_next(&runs));
    assert_int_equal(runs.index, 3);
    assert_int_equal(runs.count, 3);
    MtfShare rows = { .box = { .rank = 2, .size = { 2, 6 }, .begin = { 2, 0 }, .global = { 4, 6 } },
                      .extent = { 2, 6 } };
    runs = mtf_runs(&rows, 0, 24);
    assert_true(mtf_runs_next(&runs));
    assert_int_equal(runs.index, 12);
    assert_int_equal(runs.count, 12);
    assert_false(mtf_runs_next(&runs));
}
