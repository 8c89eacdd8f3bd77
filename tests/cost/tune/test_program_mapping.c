// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/tune/program_mapping.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/two_layer.h"

/* On 512 cores as 4x128, batch on the 4: gradients are reduced over 4 ranks that lie, in
 * order, on every fourth place of a ring. The better mapping gives them neighbours. */
TEST(a_programs_mapping_is_no_slower_and_prices_what_it_promises) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("few:4;many:128", 0, &mesh, NULL));
    MtfGraph *graph = two_layer_graph(4096, 1024, 4096);
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, "batch:few", NULL, NULL);
    assert_non_null(rules);
    MtfLayout *layout = mtf_layout_from_rules(graph, &mesh, rules);
    MtfProgram *program = mtf_lower(graph, layout);
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v2", NULL);
    MtfPricer pricer;
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(GArray) traffic = mtf_program_traffic(program);
    assert_true(traffic->len > 0);
    int64_t before = mtf_price_program(&pricer, program);
    MtfMappingSearch found = mtf_program_map(&pricer, program, INT64_MAX);
    int64_t after = mtf_price_program(&pricer, program);
    assert_true(found.exhaustive && found.candidates > 10);
    assert_true(found.seconds < found.lexicographic);
    assert_true(mtf_mapping_is_whole(&pricer.map.mapping));
    double saved = (found.lexicographic - found.seconds) * 1e9;
    assert_true((double)(before - after) > saved - 10 && (double)(before - after) < saved + 10);
    mtf_program_free(program);
    mtf_layout_free(layout);
    mtf_graph_free(graph);
}
