// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/operation_profile.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/loops.h"
#include "tests/support/cases/parse_graph.h"

static const char *const five =
    "{'meshtf_graph': 1, 'name': 'f', 'dimensions': {'a': 64, 'b': 64, 'c': 64, 'd': 64, 'e': 64},"
    " 'inputs': [{'name': 't', 'dims': ['a', 'b', 'c', 'd', 'e'], 'feed': 'features'}],"
    " 'variables': [], 'operations': [{'name': 'r', 'op': 'relu', 'inputs': ['t']},"
    "  {'name': 'l', 'op': 'reduce_mean', 'inputs': ['r'], 'dims': []}], 'loss': 'l'}";

static MtfMesh mesh_of(const char *text) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    return mesh;
}

/* Six axes among five indexes and none: 11! / (6! 5!) = 462 of 6^6. */
TEST(six_axes_of_two_cut_five_indexes_in_462_ways) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(five);
    MtfMesh mesh = mesh_of("a:2;b:2;c:2;d:2;e:2;f:2");
    g_autoptr(GArray) all = mtf_strategies(graph, &mesh, 0, NULL, 0);
    g_autoptr(GArray) by_parts = mtf_strategies_by_parts(graph, &mesh, 0);
    assert_int_equal(all->len, 46656);
    assert_int_equal(by_parts->len, 462);
}

/* The cheapest of all strategies, operation by operation. */
static int64_t least_of_all(const MtfGraph *graph, const MtfMesh *mesh, const MtfPricer *pricer) {
    g_autofree int *updated = mtf_graph_next_values(graph);
    g_autoptr(MtfOperationProfiles) profiles =
        mtf_operation_profiles_new(graph, mesh, pricer, updated, NULL, 0);
    int64_t sum = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperationProfile *profile = mtf_operation_profile(profiles, i);
        int64_t least = INT64_MAX;
        for (guint s = 0; s < profile->strategies->len; s++)
            least = MIN(least, profile->costs[s]);
        sum += least;
    }
    return sum;
}

TEST(the_least_of_the_operations_is_that_of_all_their_strategies) {
    static const char *const machines[] = { "cpu-host", "h100", "tpu-v4" };
    static const char *const meshes[] = { "a:2", "a:4;b:2", "a:2;b:3;c:2", "a:2;b:2;c:2;d:2" };
    g_autoptr(MtfGraph) layers = mtf_test_layers(2, 64, 32, 120);
    g_autoptr(MtfGraph) graph = mtf_training_graph(layers, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(machines); i++)
        for (gsize k = 0; k < G_N_ELEMENTS(meshes); k++) {
            g_autoptr(MtfMachine) machine = mtf_machine_load(machines[i], NULL);
            MtfMesh mesh = mesh_of(meshes[k]);
            MtfPricer pricer;
            if (!mtf_pricer_init(&pricer, machine, &mesh, NULL))
                continue;
            int64_t least = mtf_operations_least(graph, &mesh, &pricer);
            assert_int_equal(least, least_of_all(graph, &mesh, &pricer));
            assert_true(least >= mtf_price_floor(&pricer, graph, &mesh));
        }
}
