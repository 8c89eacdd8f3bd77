// SPDX-License-Identifier: GPL-3.0-or-later
/* What is done beside the searches of a large graph is what would be done after them. */
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"
#include "tests/support/cases/parse_graph.h"

#define LAYERS 450 /* a step of these has more than MTF_LARGE_OPERATIONS */

typedef struct {
    MtfMachine *machine;
    MtfGraph *graph;
    GArray *meshes;
} Setup;

static int setup_init(void **state) {
    Setup *setup = g_new0(Setup, 1);
    MtfStepVariant plain = { .microbatches = 1 };
    g_autoptr(MtfGraph) written = mtf_test_layers(LAYERS, 64, 32, 128);
    setup->machine = mtf_planning_machine("h100", NULL, NULL);
    setup->graph = mtf_planning_executed_graph(written, &plain, NULL);
    setup->meshes = mtf_test_meshes("rows:2;cols:2");
    *state = setup;
    return 0;
}

static int setup_clear(void **state) {
    Setup *setup = *state;
    mtf_graph_free(setup->graph);
    mtf_machine_free(setup->machine);
    g_array_unref(setup->meshes);
    g_free(setup);
    return 0;
}

static MtfPlanSearchOptions options_of(const Setup *setup, double rival) {
    return (MtfPlanSearchOptions){ .machine = setup->machine,
                                   .memory_limit = setup->machine->memory_bytes,
                                   .rival_seconds = rival,
                                   .by_bound = true };
}

/* `rival`: seconds of another plan's step, 0: there is none; `look`: at the meshes, where that is done already. */
static MtfPlanAnswer search(const Setup *setup, bool settles, double rival,
                            const MtfFirstLook *look) {
    MtfPlanAnswer answer;
    GError *error = NULL;
    MtfPlanSearchOptions options = options_of(setup, rival);
    options.settles = settles;
    options.look = look;
    assert_true(mtf_plan_search(setup->graph, setup->meshes, &options, &answer, &error));
    assert_null(error);
    assert_true(answer.found);
    return answer;
}

static char *digest_of(const MtfGraph *graph, const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    return mtf_program_digest(program);
}

/* Whether there was a processor to settle a layout beside the proof is chance; what is settled is not. */
TEST(what_is_settled_beside_a_proof_is_what_is_settled_after_it) {
    const Setup *setup = *state;
    assert_true(setup->graph->operations->len > MTF_LARGE_OPERATIONS);
    MtfPlanAnswer beside = search(setup, true, 0, NULL), after = search(setup, false, 0, NULL);
    assert_null(after.settled.layout);
    assert_int_equal(beside.cost, after.cost);
    assert_int_equal(beside.free.bound, after.free.bound);
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&after, setup->graph);
    MtfSettling how = { .memory_limit = setup->machine->memory_bytes };
    g_autoptr(MtfProgram) program = mtf_layout_settle(setup->graph, layout, &after.pricer, &how);
    g_autofree char *expected = mtf_program_digest(program);
    MtfSettledLayout *settled = &beside.settled;
    if (settled->layout != NULL && beside.fastest == NULL) {
        g_autofree char *lowered = digest_of(setup->graph, settled->layout);
        g_autofree char *kept = mtf_program_digest(settled->program);
        assert_string_equal(lowered, expected);
        assert_string_equal(kept, expected);
        assert_ptr_equal(settled->program->layout, settled->layout);
    }
    mtf_plan_answer_clear(&beside);
    mtf_plan_answer_clear(&after);
}

/* Little is hidden here, so that a rival of two thirds of the step is out of reach. A first look would say so; where it
 * was beside another rival, the draft, which does not take twice as long, is kept without its proof. A rival that takes
 * as long changes nothing. */
TEST(a_proof_ends_where_its_bound_is_far_from_a_rival) {
    const Setup *setup = *state;
    MtfPlanAnswer alone = search(setup, true, 0, NULL);
    MtfPlanSearchOptions beside = options_of(setup, alone.step_seconds);
    g_autoptr(MtfFirstLook) look = mtf_plan_search_look(setup->graph, setup->meshes, &beside);
    MtfPlanAnswer near = search(setup, true, alone.step_seconds, look);
    MtfPlanAnswer far = search(setup, true, 2.0 / 3 * alone.step_seconds, look);
    assert_false(near.hopeless);
    assert_int_equal(near.cost, alone.cost);
    assert_int_equal(near.free.bound, alone.free.bound);
    assert_true(far.hopeless);
    assert_int_equal(far.free.bound, 0);
    mtf_plan_answer_clear(&alone);
    mtf_plan_answer_clear(&near);
    mtf_plan_answer_clear(&far);
}

int main(void) {
    return mtf_tests_run(setup_init, setup_clear);
}
