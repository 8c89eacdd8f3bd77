// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/cuts/cut_search.h"
#include "analyzer/cuts/graph_units.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/graph_likeness.h"
#include "layouts/base/error.h"
#include "layouts/graph/stage_split.h"

#include <math.h>

static MtfGraph *new_gpt(int64_t layers, int64_t batch) {
    MtfModelSettings settings = mtf_model_gpt.presets[0].settings;
    settings.layers = layers;
    settings.batch = batch;
    settings.length = 64;
    settings.d_model = 256;
    settings.d_ff = 1024;
    settings.heads = 4;
    settings.d_kv = 64;
    settings.vocab = 512;
    MtfGraph *graph = mtf_model_gpt.build(&settings, NULL);
    assert_non_null(graph);
    return graph;
}

/* Units lie one behind another and hold every operation once; the layers are equal. */
static void units_are_the_layers_and_their_ends(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(12, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    int equal = 0;
    assert_int_equal(units->begin[0], 0);
    assert_int_equal(units->begin[units->units], graph->operations->len);
    for (int u = 0; u < units->units; u++) {
        assert_true(units->begin[u] < units->begin[u + 1]);
        equal += units->kind[u] == units->kind[units->units / 2];
        for (int v = 0; v < u; v++)
            if (units->kind[v] == units->kind[u])
                assert_int_equal(units->begin[v + 1] - units->begin[v],
                                 units->begin[u + 1] - units->begin[u]);
    }
    assert_int_equal(equal, 12);
}

/* batch × length × d_model floats go from one layer to the next. */
static void one_tensor_crosses_between_layers(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(6, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(fabs(units->crossing[units->units / 2] - 8 * 64 * 256 * 4) < 0.5);
}

static void many_layers_are_grouped_equally(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(96, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(units->units <= 32);
    int middle = units->units / 2, equal = 1;
    for (int u = 0; u < units->units; u++)
        equal += u != middle && units->kind[u] == units->kind[middle];
    assert_int_equal(96 % equal, 0);
}

static MtfCutRequest request_of(const MtfGraph *graph, const MtfMachine *machine, int64_t devices) {
    return (MtfCutRequest){ .forward = graph,
                            .machine = machine,
                            .devices = devices,
                            .memory = machine->memory_bytes,
                            .recompute = MTF_RECOMPUTE_NONE,
                            .max_axes = 2 };
}

static void check_cut(const MtfGraph *graph, const MtfCutPlan *plan, int64_t devices,
                      int64_t memory) {
    int next = 0;
    double sum = 0, slowest = 0;
    for (guint s = 0; s < plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        assert_int_equal(stage->first, next);
        assert_int_equal(mtf_mesh_size(&stage->mesh), stage->devices);
        assert_true(stage->bytes <= (double)memory);
        next = stage->end;
        devices -= stage->devices;
        sum += stage->seconds;
        slowest = fmax(slowest, stage->seconds);
    }
    double step = sum + (plan->variant.microbatches - 1) * slowest;
    assert_int_equal(next, graph->operations->len);
    assert_int_equal(devices, 0);
    assert_true(fabs(step - plan->seconds) <= 1e-9 * step);
    assert_true(plan->bound <= plan->seconds);
}

static void cuts_cover_the_graph_and_the_devices(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(6, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.stages = 0;
    g_autoptr(MtfCutPlan) any = mtf_cut_search(&request, NULL);
    assert_non_null(any);
    check_cut(graph, any, 8, request.memory);
    for (int stages = 1; stages <= 4; stages *= 2) {
        request.stages = stages;
        g_autoptr(MtfCutPlan) plan = mtf_cut_search(&request, NULL);
        assert_non_null(plan);
        check_cut(graph, plan, 8, request.memory);
        assert_true(any->seconds <= plan->seconds * (1 + 1e-9));
        assert_int_equal(plan->stages->len, stages);
    }
}

static void a_plan_marks_every_operation(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 2;
    request.microbatches = 4;
    g_autoptr(MtfCutPlan) plan = mtf_cut_search(&request, NULL);
    assert_int_equal(plan->variant.microbatches, 4);
    mtf_cut_plan_apply(plan, graph);
    for (int i = 1; i < (int)graph->operations->len; i++)
        assert_true(mtf_graph_operation(graph, i)->stage >=
                    mtf_graph_operation(graph, i - 1)->stage);
    assert_int_equal(mtf_graph_stages(graph), 2);
}

static void too_little_memory_is_said(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    g_autoptr(GError) error = NULL;
    request.memory = 100000;
    assert_null(mtf_cut_search(&request, &error));
    assert_int_equal(error->code, MTF_ERROR_FIT);
}

/* Stages of equal layers are alike, the first and the last are not. */
static void equal_stages_are_alike(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(8, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    for (int u = 0; u < units->units; u++)
        for (int i = units->begin[u]; i < units->begin[u + 1]; i++)
            mtf_graph_operation(graph, i)->stage = u + 1;
    MtfStepVariant variant = { .microbatches = 4 };
    g_autoptr(MtfGraph) training = mtf_planning_training_graph(graph, &variant, NULL);
    mtf_graph_complete_stages(training);
    g_autoptr(MtfStageSplit) split = mtf_stage_split(training, NULL);
    int middle = units->units / 2;
    const MtfGraph *one = g_ptr_array_index(split->graphs, middle);
    assert_int_equal(units->kind[middle], units->kind[middle + 1]);
    assert_true(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, middle + 1)));
    assert_false(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, 0)));
    assert_false(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, units->units - 1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_the_layers_and_their_ends),
        cmocka_unit_test(one_tensor_crosses_between_layers),
        cmocka_unit_test(many_layers_are_grouped_equally),
        cmocka_unit_test(cuts_cover_the_graph_and_the_devices),
        cmocka_unit_test(a_plan_marks_every_operation),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(equal_stages_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
