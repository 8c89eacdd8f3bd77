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
    MtfModelSettings settings = mtf_model_settings(&mtf_model_gpt.presets[0]);
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
TEST(units_are_the_layers_and_their_ends) {
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
TEST(the_last_unit_holds_more_than_the_loss) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_transformer.presets[0]);
    g_autoptr(MtfGraph) graph = mtf_model_transformer.build(&settings, NULL);
    assert_non_null(graph);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    const MtfOperation *first = mtf_graph_operation(graph, units->begin[units->units - 1]);
    assert_true(mtf_graph_tensor(graph, first->outputs[0])->shape.rank > 0);
}

/* Constants are made anew where they are read: a stage of them alone would have nothing to do. */
TEST(no_unit_is_made_of_constants) {
    g_autoptr(MtfGraph) graph =
        mtf_model_build(&mtf_model_bert, &mtf_model_bert.presets[0], NULL, NULL);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(units->units > 3);
    for (int u = 0; u < units->units; u++) {
        bool reads = false;
        for (int i = units->begin[u]; i < units->begin[u + 1]; i++)
            reads |= mtf_graph_operation(graph, i)->n_inputs > 0;
        assert_true(reads);
    }
}

/* Names of its dimensions take turns, so that two layers of a perceptron repeat; it can be cut behind each of
 * the products all the same. */
TEST(a_perceptron_is_cut_between_its_layers) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_mlp.presets[0]);
    settings.layers = 8;
    g_autoptr(MtfGraph) graph = mtf_model_mlp.build(&settings, NULL);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 160);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        if (mtf_operation_row(mtf_graph_operation(graph, i)->kind)->kernel_class !=
            MTF_CLASS_MATMUL)
            continue;
        int u = 0;
        while (units->begin[u + 1] <= i)
            u++;
        int products = 0;
        for (int k = units->begin[u]; k < units->begin[u + 1]; k++)
            products += mtf_operation_row(mtf_graph_operation(graph, k)->kind)->kernel_class ==
                        MTF_CLASS_MATMUL;
        assert_int_equal(products, 1);
    }
}

/* batch × length × d_model floats go from one layer to the next. */
TEST(one_tensor_crosses_between_layers) {
    g_autoptr(MtfGraph) graph = new_gpt(6, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    assert_true(fabs(units->crossing[units->units / 2] - 8 * 64 * 256 * 4) < 0.5);
}

/* Activations shrink from stage to stage, so the narrowest places are in the last one. */
TEST(units_of_a_convolutional_network_are_its_blocks) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_resnet.presets[0]);
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

TEST(many_layers_are_grouped_equally) {
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

static GPtrArray *search_cuts(const MtfCutRequest *request, GError **error) {
    g_autoptr(MtfCutSearch) search = mtf_cut_search_new(request);
    return mtf_cut_search_within(search, request->memory, error);
}

TEST(cuts_cover_the_graph_and_the_devices) {
    g_autoptr(MtfGraph) graph = new_gpt(6, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.stages = 0;
    g_autoptr(GPtrArray) any = search_cuts(&request, NULL);
    assert_non_null(any);
    assert_int_equal(any->len, 1);
    const MtfCutPlan *best = g_ptr_array_index(any, 0);
    check_cut(graph, best, 8, request.memory);
    for (int stages = 1; stages <= 4; stages *= 2) {
        request.stages = stages;
        g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
        assert_non_null(plans);
        const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
        check_cut(graph, plan, 8, request.memory);
        assert_true(best->seconds <= plan->seconds * (1 + 1e-9));
        assert_int_equal(plan->stages->len, stages);
    }
}

/* Where the number of stages does not divide that of the devices. */
TEST(stages_may_have_unequal_devices) {
    static const int numbers[][2] = { { 7, 3 }, { 8, 3 }, { 5, 2 }, { 7, 6 }, { 12, 5 } };
    g_autoptr(MtfGraph) graph = new_gpt(6, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        MtfCutRequest request = request_of(graph, machine, numbers[i][0]);
        request.stages = numbers[i][1];
        g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
        assert_non_null(plans);
        const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
        check_cut(graph, plan, numbers[i][0], request.memory);
        assert_int_equal(plan->stages->len, numbers[i][1]);
        request.megatron = true; /* has equal ones alone */
        g_autoptr(GError) error = NULL;
        assert_null(search_cuts(&request, &error));
        assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_FIT));
    }
}

/* Domains of two chunks: plans come with the fastest first, one for each number of chunks. */
TEST(domains_may_have_several_chunks) {
    static const int chunks[] = { 1, 2, 0 };
    g_autoptr(MtfGraph) graph = new_gpt(8, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.chunks = chunks;
    request.stages = 4;
    request.microbatches = 4;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    assert_int_equal(plans->len, 2);
    const MtfCutPlan *first = g_ptr_array_index(plans, 0), *second = g_ptr_array_index(plans, 1);
    assert_true(first->seconds <= second->seconds);
    assert_int_equal(first->chunks + second->chunks, 3);
    assert_int_equal(first->stages->len, 4 * (guint)first->chunks);
    check_cut(graph, first, 8, request.memory);
    check_cut(graph, second, 8, request.memory);
}

static double slowest_stage(const MtfCutPlan *plan) {
    double slowest = 0;
    for (guint s = 0; s < plan->stages->len; s++)
        slowest = fmax(slowest, g_array_index(plan->stages, MtfCutStage, s).seconds);
    return slowest;
}

/* One micro-batch takes as long however it is cut; of steps that overlap, as long as in the slowest stage. */
TEST(the_slowest_stage_counts_where_steps_overlap) {
    g_autoptr(MtfGraph) graph = new_gpt(6, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    request.microbatches = 1;
    g_autoptr(GPtrArray) alone = search_cuts(&request, NULL);
    request.overlaps = true;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    check_cut(graph, g_ptr_array_index(alone, 0), 4, request.memory);
    assert_true(fabs(plan->seconds - slowest_stage(plan)) <= 1e-9 * plan->seconds);
    assert_true(plan->seconds < slowest_stage(g_ptr_array_index(alone, 0)));
    assert_true(plan->seconds < 1.5 * plan->bound);
}

/* A search that is asked again finds what a new one does; and of each number of micro-batches the best that
 * is found for it alone. */
TEST(a_search_may_be_asked_again) {
    g_autoptr(MtfGraph) graph = new_gpt(6, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    request.each_number = true;
    g_autoptr(MtfCutSearch) search = mtf_cut_search_new(&request);
    g_autoptr(GPtrArray) all = mtf_cut_search_within(search, request.memory, NULL);
    const MtfCutPlan *best = g_ptr_array_index(all, 0);
    assert_true(all->len > 1);
    for (guint i = 0; i < all->len; i++) {
        const MtfCutPlan *plan = g_ptr_array_index(all, i);
        check_cut(graph, plan, 4, request.memory);
        assert_true(best->seconds <= plan->seconds);
        request.microbatches = plan->variant.microbatches;
        g_autoptr(GPtrArray) alone = search_cuts(&request, NULL);
        assert_true(((const MtfCutPlan *)g_ptr_array_index(alone, 0))->seconds == plan->seconds);
    }
    request.microbatches = 0;
    request.memory = (int64_t)(0.7 * g_array_index(best->stages, MtfCutStage, 0).bytes);
    g_autoptr(GPtrArray) less = mtf_cut_search_within(search, request.memory, NULL);
    g_autoptr(GPtrArray) fresh = search_cuts(&request, NULL);
    assert_int_equal(less->len, fresh->len);
    for (guint i = 0; i < less->len; i++)
        assert_true(((const MtfCutPlan *)g_ptr_array_index(less, i))->seconds ==
                    ((const MtfCutPlan *)g_ptr_array_index(fresh, i))->seconds);
    assert_true(((const MtfCutPlan *)g_ptr_array_index(less, 0))->seconds >= best->seconds);
}

/* What a search leaves out since stages as large waste work changes nothing: the best plan is that of one which prices
 * all sizes for each number of micro-batches; so it is for less memory, asked again. */
TEST(sizes_that_waste_work_are_not_missed) {
    g_autoptr(MtfGraph) graph = new_gpt(8, 64);
    g_autoptr(MtfMachine) machine = mtf_machine_load("p3.16xlarge", NULL);
    MtfCutRequest request = request_of(graph, machine, 32), whole = request;
    whole.each_number = true;
    g_autoptr(MtfCutSearch) search = mtf_cut_search_new(&request);
    for (int k = 0; k < 2; k++) {
        g_autoptr(GPtrArray) found = mtf_cut_search_within(search, whole.memory, NULL);
        g_autoptr(GPtrArray) all = search_cuts(&whole, NULL);
        const MtfCutPlan *plan = g_ptr_array_index(found, 0), *best = g_ptr_array_index(all, 0);
        assert_true(plan->seconds == best->seconds);
        whole.memory = (int64_t)(0.7 * g_array_index(best->stages, MtfCutStage, 0).bytes);
    }
}

/* Whether a layer ends behind the stage, and another begins. */
static bool ends_a_layer(const MtfGraph *graph, const MtfCutStage *stage) {
    const MtfLayer *last = &mtf_graph_operation(graph, stage->end - 1)->layer;
    const MtfLayer *next = &mtf_graph_operation(graph, stage->end)->layer;
    return last->block == 1 && next->block == 1 && next->iteration == last->iteration + 1;
}

/* Megatron-LM has one way for all stages of equal devices, which part layers; what else may be done is never
 * slower. */
TEST(megatron_has_one_way_for_all_stages) {
    static const int chunks[] = { 1, 2, 0 };
    g_autoptr(MtfGraph) graph = new_gpt(8, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.chunks = chunks;
    request.stages = 2;
    g_autoptr(GPtrArray) any = search_cuts(&request, NULL);
    request.megatron = true;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    assert_int_equal(plans->len, 2);
    for (guint i = 0; i < plans->len; i++) {
        const MtfCutPlan *plan = g_ptr_array_index(plans, i);
        const MtfCutStage *first = &g_array_index(plan->stages, MtfCutStage, 0);
        check_cut(graph, plan, 8, request.memory);
        assert_true(((const MtfCutPlan *)g_ptr_array_index(any, 0))->seconds <=
                    plan->seconds * (1 + 1e-9));
        for (guint s = 0; s < plan->stages->len; s++) {
            const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
            assert_int_equal(stage->devices, 4);
            assert_true(mtf_mesh_equal(&stage->mesh, &first->mesh));
            assert_int_equal(stage->style, first->style);
            assert_string_equal(stage->layout, first->layout);
            assert_null(strstr(stage->layout, "ZeRO-3"));
            assert_int_equal(stage->recompute, first->recompute);
            assert_true(s + 1 == plan->stages->len || ends_a_layer(graph, stage));
        }
    }
}

/* A row of layers longer than the parts that stages of any size are chosen between is still cut
 * between its layers: 38 layers on 4 equal stages leave no stage with more than 10. */
TEST(long_rows_are_cut_between_layers) {
    g_autoptr(MtfGraph) graph = new_gpt(38, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    request.microbatches = 8;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    int a_layer = (int)graph->operations->len / 38;
    for (guint s = 0; s < plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        assert_true(stage->end - stage->first <= 11 * a_layer);
    }
    check_cut(graph, plan, 4, request.memory);
}

/* What was priced while there was more memory, of which some was left out beside better plans, leaves no better cut
 * out where there is less. */
TEST(prices_from_more_memory_lead_to_no_worse_cuts) {
    g_autoptr(MtfGraph) graph = new_gpt(8, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    g_autoptr(MtfCutSearch) search = mtf_cut_search_new(&request);
    g_autoptr(GPtrArray) first = mtf_cut_search_within(search, request.memory, NULL);
    double bytes = g_array_index(((MtfCutPlan *)first->pdata[0])->stages, MtfCutStage, 0).bytes;
    for (int share = 90; share >= 50; share -= 40) {
        request.memory = (int64_t)(bytes * share / 100);
        g_autoptr(GPtrArray) fresh = search_cuts(&request, NULL);
        g_autoptr(GPtrArray) again = mtf_cut_search_within(search, request.memory, NULL);
        assert_true((fresh != NULL) == (again != NULL));
        if (fresh != NULL)
            assert_true(((MtfCutPlan *)again->pdata[0])->seconds <=
                        ((MtfCutPlan *)fresh->pdata[0])->seconds);
    }
}

/* A second that the host adds to a step makes it a second longer, however many stages there are. */
TEST(what_the_host_adds_to_a_step_comes_once) {
    g_autoptr(MtfGraph) graph = new_gpt(6, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    assert_true(mtf_machine_set_software(machine, "megatron-core", NULL));
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    g_autoptr(GPtrArray) before = search_cuts(&request, NULL);
    machine->software->step_seconds += 1;
    g_autoptr(GPtrArray) after = search_cuts(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(before, 0), *later = g_ptr_array_index(after, 0);
    assert_true(fabs(later->seconds - plan->seconds - 1) < 1e-6);
    assert_true(fabs(later->bound - plan->bound - 1) < 1e-6);
}

/* Four stages of a device each hold 4, 3, 2, 1 micro-batches. In the memory of which the first would need
 * more if it kept all, the plan is faster than the one that recomputes everywhere, and later stages keep. */
TEST(early_stages_alone_recompute) {
    g_autoptr(MtfGraph) graph = new_gpt(8, 16);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 4;
    request.microbatches = 8;
    g_autoptr(GPtrArray) keeping = search_cuts(&request, NULL);
    const MtfCutPlan *none = g_ptr_array_index(keeping, 0);
    request.recompute = MTF_RECOMPUTE_LAYERS;
    g_autoptr(GPtrArray) again = search_cuts(&request, NULL);
    const MtfCutPlan *layers = g_ptr_array_index(again, 0);
    request.memory = (int64_t)(0.8 * g_array_index(none->stages, MtfCutStage, 0).bytes);
    request.recompute = MTF_RECOMPUTES;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    check_cut(graph, plan, 4, request.memory);
    assert_non_null(plan->recompute);
    assert_ptr_equal(plan->recompute, plan->variant.recompute_of_stage);
    assert_int_equal(plan->recompute[0], MTF_RECOMPUTE_LAYERS);
    assert_int_equal(plan->recompute[3], MTF_RECOMPUTE_NONE);
    assert_true(plan->seconds < layers->seconds);
    assert_true(none->seconds <= plan->seconds);
    /* The best that recomputes alike comes along: stages that do not fit after all have it to fall back on. */
    assert_int_equal(plans->len, 2);
    assert_null(((MtfCutPlan *)g_ptr_array_index(plans, 1))->recompute);
}

/* ---- All cuts of small chains ---------------------------------------------------------------- */

/* A chain of units, all different, whose prices are drawn: two ways that keep and two that recompute, a
 * device a stage. */
typedef struct {
    int begin[7], kind[6];
    double crossing[7];
    MtfGraphUnits units;
    GArray *places, *sizes;
    GPtrArray *ways;
    MtfUnitPrice price[4][6];
    MtfUnitWay way[4];
    MtfMachine *machine;
} Chain;

static void draw_chain(Chain *chain, GRand *random) {
    chain->units = (MtfGraphUnits){ .units = 6,
                                    .kinds = 6,
                                    .begin = chain->begin,
                                    .kind = chain->kind,
                                    .crossing = chain->crossing };
    chain->places = g_array_new(FALSE, FALSE, sizeof(int));
    chain->sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    chain->ways = g_ptr_array_new();
    chain->machine = mtf_machine_load("v100", NULL);
    g_array_append_val(chain->sizes, ((int64_t){ 1 }));
    for (int u = 0; u <= 6; u++) {
        g_array_append_val(chain->places, u);
        chain->begin[u] = u;
        chain->crossing[u] = 0;
        if (u < 6)
            chain->kind[u] = u;
    }
    for (int w = 0; w < 4; w++) {
        bool again = w >= 2;
        for (int u = 0; u < 6; u++)
            chain->price[w][u] =
                (MtfUnitPrice){ true,
                                g_rand_double_range(random, 1, 2) * (again ? 1.3 : 1),
                                g_rand_double(random),
                                g_rand_double_range(random, 1, 2) * 1e6,
                                g_rand_double_range(random, 1, 2) * (again ? 1e5 : 1e6),
                                g_rand_double(random) * 2e5,
                                g_rand_double(random) * 2e5,
                                g_rand_double(random) * 1e6 };
        chain->way[w] =
            (MtfUnitWay){ .devices = 1,
                          .recompute = again ? MTF_RECOMPUTE_LAYERS : MTF_RECOMPUTE_NONE,
                          .name = (char *)"drawn",
                          .price = chain->price[w] };
        g_ptr_array_add(chain->ways, &chain->way[w]);
    }
}

/* A stage's seconds where it fits, else INFINITY, by the way that takes least, of those that recompute
 * what it is given. */
static double stage_seconds(const Chain *chain, const MtfCutModel *model, int stage, int first,
                            int end) {
    int flight = MIN(model->stages - stage, model->variant.microbatches);
    const MtfRecompute *given = model->recompute_of_stage;
    const MtfNetwork *network = &chain->machine->network;
    const MtfNetworkAxis *host = &network->axis[network->axes - 1]; /* which holds them all */
    double least = INFINITY;
    for (int w = 0; w < 4; w++) {
        if (given != NULL && chain->way[w].recompute != given[stage])
            continue;
        double seconds = ((first > 0) + (end < 6)) * host->latency;
        double bytes = flight * (chain->price[w][first].at_begin + chain->price[w][end - 1].at_end);
        double work = 0;
        for (int u = first; u < end; u++) {
            const MtfUnitPrice *price = &chain->price[w][u];
            seconds += price->seconds + price->once / model->variant.microbatches;
            bytes += price->fixed + flight * price->flight;
            work = fmax(work, price->work);
        }
        if (bytes + work <= (double)model->memory)
            least = fmin(least, seconds);
    }
    return least;
}

/* Cuts behind unit u where bit u is set. */
static double best_of_all_cuts(const Chain *chain, const MtfCutModel *model) {
    double best = INFINITY;
    for (int cuts = 0; cuts < 32; cuts++) {
        int stages = 1 + __builtin_popcount((unsigned)cuts), stage = 0, first = 0;
        double sum = 0, slowest = 0;
        for (int u = 0; u < 6 && stages == model->stages; u++) {
            if (u < 5 && (cuts >> u & 1) == 0)
                continue;
            double own = stage_seconds(chain, model, stage, first, u + 1);
            sum += own;
            slowest = fmax(slowest, own);
            first = u + 1;
            stage++;
        }
        if (stage == model->stages)
            best = fmin(best, sum + (model->variant.microbatches - 1) * slowest);
    }
    return best;
}

/* 2,000 drawn chains: the same step as by trying each cut with each way for each stage; in some the stages
 * of the best plan differ in what they recompute, in some nothing fits. In half of them stages are given what they
 * recompute. */
TEST(mixed_stages_are_the_best_of_all) {
    int mixed = 0, unfit = 0;
    MtfRecompute given[4];
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (int turn = 0; turn < 2000; turn++) {
        Chain chain;
        draw_chain(&chain, random);
        int stages = g_rand_int_range(random, 2, 5);
        MtfCutModel model = { .units = &chain.units,
                              .places = chain.places,
                              .sizes = chain.sizes,
                              .ways = chain.ways,
                              .recomputations = 2,
                              .recompute_of_stage = turn % 2 == 1 ? given : NULL,
                              .variant = { .microbatches = g_rand_int_range(random, 2, 9) },
                              .machine = chain.machine,
                              .devices = stages,
                              .memory = (int64_t)g_rand_double_range(random, 4e6, 2e7),
                              .stages = stages,
                              .chunks = 1 };
        for (int s = 0; s < stages; s++)
            given[s] = g_rand_boolean(random) ? MTF_RECOMPUTE_LAYERS : MTF_RECOMPUTE_NONE;
        g_autoptr(MtfCutPlan) plan = mtf_cut_model_solve(&model);
        double best = best_of_all_cuts(&chain, &model);
        assert_true((plan == NULL) == !isfinite(best));
        for (int s = 0; plan != NULL && turn % 2 == 1 && s < stages; s++)
            assert_int_equal(g_array_index(plan->stages, MtfCutStage, s).recompute, given[s]);
        if (plan != NULL)
            assert_true(fabs(plan->seconds - mtf_machine_step_seconds(chain.machine) - best) <=
                        1e-9 * best);
        mixed += plan != NULL && plan->recompute != NULL;
        unfit += plan == NULL;
        g_array_unref(chain.places);
        g_array_unref(chain.sizes);
        g_ptr_array_unref(chain.ways);
        mtf_machine_free(chain.machine);
    }
    assert_true(mixed > 200 && unfit > 20);
}

/* A TPU v4 is cut into slices of 1, 4, 8 … chips: two stages of eight are halves, and nobody looks for slices of two. */
TEST(stages_are_slices_of_the_machine) {
    GError *error = NULL;
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("tpu-v4", NULL);
    MtfCutRequest request = request_of(graph, machine, 8);
    request.stages = 2;
    g_autoptr(GPtrArray) plans = search_cuts(&request, &error);
    assert_null(error);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    for (guint s = 0; s < plan->stages->len; s++)
        assert_int_equal(g_array_index(plan->stages, MtfCutStage, s).devices, 4);
}

TEST(a_plan_marks_every_operation) {
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    request.stages = 2;
    request.microbatches = 4;
    g_autoptr(GPtrArray) plans = search_cuts(&request, NULL);
    const MtfCutPlan *plan = g_ptr_array_index(plans, 0);
    assert_int_equal(plan->variant.microbatches, 4);
    mtf_cut_plan_apply(plan, graph);
    for (int i = 1; i < (int)graph->operations->len; i++)
        assert_true(mtf_graph_operation(graph, i)->stage >=
                    mtf_graph_operation(graph, i - 1)->stage);
    assert_int_equal(mtf_graph_stages(graph), 2);
}

TEST(too_little_memory_is_said) {
    g_autoptr(MtfGraph) graph = new_gpt(4, 8);
    g_autoptr(MtfMachine) machine = mtf_machine_load("v100", NULL);
    MtfCutRequest request = request_of(graph, machine, 4);
    g_autoptr(GError) error = NULL;
    request.memory = 100000;
    assert_null(search_cuts(&request, &error));
    assert_int_equal(error->code, MTF_ERROR_FIT);
}

/* Stages of equal halves of layers, which take turns, are alike, the first and the last are not. */
TEST(equal_stages_are_alike) {
    g_autoptr(MtfGraph) graph = new_gpt(8, 8);
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(graph, 32);
    for (int u = 0; u < units->units; u++)
        for (int i = units->begin[u]; i < units->begin[u + 1]; i++)
            mtf_graph_operation(graph, i)->stage = u + 1;
    MtfStepVariant variant = { .microbatches = 4 };
    g_autoptr(MtfGraph) training = mtf_planning_executed_graph(graph, &variant, NULL);
    mtf_graph_complete_stages(training);
    g_autoptr(MtfStageSplit) split = mtf_stage_split(training, NULL);
    int middle = units->units / 2;
    const MtfGraph *one = g_ptr_array_index(split->graphs, middle);
    assert_int_equal(units->kind[middle], units->kind[middle + 2]);
    assert_true(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, middle + 2)));
    assert_false(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, middle + 1)));
    assert_false(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, 0)));
    assert_false(mtf_graphs_are_alike(one, g_ptr_array_index(split->graphs, units->units - 1)));
}
