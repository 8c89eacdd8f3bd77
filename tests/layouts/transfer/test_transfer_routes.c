// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/random.h"
#include "layouts/transfer/transfer_routes.h"

enum { ROWS = 7, COLS = 5 };

/* x[rows:7, cols:5], as a mesh of up to three axes holds it, each axis splitting either or neither. */
static MtfLayout *random_layout(const MtfGraph *graph, MtfRandom *random, int64_t *draw) {
    MtfMesh mesh = { .n_axes = 1 + (int)(mtf_random_uniform(random, (*draw)++) * 3) };
    for (int a = 0; a < mesh.n_axes; a++) {
        g_snprintf(mesh.axes[a].name, sizeof mesh.axes[a].name, "a%d", a);
        mesh.axes[a].size = 1 + (int)(mtf_random_uniform(random, (*draw)++) * 4);
    }
    MtfLayout *layout = mtf_layout_new(graph, &mesh);
    for (int a = 0; a < mesh.n_axes; a++)
        layout->tensors[0].axis[a] =
            (int16_t)((int)(mtf_random_uniform(random, (*draw)++) * 3) - 1);
    return layout;
}

static bool is_inside(const MtfRange *ranges, int row, int col) {
    return ranges[0].begin <= row && row < ranges[0].end && ranges[1].begin <= col &&
           col < ranges[1].end;
}

static bool has(const MtfTransferSide *side, int processor, int row, int col) {
    MtfRange ranges[MTF_MAX_RANK];
    mtf_transfer_part_ranges(side, processor, ranges);
    return is_inside(ranges, row, col);
}

/* The naive twin, element by element: each receiver gets what it holds once, from one that holds it, of n such
 * from the one whose turn its number divided by n is. */
static void check_element(const GArray *routes, const MtfTransferSide *from,
                          const MtfTransferSide *to, int row, int col) {
    g_autoptr(GArray) holders = g_array_new(FALSE, FALSE, sizeof(int));
    for (int p = 0; p < mtf_mesh_size(&from->layout->mesh); p++)
        if (has(from, p, row, col))
            g_array_append_val(holders, p);
    for (int receiver = 0; receiver < mtf_mesh_size(&to->layout->mesh); receiver++) {
        int got = 0;
        for (guint i = 0; i < routes->len; i++) {
            const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
            if (route->receiver != receiver || !is_inside(route->range, row, col))
                continue;
            assert_int_equal(route->sender,
                             g_array_index(holders, int, (guint)receiver % holders->len));
            got++;
        }
        assert_int_equal(got, has(to, receiver, row, col));
    }
}

/* A receiver that gives an element to another has got it itself. */
static bool was_sent_to(const GArray *routes, int receiver, int row, int col) {
    for (guint i = 0; i < routes->len; i++) {
        const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
        if (!route->inside && route->receiver == receiver && is_inside(route->range, row, col))
            return true;
    }
    return false;
}

/* Each element goes from stage to stage once to those that share a part, and all of them get it once. */
static void check_gathered(const GArray *routes, const MtfTransferSide *to, int row, int col) {
    int crossed = 0;
    for (int receiver = 0; receiver < mtf_mesh_size(&to->layout->mesh); receiver++) {
        int got = 0;
        for (guint i = 0; i < routes->len; i++) {
            const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
            if (route->receiver != receiver || !is_inside(route->range, row, col))
                continue;
            if (route->inside)
                assert_true(was_sent_to(routes, route->sender, row, col));
            crossed += !route->inside;
            got++;
        }
        assert_int_equal(got, has(to, receiver, row, col));
    }
    assert_int_equal(crossed, 1);
}

static void check_bytes(const GArray *routes) {
    for (guint i = 0; i < routes->len; i++) {
        const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
        assert_true(route->bytes > 0);
        assert_int_equal(route->bytes, 4 * (route->range[0].end - route->range[0].begin) *
                                           (route->range[1].end - route->range[1].begin));
    }
}

static MtfGraph *graph_of(int rank) {
    MtfGraph *graph = mtf_graph_new("one tensor");
    MtfShape shape = { .rank = rank, .dims = { 0, 1 } };
    mtf_graph_add_dimension(graph, "rows", ROWS, NULL);
    mtf_graph_add_dimension(graph, "cols", COLS, NULL);
    mtf_graph_add_input(graph, "x", &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    return graph;
}

TEST(every_receiver_gets_its_part_once) {
    g_autoptr(MtfGraph) graph = graph_of(2);
    MtfRandom random = mtf_random_stream(1, "routes", 0);
    int64_t draw = 0;
    for (int trial = 0; trial < 300; trial++) {
        g_autoptr(MtfLayout) sent = random_layout(graph, &random, &draw);
        g_autoptr(MtfLayout) received = random_layout(graph, &random, &draw);
        MtfTransferSide from = { graph, sent, 0 }, to = { graph, received, 0 };
        g_autoptr(GArray) routes = mtf_transfer_routes(&from, &to, MTF_TRANSFER_DIRECT);
        g_autoptr(GArray) gathered = mtf_transfer_routes(&from, &to, MTF_TRANSFER_GATHERED);
        check_bytes(routes);
        check_bytes(gathered);
        for (int row = 0; row < ROWS; row++)
            for (int col = 0; col < COLS; col++) {
                check_element(routes, &from, &to, row, col);
                check_gathered(gathered, &to, row, col);
            }
    }
}

/* Copies on three processors, wanted on five: 0, 1, 2 and again 0, 1. */
TEST(a_scalar_comes_from_each_holder_in_turn) {
    g_autoptr(MtfGraph) graph = graph_of(0);
    MtfMesh three = { .n_axes = 1, .axes = { { "a", 3 } } };
    MtfMesh five = { .n_axes = 1, .axes = { { "a", 5 } } };
    g_autoptr(MtfLayout) sent = mtf_layout_new(graph, &three);
    g_autoptr(MtfLayout) received = mtf_layout_new(graph, &five);
    MtfTransferSide from = { graph, sent, 0 }, to = { graph, received, 0 };
    g_autoptr(GArray) routes = mtf_transfer_routes(&from, &to, MTF_TRANSFER_MPI);
    assert_int_equal(routes->len, 5);
    assert_int_equal(mtf_transfer_most_alike(&to), 5);
    for (int i = 0; i < 5; i++) {
        const MtfTransferRoute *route = &g_array_index(routes, MtfTransferRoute, i);
        assert_int_equal(route->receiver, i);
        assert_int_equal(route->sender, i % 3);
        assert_int_equal(route->bytes, 4);
    }
}
