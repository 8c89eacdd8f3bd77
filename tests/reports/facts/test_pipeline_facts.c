// SPDX-License-Identifier: GPL-3.0-or-later
/* What is said of a pipeline's step. The page is looked at in tests/e2e/pipelines.sh. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/pipeline_planning.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "reports/facts/pipeline_facts.h"

#include <math.h>

/* The library's mlp in two stages of one device, zero bubble there and back. */
static MtfPipelinePlan *plan_of(const MtfMachine *machine, const char *schedule, int chunks) {
    g_autoptr(MtfGraph) written = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    MtfMesh one;
    assert_true(mtf_mesh_parse("all:1", 0, &one, NULL));
    g_array_append_val(meshes, one);
    MtfPipelineRequest request = { .written = written,
                                   .stages = 2,
                                   .chunks = chunks,
                                   .schedule = schedule,
                                   .form = { .microbatches = 4, .batch_dim = "batch" },
                                   .meshes = meshes,
                                   .search = { .machine = machine,
                                               .memory_limit = machine->memory_bytes,
                                               .has_gap = true,
                                               .gap = 0.01 } };
    GError *error = NULL;
    MtfPipelinePlan *plan = mtf_pipeline_search(&request, &error);
    assert_null(error);
    return plan;
}

/* Follows what each domain holds along its order: it begins and ends with what stays, and the most is
 * the sum of its stages' arenas at most. */
static void what_is_held_comes_and_goes(void **state) {
    (void)state;
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "zb-v", 2);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    assert_non_null(facts);
    for (int domain = 0; domain < plan->order->ranks; domain++) {
        double fixed = mtf_pipeline_domain_fixed(facts, domain), held = fixed, most = fixed;
        for (int i = 0; i < mtf_pipeline_length(plan->order, domain); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(plan->order, domain, i);
            held += mtf_pipeline_action_adds(facts, action);
            most = MAX(most, held);
            held -= mtf_pipeline_action_frees(facts, action);
        }
        assert_true(fixed > 0 && most > fixed);
        assert_true(held == fixed);
        assert_true(most <= mtf_pipeline_domain_bytes(facts, domain));
    }
}

static void times_are_those_the_plan_predicts(void **state) {
    (void)state;
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "1f1b", 1);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    assert_non_null(facts);
    double makespan = mtf_json_number_of(plan->predicted, "makespan_seconds", 0);
    assert_true(makespan > 0 && fabs(facts->run->makespan - makespan) <= 1e-9 * makespan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_comes_and_goes),
        cmocka_unit_test(times_are_those_the_plan_predicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
