// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/staged_plan.h"

#include "tests/support/cmocka.h"

#include "analyzer/planner/pipeline_planning.h"
#include "layouts/graph_file/graph_json.h"

#include <unistd.h>

MtfPipelinePlan *mtf_test_two_stages(const MtfMachine *machine, MtfTestStages of) {
    g_autoptr(MtfGraph) written = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
    return mtf_test_staged_plan(machine, written, 2, of);
}

MtfPipelinePlan *mtf_test_staged_plan(const MtfMachine *machine, const MtfGraph *written,
                                      int stages, MtfTestStages of) {
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    MtfMesh mesh = { .n_axes = 1, .axes = { { "all", MAX(1, of.devices) } } };
    g_array_append_val(meshes, mesh);
    MtfStepVariant form = { .microbatches = of.microbatches > 0 ? of.microbatches : 2,
                            .batch_dim = "batch" };
    MtfPipelineRequest request = { .written = written,
                                   .stages = stages,
                                   .chunks = MAX(1, of.chunks),
                                   .schedule = of.schedule != NULL ? of.schedule : "1f1b",
                                   .form = form,
                                   .meshes = meshes,
                                   .search = { .machine = machine,
                                               .memory_limit = machine->memory_bytes,
                                               .has_gap = true,
                                               .gap = 0.01 } };
    GError *error = NULL;
    MtfPipelinePlan *plan = mtf_pipeline_search(&request, &error);
    assert_null(error);
    assert_non_null(plan);
    return plan;
}

MtfPipelinePlan *mtf_test_staged_read_back(MtfPipelinePlan *plan) {
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("staged-XXXXXX.json", &path, NULL);
    assert_true(file >= 0 && close(file) == 0);
    assert_true(mtf_pipeline_plan_save(plan, path, NULL));
    mtf_pipeline_plan_free(plan);
    plan = mtf_pipeline_plan_load(path, NULL);
    assert_int_equal(unlink(path), 0);
    return plan;
}
