// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans of cut graphs beside those made by hand, and under less and more memory. */
#include "tests/support/cmocka.h"

#include "analyzer/cuts/cut_planning.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>
#include <string.h>

/* What a search of a stage may miss its optimum by where nothing else is asked for. */
#define STAGE_GAP 0.005

static const int one_chunk[] = { 1, 0 }, any_chunks[] = { 1, 2, 4, 0 };

static MtfGraph *new_perceptron(void) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_mlp.presets[0]);
    settings.layers = 8;
    settings.batch = 1024;
    settings.features = settings.d_ff = 512;
    // cppcheck-suppress returnDanglingLifetime ; a graph holds none of its settings
    return mtf_model_mlp.build(&settings, NULL);
}

static MtfGraph *new_gpt(void) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_gpt.presets[0]);
    settings.layers = 2;
    settings.batch = 16;
    settings.length = 64;
    settings.d_model = 32;
    settings.d_ff = 128;
    settings.heads = 2;
    settings.d_kv = 16;
    settings.vocab = 256;
    // cppcheck-suppress returnDanglingLifetime ; a graph holds none of its settings
    return mtf_model_gpt.build(&settings, NULL);
}

/* Two stages of two devices each. */
static MtfCutPlanning planning_of(const MtfGraph *graph, const MtfMachine *machine,
                                  const char *schedule) {
    bool any = strcmp(schedule, MTF_ANY_SCHEDULE) == 0;
    int64_t memory = machine->memory_bytes;
    return (MtfCutPlanning){
        .cut = { .forward = graph,
                 .machine = machine,
                 .devices = 4,
                 .memory = memory,
                 .stages = 2,
                 .microbatches = 4,
                 .recompute = MTF_RECOMPUTES,
                 .chunks = any ? any_chunks : one_chunk,
                 .max_axes = 2 },
        .pipeline = { .written = graph,
                      .stages = 2,
                      .chunks = 1,
                      .schedule = schedule,
                      .form = { .microbatches = 4, .fuses = machine->software != NULL },
                      .search = { .machine = machine,
                                  .memory_limit = memory,
                                  .has_gap = true,
                                  .gap = STAGE_GAP } },
    };
}

static double step_of(const MtfPipelinePlan *plan) {
    return plan != NULL ? mtf_json_number_of(plan->predicted, "step_seconds", 0) : INFINITY;
}

/* The step within so much memory, INFINITY where nothing fits; each of its stages does. */
static double step_within(MtfCutPlanning *planning, int64_t memory, double *most_bytes) {
    MtfCutAnswer answer;
    GError *error = NULL;
    planning->cut.memory = planning->pipeline.search.memory_limit = memory;
    bool found = mtf_cut_planning_search(planning, &answer, &error);
    assert_true(found || g_error_matches(error, MTF_ERROR, MTF_ERROR_FIT));
    double step = step_of(answer.plan), most = 0;
    for (guint s = 0; found && s < answer.plan->stages->len; s++)
        most = fmax(most, mtf_json_number_of(mtf_pipeline_stage(answer.plan, (int)s)->predicted,
                                             "peak_memory_bytes", INFINITY));
    assert_true(most <= (double)memory);
    if (most_bytes != NULL)
        *most_bytes = most;
    g_clear_error(&error);
    mtf_cut_answer_clear(&answer);
    return step;
}

/* A pipeline of stages of equal work, which mtf_pipeline_search cuts by itself. */
static double equal_step(const MtfCutPlanning *planning) {
    MtfPipelineRequest request = planning->pipeline;
    g_autoptr(GArray) meshes = mtf_test_meshes("all:2");
    request.meshes = meshes;
    g_autoptr(MtfPipelinePlan) plan = mtf_pipeline_search(&request, NULL);
    return step_of(plan);
}

TEST(never_slower_than_stages_of_equal_work) {
    static const char *const schedules[] = { "1f1b", "zb-h1", "gpipe" };
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    for (int turn = 0; turn < 2; turn++) {
        g_autoptr(MtfGraph) graph = turn == 0 ? new_perceptron() : new_gpt();
        for (gsize i = 0; i < (turn == 0 ? G_N_ELEMENTS(schedules) : 1); i++) {
            MtfCutPlanning planning = planning_of(graph, machine, schedules[i]);
            double equal = equal_step(&planning);
            assert_true(isfinite(equal));
            assert_true(step_within(&planning, machine->memory_bytes, NULL) <= equal);
        }
    }
}

/* One way for all stages of equal layers: Megatron-LM's best. */
TEST(never_slower_than_the_best_of_megatron) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("a100", NULL, NULL);
    g_autoptr(MtfGraph) graph = new_gpt();
    MtfCutPlanning planning = planning_of(graph, machine, "1f1b");
    double own = step_within(&planning, machine->memory_bytes, NULL);
    planning.cut.megatron = true;
    double megatron = step_within(&planning, machine->memory_bytes, NULL);
    assert_true(isfinite(megatron) && own <= megatron);
}

/* Within less memory steps are longer, or nothing fits; but for what a search of stages may miss. */
TEST(more_memory_never_makes_a_step_longer) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    for (int turn = 0; turn < 2; turn++) {
        g_autoptr(MtfGraph) graph = turn == 0 ? new_perceptron() : new_gpt();
        MtfCutPlanning planning = planning_of(graph, machine, "1f1b");
        double most, last = INFINITY;
        assert_true(isfinite(step_within(&planning, machine->memory_bytes, &most)));
        int fit = 0;
        for (int share = 55; share <= 115; share += turn == 0 ? 15 : 60) {
            double step = step_within(&planning, (int64_t)(most * share / 100), NULL);
            assert_true(step <= last * (1 + STAGE_GAP) || (isinf(step) && isinf(last)));
            fit += isfinite(step);
            last = step;
        }
        assert_true(fit >= 2);
    }
}

/* The model adds up its units' bytes: it must not take what crosses between two of a stage for kept. One layout
 * made by hand for all stages, so that plans differ from the model in nothing else, but for what orders of
 * instructions save. */
TEST(bytes_of_a_cut_are_those_of_its_stages) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("a100", NULL, NULL);
    MtfModelSettings settings = mtf_model_settings(&mtf_model_gpt.presets[0]);
    settings.layers = 8;
    settings.batch = settings.length = 64;
    settings.d_model = settings.d_ff = 32;
    settings.heads = 2;
    settings.d_kv = 16;
    settings.vocab = 64;
    g_autoptr(MtfGraph) graph = mtf_model_gpt.build(&settings, NULL);
    MtfCutPlanning planning = planning_of(graph, machine, "1f1b");
    planning.cut.devices = 8;
    planning.cut.stages = planning.pipeline.stages = 4;
    planning.cut.microbatches = planning.pipeline.form.microbatches = 32;
    planning.cut.recompute = MTF_RECOMPUTE_LAYERS;
    planning.cut.megatron = true;
    MtfCutAnswer answer;
    assert_true(mtf_cut_planning_search(&planning, &answer, NULL));
    assert_int_equal(answer.plan->stages->len, 4);
    for (int s = 0; s < 4; s++) {
        double model = g_array_index(answer.cut->stages, MtfCutStage, s).bytes;
        double planned = mtf_json_number_of(mtf_pipeline_stage(answer.plan, s)->predicted,
                                            "peak_memory_bytes", INFINITY);
        assert_true(model > 0.98 * planned && model < 1.15 * planned);
    }
    mtf_cut_answer_clear(&answer);
}

TEST(what_fits_nowhere_is_said) {
    MtfCutAnswer answer;
    GError *error = NULL;
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfGraph) graph = new_gpt();
    MtfCutPlanning planning = planning_of(graph, machine, "1f1b");
    planning.cut.memory = planning.pipeline.search.memory_limit = 4096;
    assert_false(mtf_cut_planning_search(&planning, &answer, &error));
    assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_FIT));
    g_clear_error(&error);
    mtf_cut_answer_clear(&answer);
}

/* A batch of one has no micro-batches. */
TEST(a_batch_that_cannot_be_divided_is_bad_input) {
    MtfCutAnswer answer;
    GError *error = NULL;
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    MtfModelSettings settings = mtf_model_settings(&mtf_model_mlp.presets[0]);
    settings.batch = 1;
    g_autoptr(MtfGraph) graph = mtf_model_mlp.build(&settings, NULL);
    MtfCutPlanning planning = planning_of(graph, machine, "1f1b");
    planning.cut.microbatches = planning.pipeline.form.microbatches = 0;
    assert_false(mtf_cut_planning_search(&planning, &answer, &error));
    assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_INPUT));
    g_clear_error(&error);
    mtf_cut_answer_clear(&answer);
}
