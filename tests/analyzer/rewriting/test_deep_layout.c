// SPDX-License-Identifier: GPL-3.0-or-later
/* Layouts of few layers as layouts of all: what follows from rules on both is the same. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "analyzer/rewriting/deep_layout.h"
#include "analyzer/rewriting/shallow_graph.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/parse_graph.h"

#define LAYERS 10
#define FEW 4

typedef struct {
    MtfMesh mesh;
    MtfGraph *deep, *shallow; /* steps */
} Setup;

static int setup_init(void **state) {
    Setup *setup = g_new0(Setup, 1);
    MtfStepVariant plain = { .microbatches = 1 };
    g_autoptr(MtfGraph) written = mtf_test_layers(LAYERS, 8, 4, 16);
    g_autoptr(MtfGraph) few = mtf_graph_shallow(written, FEW);
    setup->deep = mtf_planning_executed_graph(written, &plain, NULL);
    setup->shallow = mtf_planning_executed_graph(few, &plain, NULL);
    assert_true(mtf_mesh_parse("rows:2;cols:2", 0, &setup->mesh, NULL));
    *state = setup;
    return 0;
}

static int setup_clear(void **state) {
    Setup *setup = *state;
    mtf_graph_free(setup->deep);
    mtf_graph_free(setup->shallow);
    g_free(setup);
    return 0;
}

static MtfLayout *deepen(const Setup *setup, const MtfLayout *few) {
    g_autoptr(MtfDeepening) deepening = mtf_deepening_new(setup->deep, setup->shallow, FEW);
    assert_non_null(deepening);
    return mtf_deepening_layout(deepening, few);
}

static MtfLayout *layout_of_rules(const Setup *setup, const MtfGraph *graph) {
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &setup->mesh, "b:rows;e:cols", NULL, NULL);
    assert_non_null(rules);
    return mtf_layout_from_rules(graph, &setup->mesh, rules);
}

TEST(rules_of_few_layers_become_those_of_all) {
    const Setup *setup = *state;
    g_autoptr(MtfLayout) few = layout_of_rules(setup, setup->shallow);
    g_autoptr(MtfLayout) all = layout_of_rules(setup, setup->deep);
    g_autoptr(MtfLayout) deepened = deepen(setup, few);
    assert_non_null(deepened);
    assert_int_equal(deepened->n_tensors, all->n_tensors);
    assert_int_equal(deepened->n_operations, all->n_operations);
    for (int t = 0; t < all->n_tensors; t++)
        assert_true(mtf_placement_equal(&deepened->tensors[t], &all->tensors[t]));
    for (int i = 0; i < all->n_operations; i++)
        assert_true(mtf_strategy_equal(&deepened->operations[i], &all->operations[i]));
}

/* Of 10 layers 0, 1, 8 and 9 were laid out: 1 stands for 1 to 4 and 8 for 5 to 8. */
TEST(layers_that_were_left_stand_for_as_many_each) {
    const Setup *setup = *state;
    g_autoptr(MtfLayout) few = layout_of_rules(setup, setup->shallow);
    int e = mtf_graph_find_dimension(setup->shallow, "e");
    int d = mtf_graph_find_dimension(setup->shallow, "d");
    int one = mtf_graph_find_tensor(setup->shallow, "layer/1/w");
    MtfPlacement placement = mtf_placement_replicated();
    placement.axis[1] = (int16_t)d;
    few->tensors[one] = placement;
    mtf_layout_set_gathered_copy(few, one, MTF_PHASE_BACKWARD, &placement);
    g_autoptr(MtfLayout) all = deepen(setup, few);
    assert_non_null(all);
    for (int i = 0; i < LAYERS; i++) {
        g_autofree char *name = g_strdup_printf("layer/%d/w", i);
        int tensor = mtf_graph_find_tensor(setup->deep, name);
        bool as_one = i >= 1 && i <= 4;
        assert_int_equal(all->tensors[tensor].axis[1], as_one ? d : e);
        assert_int_equal(all->gathered_copies[tensor * MTF_PHASES + MTF_PHASE_BACKWARD].given,
                         as_one);
    }
}

/* A step that recomputes its layers has operations that one which keeps all has none for. */
TEST(steps_of_another_kind_have_no_layout_in_common) {
    const Setup *setup = *state;
    MtfStepVariant again = { .microbatches = 1, .recompute = MTF_RECOMPUTE_LAYERS };
    g_autoptr(MtfGraph) written = mtf_test_layers(LAYERS, 8, 4, 16);
    g_autoptr(MtfGraph) deep = mtf_planning_executed_graph(written, &again, NULL);
    assert_null(mtf_deepening_new(deep, setup->shallow, FEW));
}

static int find_operation(const MtfGraph *graph, const char *name) {
    int found = mtf_graph_find_operation(graph, name);
    assert_true(found >= 0);
    return found;
}

/* The last layer stands for itself, and layer 1 for 1 to 4. */
TEST(an_operation_of_the_few_is_that_in_the_middle_of_those_it_stands_for) {
    const Setup *setup = *state;
    g_autoptr(MtfDeepening) deepening = mtf_deepening_new(setup->deep, setup->shallow, FEW);
    static const char *const pairs[][2] = { { "layer/9/p", "layer/9/p" },
                                            { "layer/1/p", "layer/3/p" } };
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++)
        assert_int_equal(
            mtf_deepening_operation(deepening, find_operation(setup->shallow, pairs[i][0])),
            find_operation(setup->deep, pairs[i][1]));
}

int main(void) {
    return mtf_tests_run(setup_init, setup_clear);
}
