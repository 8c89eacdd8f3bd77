// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/cuts/cut_search.h"
#include "analyzer/cuts/graph_units.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/graph_likeness.h"
#include "layouts/base/error.h"
#include "layouts/graph/stage_split.h"

#include <math.h>
#include <string.h>

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

/* With micro-batches the quotient of a masked loss is made once a step, so it is no stage. */
static void the_last_unit_holds_more_than_the_loss(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph =
        mtf_model_transformer.build(&mtf_model_transformer.presets[0].settings, NULL);
    assert_non_null(graph);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    const MtfOperation *first = mtf_graph_operation(graph, units->begin[units->units - 1]);
    assert_true(mtf_graph_tensor(graph, first->outputs[0])->shape.rank > 0);
}

/* Constants are made anew where they are read: a stage of them alone would have nothing to do. */
static void no_unit_is_made_of_constants(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = mtf_model_build(&mtf_model_bert, &mtf_model_bert.presets[0],
                                                &mtf_model_bert.presets[0].settings, NULL);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(units->units > 3);
    for (int u = 0; u < units->units; u++) {
        bool reads = false;
        for (int i = units->begin[u]; i < units->begin[u + 1]; i++)
            reads |= mtf_graph_operation(graph, i)->n_inputs > 0;
        assert_true(reads);
    }
}

/* batch × length × d_model floats go from one layer to the next. */
static void one_tensor_crosses_between_layers(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(6, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(fabs(units->crossing[units->units / 2] - 8 * 64 * 256 * 4) < 0.5);
}

/* Activations shrink from stage to stage, so the narrowest places are in the last one. */
static void units_of_a_convolutional_network_are_its_blocks(void **state) {
    (void)state;
    MtfModelSettings settings = mtf_model_resnet.presets[0].settings;
    settings.layers = 50;
    settings.image = 64;
    g_autoptr(MtfGraph) graph = mtf_model_resnet.build(&settings, NULL);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 160);
    g_autofree char *begins = g_strdup("");
    for (int u = 0; u < units->units; u++) {
        const char *name = mtf_graph_operation(graph, units->begin[u])->name;
        g_autofree char *longer = g_strdup_printf("%s%s ", begins, name);
        g_free(begins);
        begins = g_steal_pointer(&longer);
    }
    for (int stage = 1; stage <= 4; stage++)
        for (int block = 0; block < (int[]){ 3, 4, 6, 3 }[stage - 1]; block++) {
            g_autofree char *begin = g_strdup_printf("stage%d/%d/conv1/y", stage, block);
            if (strstr(begins, begin) == NULL)
                fail_msg("no unit begins with %s: %s", begin, begins);
        }
    assert_true(units->units < 24);
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

static const int one_chunk[] = { 1, 0 };

static MtfCutRequest request_of(const MtfGraph *graph, const MtfMachine *machine, int64_t devices) {
    return (MtfCutRequest){ .forward = graph,
                            .machine = machine,
                            .devices = devices,
                            .chunks = one_chunk,
                            .memory = machine->memory_bytes,
                            .recompute = MTF_RECOMPUTE_NONE,
                            .max_axes = 2 };
}

/* Stages follow one another and use all devices, chunks of a domain the same; the step is that of the
 * formula at the head of cut_model.h, summed domain by domain. */
static void check_cut(const MtfGraph *graph, const MtfCutPlan *plan, int64_t devices,
                      int64_t memory) {
    int next = 0, domains = (int)plan->stages->len / plan->chunks;
    double sum = 0, slowest = 0;
    g_autofree double *seconds = g_new0(double, domains);
    assert_int_equal(plan->stages->len % (guint)plan->chunks, 0);
    for (int s = 0; s < (int)plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        const MtfCutStage *first = &g_array_index(plan->stages, MtfCutStage, s % domains);
        assert_int_equal(stage->first, next);
        assert_int_equal(mtf_mesh_size(&stage->mesh), stage->devices);
        assert_int_equal(stage->devices, first->devices);
        assert_true(stage->bytes * plan->chunks <= (double)memory);
        next = stage->end;
        devices -= s < domains ? stage->devices : 0;
        seconds[s % domains] += stage->seconds;
    }
    for (int d = 0; d < domains; d++) {
        sum += seconds[d];
        slowest = fmax(slowest, seconds[d]);
    }
    double step = sum / plan->chunks + (plan->variant.microbatches - 1.0 / plan->chunks) * slowest;
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
    g_autoptr(GPtrArray) any = mtf_cut_search(&request, NULL);
    assert_non_null(any);
    assert_int_equal(any->len, 1);
    const MtfCutPlan *best = g_ptr_array_index(any, 0);
    check_cut(graph, best, 8, request.memory);
    for (int stages = 1; stages <= 4; stages *= 2) {
        request.stages = stages;
        g_autoptr(GPtrArray) plans = mtf_cut_search(&request, NULL);
        assert_non_null(plans);
        const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
        check_cut(graph, plan, 8, request.memory);
        assert_true(best->seconds <= plan->seconds * (1 + 1e-9));
        assert_int_equal(plan->stages->len, stages);
    }
}

/* Domains of two chunks: plans come with the fastest first, one for each number of chunks. */
static void domains_may_have_several_chunks(void **state) {
    (void)state;
    static const int chunks[] = { 1, 2, 0 };
    g_autoptr(MtfGraph) graph = new_gpt(8, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.chunks = chunks;
    request.stages = 4;
    request.microbatches = 4;
    g_autoptr(GPtrArray) plans = mtf_cut_search(&request, NULL);
    assert_int_equal(plans->len, 2);
    const MtfCutPlan *first = g_ptr_array_index(plans, 0), *second = g_ptr_array_index(plans, 1);
    assert_true(first->seconds <= second->seconds);
    assert_int_equal(first->chunks + second->chunks, 3);
    assert_int_equal(first->stages->len, 4 * (guint)first->chunks);
    check_cut(graph, first, 8, request.memory);
    check_cut(graph, second, 8, request.memory);
}

/* A row of layers longer than the parts that stages of any size are chosen between is still cut
 * between its layers: 38 layers on 4 equal stages leave no stage with more than 10. */
static void long_rows_are_cut_between_layers(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(38, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    request.microbatches = 8;
    g_autoptr(GPtrArray) plans = mtf_cut_search(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    int a_layer = (int)graph->operations->len / 38;
    for (guint s = 0; s < plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        assert_true(stage->end - stage->first <= 11 * a_layer);
    }
    check_cut(graph, plan, 4, request.memory);
}

/* A second that the host adds to a step makes it a second longer, however many stages there are. */
static void what_the_host_adds_to_a_step_comes_once(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(6, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    assert_true(mtf_machine_set_software(machine, "megatron-core", NULL));
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    g_autoptr(GPtrArray) before = mtf_cut_search(&request, NULL);
    machine->software->step_seconds += 1;
    g_autoptr(GPtrArray) after = mtf_cut_search(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(before, 0), *later = g_ptr_array_index(after, 0);
    assert_true(fabs(later->seconds - plan->seconds - 1) < 1e-6);
    assert_true(fabs(later->bound - plan->bound - 1) < 1e-6);
}

static void a_plan_marks_every_operation(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 2;
    request.microbatches = 4;
    g_autoptr(GPtrArray) plans = mtf_cut_search(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
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
        cmocka_unit_test(units_of_a_convolutional_network_are_its_blocks),
        cmocka_unit_test(the_last_unit_holds_more_than_the_loss),
        cmocka_unit_test(no_unit_is_made_of_constants),
        cmocka_unit_test(one_tensor_crosses_between_layers),
        cmocka_unit_test(many_layers_are_grouped_equally),
        cmocka_unit_test(cuts_cover_the_graph_and_the_devices),
        cmocka_unit_test(domains_may_have_several_chunks),
        cmocka_unit_test(long_rows_are_cut_between_layers),
        cmocka_unit_test(what_the_host_adds_to_a_step_comes_once),
        cmocka_unit_test(a_plan_marks_every_operation),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(equal_stages_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
