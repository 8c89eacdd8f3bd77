// SPDX-License-Identifier: GPL-3.0-or-later
/* What is done beside the searches of a large graph is what would be done after them. */
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"
#include "layouts/program/passes.h"
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

static MtfPlanAnswer search(const Setup *setup, bool settles) {
    MtfPlanAnswer answer;
    GError *error = NULL;
    MtfPlanSearchOptions options = { .machine = setup->machine,
                                     .memory_limit = setup->machine->memory_bytes,
                                     .settles = settles };
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
static void what_is_settled_beside_a_proof_is_what_is_settled_after_it(void **state) {
    const Setup *setup = *state;
    assert_true(setup->graph->operations->len > MTF_LARGE_OPERATIONS);
    MtfPlanAnswer beside = search(setup, true), after = search(setup, false);
    assert_null(after.settled.layout);
    assert_int_equal(beside.cost, after.cost);
    assert_int_equal(beside.free.bound, after.free.bound);
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&after, setup->graph);
    g_autoptr(MtfProgram) program = mtf_layout_settle(setup->graph, layout, &after.pricer,
                                                      setup->machine->memory_bytes, NULL, NULL);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_settled_beside_a_proof_is_what_is_settled_after_it),
    };
    return cmocka_run_group_tests(tests, setup_init, setup_clear);
}
