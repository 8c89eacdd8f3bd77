// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/settled_layout.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/plan_ending.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/placement/rules.h"

typedef struct {
    MtfGraph *written, *graph;
    MtfMachine *machine;
    MtfPricer pricer;
    MtfLayout *layout;
    MtfProgram *program;
    MtfStepVariant variant;
} Case;

/* A small Transformer, of which another order needs less and exchanges are worth joining. */
static void case_init(Case *c) {
    MtfMesh mesh;
    const MtfModelFamily *family = mtf_model_family_find("transformer-lm", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    *c = (Case){ .variant = { .microbatches = 1 } };
    assert_true(mtf_mesh_parse("rows:2;cols:2", 0, &mesh, NULL));
    c->written = mtf_model_build(family, preset, NULL, NULL);
    c->graph = mtf_planning_executed_graph(c->written, &c->variant, NULL);
    c->machine = mtf_planning_machine("tpu-v4", NULL, NULL);
    g_autoptr(MtfRules) rules =
        mtf_rules_parse(c->graph, &mesh, "batch:rows;d_ff:cols", NULL, NULL);
    assert_non_null(rules);
    c->layout = mtf_layout_from_rules(c->graph, &mesh, rules);
    assert_true(mtf_pricer_init(&c->pricer, c->machine, &mesh, NULL));
    MtfSettling how = { .memory_limit = INT64_MAX };
    c->program = mtf_layout_settle(c->graph, c->layout, &c->pricer, &how);
}

static void case_clear(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_machine_free(c->machine);
    mtf_graph_free(c->graph);
    mtf_graph_free(c->written);
}

static MtfPlan *end(const Case *c, bool file, char **notes, GError **error) {
    MtfPlanEnding ending = { .written = c->written,
                             .variant = &c->variant,
                             .program = c->program,
                             .pricer = &c->pricer,
                             .notes = true,
                             .file = file };
    return mtf_plan_end(&ending, mtf_graph_copy(c->graph), mtf_layout_copy(c->layout),
                        cJSON_CreateObject(), notes, error);
}

TEST(a_plan_is_the_same_however_many_threads_make_it) {
    Case c;
    case_init(&c);
    g_autofree char *alone = NULL, *beside = NULL;
    mtf_in_parallel_set_threads(1);
    g_autoptr(MtfPlan) one = end(&c, false, &alone, NULL);
    mtf_in_parallel_set_threads(8);
    g_autoptr(MtfPlan) many = end(&c, true, &beside, NULL);
    mtf_in_parallel_set_threads(0);
    assert_null(one->graph_text);
    assert_non_null(many->graph_text);
    g_autofree char *text = mtf_plan_print(one), *ahead = mtf_plan_print(many);
    assert_string_equal(text, ahead);
    assert_string_equal(alone, beside);
    case_clear(&c);
}

/* What another order and exchanges one by one would take is lowered, packed and scheduled here again. */
TEST(notes_tell_what_order_and_buckets_won) {
    Case c;
    case_init(&c);
    g_autofree char *notes = NULL;
    mtf_plan_free(end(&c, false, &notes, NULL));
    assert_non_null(c.layout->execution.order);
    assert_true(c.layout->execution.bucket_bytes > 0);
    g_autoptr(MtfLayout) written = mtf_layout_copy(c.layout), alone = mtf_layout_copy(c.layout);
    mtf_layout_set_order(written, NULL, 0);
    alone->execution.bucket_bytes = 0;
    g_autoptr(MtfProgram) in_order = mtf_lower(c.graph, written), apart = mtf_lower(c.graph, alone);
    g_autoptr(MtfArena) before = mtf_arena_pack(in_order), after = mtf_arena_pack(c.program);
    g_autoptr(MtfSchedule) slow = mtf_schedule_new(&c.pricer, apart);
    g_autoptr(MtfSchedule) fast = mtf_schedule_new(&c.pricer, c.program);
    g_autofree char *less = mtf_bytes_format((double)(before->bytes - after->bytes));
    g_autofree char *has = mtf_bytes_format((double)after->bytes);
    g_autofree char *won =
        mtf_seconds_format((double)(slow->nanoseconds - fast->nanoseconds) / 1e9);
    g_autofree char *order = g_strdup_printf("for a peak of %s, %s lower\n", has, less);
    g_autofree char *saved = g_strdup_printf("each, which saves %s\n", won);
    assert_non_null(strstr(notes, order));
    assert_non_null(strstr(notes, saved));
    case_clear(&c);
}

/* The layout without order and buckets, settled in a search of so many seconds. */
static MtfLayout *settled_in(const Case *c, double seconds) {
    MtfSearchControl control;
    MtfLayout *layout = mtf_layout_copy(c->layout);
    mtf_layout_set_order(layout, NULL, 0);
    layout->execution.bucket_bytes = 0;
    mtf_search_control_init(&control, seconds);
    MtfSettling how = { .memory_limit = INT64_MAX, .control = &control };
    mtf_program_free(mtf_layout_settle(c->graph, layout, &c->pricer, &how));
    return layout;
}

TEST(order_and_buckets_are_chosen_where_there_is_time) {
    Case c;
    case_init(&c);
    g_autoptr(MtfLayout) never = settled_in(&c, 1e-6), soon = settled_in(&c, 1e6);
    assert_null(never->execution.order);
    assert_int_equal(never->execution.bucket_bytes, 0);
    assert_int_equal(soon->execution.order_length, c.layout->execution.order_length);
    assert_int_equal(soon->execution.bucket_bytes, c.layout->execution.bucket_bytes);
    case_clear(&c);
}

TEST(a_variant_that_no_graph_can_be_made_of_fails) {
    g_autoptr(GError) error = NULL;
    Case c;
    case_init(&c);
    char *notes = NULL;
    c.variant.microbatches = 2;
    c.variant.batch_dim = "nothing";
    assert_null(end(&c, true, &notes, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_null(notes);
    case_clear(&c);
}
