// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/commands/plan_simulation.h"
#include "layouts/placement/rules.h"

#include <math.h>

/* y[b, n] = x[b, k] w[k, n] with k split: an allreduce of b n floats. */
static MtfGraph *one_product(void) {
    MtfGraph *graph = mtf_graph_new("one");
    static const char *const names[] = { "b", "k", "n" };
    static const int64_t sizes[] = { 1024, 256, 512 };
    for (int d = 0; d < 3; d++)
        mtf_graph_add_dimension(graph, names[d], sizes[d], NULL);
    MtfShape x = { .rank = 2, .dims = { 0, 1 } }, w = { .rank = 2, .dims = { 1, 2 } };
    MtfShape y = { .rank = 2, .dims = { 0, 2 } };
    int inputs[] = { mtf_graph_add_input(graph, "x", &x, MTF_F32, MTF_FEED_FEATURES, NULL),
                     mtf_graph_add_input(graph, "w", &w, MTF_F32, MTF_FEED_FEATURES, NULL) };
    MtfNewOperation product = { .name = "y",
                                .kind = MTF_OP_EINSUM,
                                .n_inputs = 2,
                                .inputs = inputs,
                                .shape = &y,
                                .attributes = MTF_NO_ATTRIBUTES };
    mtf_graph_add_operation(graph, &product, NULL);
    return graph;
}

static MtfPlanSimulationRow simulate(const char *machine_name, const char *mesh_text) {
    g_autoptr(MtfGraph) graph = one_product();
    g_autoptr(MtfMachine) machine = mtf_machine_load(machine_name, NULL);
    MtfMesh mesh;
    MtfPricer pricer;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "k:a", NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(GArray) rows = mtf_plan_simulate(&pricer, program);
    assert_int_equal(rows->len, 1);
    return g_array_index(rows, MtfPlanSimulationRow, 0);
}

/* 2 MiB over a ring of 16 in both directions: 2 * 15 / 16 * 2 MiB / (2 * 3.1e10 B/s), derated. */
TEST(a_ring_is_simulated_as_its_formula_says) {
    MtfPlanSimulationRow row = simulate("tests/support/machines/torus.json", "a:16");
    assert_int_equal(row.kind, MTF_ALLREDUCE);
    assert_true(row.bytes == 1024 * 512 * 4);
    assert_true(row.calls == 1);
    assert_true(row.formula > 2.0 * 15 / 16 * row.bytes / (2 * 3.1e10));
    assert_true(fabs(row.simulated / row.formula - 1) < 1e-9);
    assert_true(row.seconds >= row.formula);
}

/* 2 MiB among 4 ranks of a switch: 2 * 3 / 4 * 2 MiB / 5e9 B/s and more. */
TEST(a_switch_is_simulated_as_its_formula_says) {
    MtfPlanSimulationRow row = simulate("cpu-host", "a:4");
    assert_true(row.formula > 2.0 * 3 / 4 * row.bytes / 5e9);
    assert_true(fabs(row.simulated / row.formula - 1) < 1e-9);
}

TEST(a_switch_of_very_many_ranks_is_not_simulated) {
    MtfPlanSimulationRow row = simulate("cpu-host", "a:128");
    assert_string_equal(row.simulated_algorithm, "");
    assert_true(isnan(row.simulated));
    assert_true(row.seconds > 0);
}
