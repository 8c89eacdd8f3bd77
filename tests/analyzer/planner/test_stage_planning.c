// SPDX-License-Identifier: GPL-3.0-or-later
/* What is not searched again: stages that a plan is known for, and plans that another beats. */
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/best_attempt.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/pipeline_planning.h"
#include "analyzer/planner/stage_planning.h"
#include "analyzer/planner/variant_search.h"
#include "cost/summary/framework_memory.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>

typedef struct {
    MtfMachine *machine;
    MtfGraph *written;
    MtfGraph *stage;             /* its training graph in four micro-batches */
    MtfStageExecution execution; /* two of them in flight */
    GArray *meshes;
    MtfStagePlanner planner;
} Case;

static MtfPlanSearchOptions options_of(const Case *c) {
    return (MtfPlanSearchOptions){ .machine = c->machine, .has_gap = true };
}

static void case_init(Case *c) {
    const MtfStepVariant variant = { .microbatches = 4, .batch_dim = "batch" };
    c->machine = mtf_planning_machine("cpu-host", NULL, NULL);
    c->written = mtf_graph_load("layouts/library/graphs/mlp.json", NULL, NULL);
    c->stage = mtf_planning_executed_graph(c->written, &variant, NULL);
    c->execution = (MtfStageExecution){ .in_flight = 2, .weight_versions = 1 };
    c->meshes = mtf_test_meshes("rows:2");
    MtfPlanSearchOptions search = options_of(c);
    mtf_stage_planner_init(&c->planner, &search, 0);
}

static void case_clear(Case *c) {
    mtf_stage_planner_clear(&c->planner);
    mtf_machine_free(c->machine);
    mtf_graph_free(c->written);
    mtf_graph_free(c->stage);
    g_array_unref(c->meshes);
}

static MtfPlan *plan(Case *c, MtfStagePlanner *planner, int64_t limit, MtfStageSeconds *seconds) {
    GError *error = NULL;
    const MtfStageTask task = { c->stage, c->execution, c->meshes, limit };
    mtf_stage_planner_next_row(planner, &task, 1);
    MtfPlan *found = mtf_stage_planner_plan(planner, 0, seconds, &error);
    assert_null(error);
    return found;
}

static double number_of(const MtfPlan *plan, const char *key) {
    return mtf_json_number_of(plan->predicted, key, -1);
}

/* The best under a limit is the best under a lower one that it fits in; under one that it does not fit in
 * the stage is searched again. */
TEST(less_room_asks_for_a_search_where_the_known_plan_does_not_fit) {
    Case c;
    MtfStageSeconds first, second, third;
    case_init(&c);
    g_autoptr(MtfPlan) most = plan(&c, &c.planner, c.machine->memory_bytes, &first);
    int64_t peak = (int64_t)number_of(most, "peak_memory_bytes");
    g_autoptr(MtfPlan) less = plan(&c, &c.planner, peak, &second);
    assert_int_equal(c.planner.known->len, 1);
    assert_string_equal(less->program_sha256, most->program_sha256);
    assert_memory_equal(&first, &second, sizeof first);
    g_autoptr(MtfPlan) least = plan(&c, &c.planner, peak - 1, &third);
    assert_true(least == NULL || number_of(least, "peak_memory_bytes") < (double)peak);
    assert_int_equal(c.planner.known->len, least == NULL ? 1 : 2);
    case_clear(&c);
}

/* Weight gradients apart from input gradients are another order of the same operations: the known
 * layout costs what one costs that is searched for them. */
TEST(another_order_of_passes_takes_the_known_layout) {
    Case c;
    MtfStageSeconds whole, split, own;
    case_init(&c);
    mtf_plan_free(plan(&c, &c.planner, c.machine->memory_bytes, &whole));
    c.execution.splits_backward = true;
    mtf_plan_free(plan(&c, &c.planner, c.machine->memory_bytes, &split));
    assert_int_equal(c.planner.known->len, 1);
    MtfStagePlanner fresh;
    MtfPlanSearchOptions search = options_of(&c);
    mtf_stage_planner_init(&fresh, &search, 0);
    mtf_plan_free(plan(&c, &fresh, c.machine->memory_bytes, &own));
    assert_true(whole.weight_gradient <= 0 && split.weight_gradient > 0);
    assert_float_equal(split.forward, own.forward, 1e-12);
    assert_float_equal(split.input_gradient, own.input_gradient, 1e-12);
    assert_float_equal(split.weight_gradient, own.weight_gradient, 1e-12);
    mtf_stage_planner_clear(&fresh);
    case_clear(&c);
}

/* Beside a stage the next is searched that is not alike: with the plan of a search alone, or none where it fits
 * nowhere. Alike stages are searched once. */
TEST(the_next_stage_that_differs_is_searched_beside) {
    const MtfStepVariant halves = { .microbatches = 2, .batch_dim = "batch" };
    const MtfStageExecution one = { .in_flight = 1, .weight_versions = 1 };
    Case c, alone;
    MtfStageSeconds first, second, third, own;
    GError *error = NULL;
    case_init(&c);
    case_init(&alone);
    int64_t room = c.machine->memory_bytes;
    g_autoptr(MtfGraph) other = mtf_planning_executed_graph(c.written, &halves, NULL);
    const MtfStageTask tasks[] = { { c.stage, c.execution, c.meshes, room },
                                   { c.stage, one, c.meshes, room },
                                   { other, one, c.meshes, room },
                                   { other, one, c.meshes, 1 } };
    mtf_stage_planner_next_row(&c.planner, tasks, 4);
    mtf_plan_free(mtf_stage_planner_plan(&c.planner, 0, &first, &error));
    assert_int_equal(c.planner.ahead->len, 1);
    mtf_plan_free(mtf_stage_planner_plan(&c.planner, 1, &second, &error));
    g_autoptr(MtfPlan) beside = mtf_stage_planner_plan(&c.planner, 2, &third, &error);
    assert_int_equal(c.planner.ahead->len, 0);
    assert_int_equal(c.planner.known->len, 2);
    assert_memory_equal(&first, &second, sizeof first);
    mtf_graph_free(alone.stage);
    alone.stage = mtf_graph_copy(other);
    alone.execution = one;
    g_autoptr(MtfPlan) same = plan(&alone, &alone.planner, room, &own);
    assert_string_equal(beside->program_sha256, same->program_sha256);
    assert_memory_equal(&third, &own, sizeof own);
    mtf_stage_planner_next_row(&alone.planner, &tasks[2], 2);
    assert_null(mtf_stage_planner_plan(&alone.planner, 1, &own, &error));
    assert_null(error);
    case_clear(&c);
    case_clear(&alone);
}

static MtfPipelineRequest request_of(const Case *c) {
    MtfPipelineRequest request = { .written = c->written,
                                   .stages = 2,
                                   .chunks = 1,
                                   .schedule = "1f1b",
                                   .form = { .microbatches = 4, .batch_dim = "batch" },
                                   .meshes = c->meshes,
                                   .search = options_of(c) };
    request.search.memory_limit = c->machine->memory_bytes;
    return request;
}

/* A rival of half the step ends the search; one of twice changes nothing. */
TEST(a_pipeline_that_another_plan_beats_is_given_up) {
    Case c;
    GError *error = NULL;
    case_init(&c);
    MtfPipelineRequest request = request_of(&c);
    g_autoptr(MtfPipelinePlan) alone = mtf_pipeline_search(&request, &error);
    assert_null(error);
    double step = mtf_json_number_of(alone->predicted, "step_seconds", 0);
    request.rival_seconds = 2 * step;
    g_autoptr(MtfPipelinePlan) beside = mtf_pipeline_search(&request, &error);
    assert_non_null(beside);
    assert_true(mtf_json_number_of(beside->predicted, "step_seconds", 0) == step);
    request.rival_seconds = step / 4;
    assert_null(mtf_pipeline_search(&request, &error));
    assert_true(g_error_matches(error, MTF_ERROR, MTF_ERROR_FAILED));
    g_clear_error(&error);
    case_clear(&c);
}

static MtfGraph *new_gpt(void) {
    MtfModelSettings settings = mtf_model_settings(&mtf_model_gpt.presets[0]);
    settings.layers = 2;
    settings.batch = 8;
    settings.length = 64;
    settings.d_model = 64;
    settings.d_ff = 256;
    settings.heads = 4;
    settings.d_kv = 16;
    settings.vocab = 256;
    // cppcheck-suppress returnDanglingLifetime ; a graph holds none of its settings
    return mtf_model_gpt.build(&settings, NULL);
}

/* For a framework that keeps scores, which programs of our own do not. */
static void case_init_gpt(Case *c, const char *mesh) {
    case_init(c);
    mtf_machine_free(c->machine);
    mtf_graph_free(c->written);
    g_array_unref(c->meshes);
    c->machine = mtf_planning_machine("a100", "megatron-2021", NULL);
    c->written = new_gpt();
    c->meshes = mtf_test_meshes(mesh);
}

/* Between what programs of our own take and what the software does, other layouts of the stages are found. */
TEST(stages_that_the_software_has_no_memory_for_are_planned_with_less) {
    Case c;
    GError *error = NULL;
    case_init_gpt(&c, "rows:2");
    MtfPipelineRequest request = request_of(&c);
    g_autoptr(MtfPipelinePlan) first = mtf_pipeline_search(&request, &error);
    assert_null(error);
    double peak = mtf_json_number_of(first->predicted, "peak_memory_bytes", 0);
    double given = mtf_json_number_of(first->predicted, "given_bytes", 0);
    assert_true(peak < given);
    request.search.memory_limit = (int64_t)((peak + given) / 2);
    g_autoptr(MtfPipelinePlan) within = mtf_pipeline_search(&request, &error);
    assert_null(error);
    assert_true(mtf_json_number_of(within->predicted, "given_bytes", INFINITY) <=
                (double)request.search.memory_limit);
    case_clear(&c);
}

static double variant_step(const Case *c, double rival, bool *given_up) {
    MtfVariantAnswer answer;
    GError *error = NULL;
    MtfVariantSearchOptions options = { .written = c->written,
                                        .machine = c->machine,
                                        .meshes = c->meshes,
                                        .microbatches = 1,
                                        .recompute = MTF_RECOMPUTE_NONE,
                                        .key_parts = 1,
                                        .memory_limit = c->machine->memory_bytes,
                                        .gap = NAN,
                                        .rival_seconds = rival };
    assert_true(mtf_variant_search(&options, &answer, &error));
    assert_null(error);
    double step = answer.answer.found ? answer.answer.step_seconds : INFINITY;
    *given_up = answer.given_up;
    mtf_variant_answer_clear(&answer);
    return step;
}

/* What the software needs for the plan of a search within `limit`. */
static double needed_within(const Case *c, const MtfGraph *graph, int64_t limit,
                            MtfPlanAnswer *answer) {
    MtfPlanSearchOptions options = { .machine = c->machine, .memory_limit = limit, .runs = true };
    assert_true(mtf_plan_search(graph, c->meshes, &options, answer, NULL));
    assert_true(answer->found);
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(answer, graph);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    return mtf_framework_memory(program, c->machine->software).given;
}

/* Within a little less than the software needs for the fastest layout, whose program fits, one of those found under
 * lower limits is the plan. */
TEST(a_layout_that_the_software_can_run_is_taken_where_it_is_nearly_as_fast) {
    Case c;
    const MtfStepVariant variant = { .microbatches = 1, .fuses = true };
    MtfPlanAnswer fastest, within;
    case_init_gpt(&c, "all:4");
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(c.written, &variant, NULL);
    double needed = needed_within(&c, graph, c.machine->memory_bytes, &fastest);
    int64_t limit = (int64_t)(0.95 * needed);
    assert_false(fastest.runs);
    assert_true(needed_within(&c, graph, limit, &within) <= (double)limit);
    assert_true(within.runs && within.cost == fastest.cost);
    assert_true(within.step_seconds <= MTF_NEAR_STEP * fastest.step_seconds);
    mtf_plan_answer_clear(&fastest);
    mtf_plan_answer_clear(&within);
    case_clear(&c);
}

/* What takes more than twice a rival's step when it is found is left as it is, where its bound alone does
 * not rule it out; a rival of a longer step changes nothing. */
TEST(a_step_twice_as_long_as_a_rivals_is_left_as_it_was_found) {
    Case c;
    bool given_up;
    case_init(&c);
    mtf_machine_free(c.machine);
    c.machine = mtf_planning_machine("a100", "meshtf", NULL);
    double step = variant_step(&c, 0, &given_up);
    assert_false(given_up);
    assert_true(variant_step(&c, 1.1 * step, &given_up) == step);
    assert_false(given_up);
    double found = variant_step(&c, 0.4 * step, &given_up);
    assert_true(given_up && isfinite(found) && found >= step);
    case_clear(&c);
}
