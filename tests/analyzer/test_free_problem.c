// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/alternatives.h"
#include "analyzer/training_graph.h"
#include "layouts/graph_json.h"
#include "layouts/program.h"
#include "layouts/rules.h"
#include "tests/support/cmocka.h"
#include "tests/support/two_layer.h"

typedef struct {
    MtfGraph *graph;
    MtfMesh mesh;
    MtfMachine *machine;
    MtfPricer pricer;
    MtfFreeProblem *problem;
} Setup;

static void setup_init(Setup *setup, MtfGraph *graph, const char *mesh) {
    GError *error = NULL;
    setup->graph = graph;
    assert_true(mtf_mesh_parse(mesh, 0, &setup->mesh, NULL));
    setup->machine = mtf_machine_load("cpu-cluster", &error);
    assert_non_null(setup->machine);
    assert_true(mtf_pricer_init(&setup->pricer, setup->machine, &setup->mesh, &error));
    setup->problem = mtf_free_problem_new(graph, &setup->mesh, &setup->pricer, NULL, 0, &error);
    assert_non_null(setup->problem);
}

static void setup_clear(Setup *setup) {
    mtf_free_problem_free(setup->problem);
    mtf_machine_free(setup->machine);
    mtf_graph_free(setup->graph);
}

static MtfGraph *small_transformer(void) {
    GError *error = NULL;
    g_autoptr(MtfGraph) forward =
        mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, &error);
    assert_non_null(forward);
    MtfGraph *training = mtf_training_graph(forward, &error);
    assert_non_null(training);
    return training;
}

static int64_t program_price(const Setup *setup, const MtfLayout *layout) {
    GError *error = NULL;
    if (!mtf_layout_check(setup->graph, layout, &error))
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(setup->graph, layout);
    return mtf_price_program(&setup->pricer, program);
}

/* Random choices of every node: the problem's value is the price of the program they lower to. */
static void check_random_choices(Setup *setup, int rounds) {
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup->problem);
    int n = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new(int, n);
    for (int round = 0; round < rounds; round++) {
        for (int v = 0; v < n; v++)
            choice[v] =
                g_rand_int_range(random, 0, mtf_layout_problem_node(problem, v)->strategies);
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup->problem, choice);
        assert_int_equal(value.impossible, 0);
        assert_true((int64_t)value.cost == program_price(setup, layout));
    }
}

static void a_choice_costs_what_its_program_costs(void **state) {
    (void)state;
    Setup setup;
    setup_init(&setup, two_layer_graph(64, 32, 48), "r:2;c:3");
    check_random_choices(&setup, 300);
    setup_clear(&setup);
    setup_init(&setup, small_transformer(), "r:2;c:2");
    check_random_choices(&setup, 20);
    setup_clear(&setup);
}

/* A rule layout is one of the choices and costs no more there. */
static void rule_layouts_are_choices(void **state) {
    (void)state;
    Setup setup;
    setup_init(&setup, small_transformer(), "r:2;c:2");
    GError *error = NULL;
    g_autoptr(MtfRules) rules =
        mtf_rules_parse(setup.graph, &setup.mesh, "batch:r;d_ff:c;heads:c;vocab:c", NULL, &error);
    assert_non_null(rules);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(setup.graph, &setup.mesh, rules);
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    g_autofree int *choice = g_new(int, mtf_layout_problem_node_count(problem));
    assert_true(mtf_free_problem_choice(setup.problem, layout, choice));
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
    assert_true((int64_t)value.cost <= program_price(&setup, layout));
    setup_clear(&setup);
}

/* The local price of every alternative is the difference of two whole evaluations. */
static void alternatives_are_priced_as_whole_choices(void **state) {
    (void)state;
    Setup setup;
    setup_init(&setup, two_layer_graph(64, 32, 48), "r:2;c:3");
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    int n = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new(int, n);
    for (int v = 0; v < n; v++)
        choice[v] = g_rand_int_range(random, 0, mtf_layout_problem_node(problem, v)->strategies);
    MtfInt128 cost = mtf_layout_problem_evaluate(problem, choice).cost;
    for (int v = 0; v < n; v++) {
        g_autoptr(GArray) alternatives = mtf_alternatives(problem, choice, v);
        int chosen = choice[v];
        assert_int_equal(alternatives->len, mtf_layout_problem_node(problem, v)->strategies);
        for (guint i = 0; i < alternatives->len; i++) {
            const MtfAlternative *a = &g_array_index(alternatives, MtfAlternative, i);
            choice[v] = a->strategy;
            assert_true(mtf_layout_problem_evaluate(problem, choice).cost - cost == a->delta);
        }
        choice[v] = chosen;
    }
    setup_clear(&setup);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_costs_what_its_program_costs),
        cmocka_unit_test(rule_layouts_are_choices),
        cmocka_unit_test(alternatives_are_priced_as_whole_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
