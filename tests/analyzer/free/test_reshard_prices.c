// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/reshard_prices.h"
#include "tests/support/cases/parse_graph.h"

/* Tensors over dimensions of sizes that axes divide and of sizes that they do not. */
static const char *const tensors =
    "{'meshtf_graph': 1, 'name': 't', 'dimensions': {'a': 64, 'b': 64, 'c': 48, 'd': 30, 'e': 7,"
    "  'f': 4096}, 'inputs': ["
    "  {'name': 't0', 'dims': ['a', 'b', 'f'], 'feed': 'features'},"
    "  {'name': 't1', 'dims': ['a', 'c', 'd'], 'feed': 'features'},"
    "  {'name': 't2', 'dims': ['b', 'f', 'e'], 'feed': 'features'},"
    "  {'name': 't3', 'dims': ['a', 'f'], 'feed': 'features'},"
    "  {'name': 't4', 'dims': ['c', 'd', 'e', 'a'], 'feed': 'features'}],"
    " 'variables': [], 'operations': [{'name': 'r', 'op': 'relu', 'inputs': ['t0']},"
    "  {'name': 'l', 'op': 'reduce_mean', 'inputs': ['r'], 'dims': []}], 'loss': 'l'}";
#define TENSORS 5

static MtfPlacement random_placement(GRand *random, const MtfShape *shape, const MtfMesh *mesh) {
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < mesh->n_axes; a++) {
        int choice = g_rand_int_range(random, -3, shape->rank);
        placement.axis[a] = (int16_t)(choice >= 0    ? shape->dims[choice]
                                      : choice == -1 ? MTF_REPLICATED
                                      : choice == -2 ? MTF_PARTIAL_SUM
                                                     : MTF_PARTIAL_MAX);
    }
    return placement;
}

/* What the resharding's own program costs. */
static int64_t price_alone(const MtfGraph *graph, const MtfMesh *mesh, const MtfPricer *pricer,
                           int tensor, const MtfPlacement *from, const MtfPlacement *to) {
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, mesh);
    g_autoptr(MtfProgram) program = mtf_lower_path(graph, layout, tensor, from, to);
    return mtf_price_program(pricer, program);
}

#define PLACEMENTS 12

static GArray *random_placements(GRand *random, const MtfShape *shape, const MtfMesh *mesh) {
    GArray *placements = g_array_new(FALSE, FALSE, sizeof(MtfPlacement));
    for (int i = 0; i < PLACEMENTS; i++) {
        MtfPlacement placement = random_placement(random, shape, mesh);
        g_array_append_val(placements, placement);
    }
    return placements;
}

/* Makes the targets agree with the sources of the same number on an axis. */
static void agree(const GArray *from, GArray *to, int axis) {
    for (int i = 0; i < PLACEMENTS; i++)
        g_array_index(to, MtfPlacement, i).axis[axis] =
            g_array_index(from, MtfPlacement, i).axis[axis];
}

/* Placements of one tensor, some of which others are to be brought to. */
typedef struct {
    int tensor;
    GArray *from, *to;
} Pairs;

/* Half of them agree on an axis, so that prices found once serve others. */
static Pairs random_pairs(GRand *random, const MtfGraph *graph, const MtfMesh *mesh) {
    Pairs pairs = { .tensor = g_rand_int_range(random, 0, TENSORS) };
    const MtfShape *shape = &mtf_graph_tensor(graph, pairs.tensor)->shape;
    pairs.from = random_placements(random, shape, mesh);
    pairs.to = random_placements(random, shape, mesh);
    int agreed = g_rand_int_range(random, 0, 2 * mesh->n_axes);
    if (agreed < mesh->n_axes)
        agree(pairs.from, pairs.to, agreed);
    return pairs;
}

static MtfTravel travel_of(const Pairs *pairs) {
    return (MtfTravel){ .operation = 0, .tensor = pairs->tensor };
}

static void check_pairs(const MtfGraph *graph, const MtfMesh *mesh, const MtfPricer *pricer,
                        MtfReshardPrices *prices, const Pairs *pairs) {
    g_autofree int64_t *found =
        mtf_reshard_prices_of_pairs(prices, travel_of(pairs), pairs->from, pairs->to);
    for (int i = 0; i < PLACEMENTS; i++)
        for (int j = 0; j < PLACEMENTS; j++)
            assert_int_equal(found[i * PLACEMENTS + j],
                             price_alone(graph, mesh, pricer, pairs->tensor,
                                         &g_array_index(pairs->from, MtfPlacement, i),
                                         &g_array_index(pairs->to, MtfPlacement, j)));
}

#define TRIALS 25

static void check_all(GRand *random, const MtfGraph *graph, const MtfMesh *mesh,
                      const MtfPricer *pricer, MtfKnownPaths *paths) {
    g_autoptr(MtfReshardPrices) prices = mtf_reshard_prices_new(graph, mesh, pricer, paths);
    Pairs pairs[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        pairs[i] = random_pairs(random, graph, mesh);
        mtf_reshard_prices_expect(prices, travel_of(&pairs[i]), pairs[i].from);
        mtf_reshard_prices_expect(prices, travel_of(&pairs[i]), pairs[i].to);
    }
    for (int i = 0; i < TRIALS; i++) {
        check_pairs(graph, mesh, pricer, prices, &pairs[i]);
        g_array_unref(pairs[i].from);
        g_array_unref(pairs[i].to);
    }
}

TEST(a_price_found_once_is_that_of_its_program) {
    static const char *const meshes[] = { "a:8", "a:4;b:2", "a:3;b:4", "a:2;b:4;c:2",
                                          "a:2;b:2;c:3" };
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    g_autoptr(MtfMachine) machine = mtf_machine_load("tests/support/machines/torus.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(meshes); i++) {
        MtfMesh mesh;
        MtfPricer pricer;
        g_autoptr(MtfGraph) graph = mtf_test_graph(tensors);
        assert_true(mtf_mesh_parse(meshes[i], 0, &mesh, NULL));
        assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
        check_all(random, graph, &mesh, &pricer, NULL);
    }
}

/* The tensors of others, in another order of dimensions and beside other operations. */
static const char *const likely_tensors =
    "{'meshtf_graph': 1, 'name': 'u', 'dimensions': {'v': 4096, 'w': 30, 'x': 64, 'y': 48, 'z': 7},"
    " 'inputs': ["
    "  {'name': 'u0', 'dims': ['x', 'v'], 'feed': 'features'},"
    "  {'name': 'u1', 'dims': ['x', 'y', 'w'], 'feed': 'features'},"
    "  {'name': 'u2', 'dims': ['x', 'v', 'z'], 'feed': 'features'},"
    "  {'name': 'u3', 'dims': ['v', 'x'], 'feed': 'features'},"
    "  {'name': 'u4', 'dims': ['y', 'w', 'z', 'x'], 'feed': 'features'}],"
    " 'variables': [], 'operations': [{'name': 'g', 'op': 'gelu', 'inputs': ['u0']},"
    "  {'name': 'h', 'op': 'tanh', 'inputs': ['g']},"
    "  {'name': 'l', 'op': 'reduce_mean', 'inputs': ['h'], 'dims': []}], 'loss': 'l'}";

TEST(what_one_graph_found_is_right_for_another) {
    static const char *const meshes[] = { "a:8", "a:3;b:4", "a:2;b:4;c:2" };
    static const char *const machines[] = { "tests/support/machines/torus.json", "a100" };
    g_autoptr(GRand) random = g_rand_new_with_seed(12);
    g_autoptr(MtfGraph) first = mtf_test_graph(tensors);
    g_autoptr(MtfGraph) second = mtf_test_graph(likely_tensors);
    for (gsize i = 0; i < G_N_ELEMENTS(meshes) * G_N_ELEMENTS(machines); i++) {
        MtfMesh mesh;
        MtfPricer pricer;
        g_autoptr(MtfMachine) machine =
            mtf_machine_load(machines[i % G_N_ELEMENTS(machines)], NULL);
        MtfKnownPaths *paths = mtf_known_paths_new();
        assert_true(mtf_mesh_parse(meshes[i / G_N_ELEMENTS(machines)], 0, &mesh, NULL));
        assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
        check_all(random, first, &mesh, &pricer, paths);
        check_all(random, second, &mesh, &pricer, paths);
        mtf_known_paths_unref(paths);
    }
}
