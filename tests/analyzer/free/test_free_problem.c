// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/alternatives.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "analyzer/solver/search/layout_solve.h"
#include "cost/memory/arena.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/cases/free_setup.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/two_layer.h"
#include "tests/support/cmocka.h"

#include <string.h>

static MtfGraph *small_transformer(int microbatches) {
    GError *error = NULL;
    g_autoptr(MtfGraph) forward =
        mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, &error);
    assert_non_null(forward);
    MtfGraph *training = mtf_test_microbatches(forward, microbatches, &error);
    assert_non_null(training);
    return training;
}

static int64_t program_price(const MtfFreeSetup *setup, const MtfLayout *layout) {
    GError *error = NULL;
    if (!mtf_layout_check(setup->graph, layout, &error))
        fail_msg("%s", error->message);
    g_autoptr(MtfProgram) program = mtf_lower(setup->graph, layout);
    return mtf_price_program(&setup->pricer, program);
}

/* Random choices of every node: the problem's value is the price of the program they lower to. */
static void check_random_choices(MtfFreeSetup *setup, int rounds) {
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

TEST(a_choice_costs_what_its_program_costs) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, two_layer_graph(64, 32, 48), "r:2;c:3");
    check_random_choices(&setup, 300);
    mtf_free_setup_clear(&setup);
    mtf_free_setup_init(&setup, small_transformer(1), "r:2;c:2");
    check_random_choices(&setup, 20);
    mtf_free_setup_clear(&setup);
}

TEST(so_does_one_of_micro_batches) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, small_transformer(4), "r:2;c:2");
    check_random_choices(&setup, 20);
    mtf_free_setup_clear(&setup);
}

/* A framework launches local steps of the forward and the backward pass at prices of their own, and those of
 * updates at none. */
TEST(so_does_one_of_a_framework) {
    MtfFreeSetup setup;
    mtf_free_setup_init_on(&setup, small_transformer(1), "r:2;c:2", "h100", "megatron-core");
    check_random_choices(&setup, 20);
    mtf_free_setup_clear(&setup);
    mtf_free_setup_init_on(&setup, small_transformer(4), "r:2;c:2", "v100", "torchtitan");
    check_random_choices(&setup, 20);
    mtf_free_setup_clear(&setup);
}

/* h is kept split; three products of each phase want it whole. */
static const char *const two_phases =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 64, 'b': 32, 'c': 16},"
    " 'inputs': [{'name': 'x', 'dims': ['a', 'b'], 'feed': 'features'}],"
    " 'variables': [{'name': 'w', 'dims': ['b', 'c'], 'init': 'ones'}],"
    " 'operations': [{'name': 'h', 'op': 'relu', 'inputs': ['x']},"
    " {'name': 'q', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['a', 'c']},"
    " {'name': 'k', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['a', 'c']},"
    " {'name': 'v', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['a', 'c']},"
    " {'name': 'wq', 'op': 'einsum', 'inputs': ['h', 'q'], 'dims': ['b', 'c'],"
    "  'phase': 'backward'},"
    " {'name': 'wk', 'op': 'einsum', 'inputs': ['h', 'k'], 'dims': ['b', 'c'],"
    "  'phase': 'backward'}]}";

static int count_allgathers(const MtfProgram *program) {
    int n = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        n += instruction->kind == MTF_INSTRUCTION_RESHARD &&
             instruction->reshard.kind == MTF_RESHARD_ALLGATHER;
    }
    return n;
}

/* h kept split on batch, everything that reads it in copies: five gathers, three in the forward
 * phase. A whole reading there leaves one and saves the price of two; h is gathered no less often
 * in the backward phase. */
TEST(one_copy_serves_all_consumers_of_a_phase) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, mtf_test_graph(two_phases), "r:2");
    int h = mtf_graph_find_tensor(setup.graph, "h");
    MtfPlacement whole = mtf_placement_replicated(), split = whole;
    split.axis[0] = (int16_t)mtf_graph_find_dimension(setup.graph, "a");
    g_autoptr(MtfLayout) layout = mtf_layout_new(setup.graph, &setup.mesh);
    layout->tensors[h] = split;
    g_autoptr(MtfProgram) apart = mtf_lower(setup.graph, layout);
    g_autoptr(MtfProgram) path = mtf_lower_path(setup.graph, layout, h, &split, &whole);
    mtf_layout_set_gathered_copy(layout, h, MTF_PHASE_FORWARD, &whole);
    g_autoptr(MtfProgram) together = mtf_lower(setup.graph, layout);
    assert_int_equal(count_allgathers(apart), 5);
    assert_int_equal(count_allgathers(together), 3);
    assert_true(mtf_price_program(&setup.pricer, path) > 0);
    assert_int_equal(mtf_price_program(&setup.pricer, apart) -
                         mtf_price_program(&setup.pricer, together),
                     2 * mtf_price_program(&setup.pricer, path));
    mtf_free_setup_clear(&setup);
}

/* A reading in the kept placement is no copy: the same program. */
TEST(a_reading_in_the_kept_placement_costs_nothing) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, mtf_test_graph(two_phases), "r:2");
    int h = mtf_graph_find_tensor(setup.graph, "h");
    g_autoptr(MtfLayout) layout = mtf_layout_new(setup.graph, &setup.mesh);
    g_autoptr(MtfProgram) without = mtf_lower(setup.graph, layout);
    mtf_layout_set_gathered_copy(layout, h, MTF_PHASE_FORWARD, &layout->tensors[h]);
    g_autoptr(MtfProgram) with = mtf_lower(setup.graph, layout);
    g_autofree char *a = mtf_program_digest(without), *b = mtf_program_digest(with);
    assert_string_equal(a, b);
    mtf_free_setup_clear(&setup);
}

/* A copy made for the last phase stands for the tensor from then on, so the problem's peak of any
 * choice is no more than what its program keeps live. */
TEST(the_problem_models_memory_from_below) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, small_transformer(1), "r:2;c:2");
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    int n = mtf_layout_problem_node_count(problem);
    g_autofree int *choice = g_new(int, n);
    for (int round = 0; round < 200; round++) {
        for (int v = 0; v < n; v++)
            choice[v] =
                g_rand_int_range(random, 0, mtf_layout_problem_node(problem, v)->strategies);
        MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup.problem, choice);
        g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
        assert_true((int64_t)value.peak <= mtf_arena_lower_bound(program));
    }
    mtf_free_setup_clear(&setup);
}

TEST(phases_that_share_a_copy_have_nodes_of_their_own) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, mtf_test_graph(two_phases), "r:2");
    assert_true(mtf_free_problem_find_node(setup.problem, "h@forward") >= 0);
    assert_true(mtf_free_problem_find_node(setup.problem, "h@backward") >= 0);
    assert_int_equal(mtf_free_problem_find_node(setup.problem, "q@forward"), -1);
    check_random_choices(&setup, 300);
    mtf_free_setup_clear(&setup);
}

/* s reads h twice: both copies are paid (PaSE loses one of two edges between the same pair). h is
 * made split and s wants it whole, so the gather is paid twice. */
TEST(two_edges_between_the_same_pair_are_both_paid) {
    MtfFreeSetup setup;
    mtf_free_setup_init(
        &setup,
        mtf_test_graph("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 64, 'b': 32},"
                       " 'inputs': [{'name': 'x', 'dims': ['a', 'b'], 'feed': 'features'}],"
                       " 'variables': [], 'operations': ["
                       " {'name': 'h', 'op': 'relu', 'inputs': ['x']},"
                       " {'name': 's', 'op': 'einsum', 'inputs': ['h', 'h'], 'dims': ['b']}]}"),
        "r:2");
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    int between = 0, h = mtf_free_problem_find_node(setup.problem, "h");
    int s = mtf_free_problem_find_node(setup.problem, "s");
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        between += edge->from == h && edge->to == s;
    }
    assert_int_equal(between, 2);
    g_autoptr(MtfLayout) layout = mtf_layout_new(setup.graph, &setup.mesh);
    layout->operations[0].axis[0] = 0; /* h split on a */
    layout->tensors[mtf_graph_find_tensor(setup.graph, "h")].axis[0] = 0;
    g_autoptr(MtfProgram) program = mtf_lower(setup.graph, layout);
    assert_int_equal(count_allgathers(program), 2);
    g_autofree int *choice = g_new(int, mtf_layout_problem_node_count(problem));
    assert_true(mtf_free_problem_choice(setup.problem, layout, choice));
    assert_true((int64_t)mtf_layout_problem_evaluate(problem, choice).cost ==
                mtf_price_program(&setup.pricer, program));
    mtf_free_setup_clear(&setup);
}

/* A rule layout is one of the choices and costs no more there. */
TEST(rule_layouts_are_choices) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, small_transformer(1), "r:2;c:2");
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
    mtf_free_setup_clear(&setup);
}

/* The local price of every alternative is the difference of two whole evaluations. */
TEST(alternatives_are_priced_as_whole_choices) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, two_layer_graph(64, 32, 48), "r:2;c:3");
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
    mtf_free_setup_clear(&setup);
}

/* As `search --dump-problem` writes it and `solve` reads it. */
TEST(a_written_problem_is_solved_like_the_one_in_memory) {
    int64_t limit = MTF_NO_LIMIT;
    for (int round = 0; round < 2; round++) {
        MtfFreeSetup setup;
        mtf_free_setup_init(&setup, small_transformer(1), "r:2;c:2");
        g_autoptr(MtfLayoutProblem) problem =
            mtf_layout_problem_copy(mtf_free_problem_get(setup.problem));
        mtf_layout_problem_set_limit(problem, limit);
        g_autofree char *text = mtf_layout_problem_print(problem);
        g_autoptr(MtfLayoutProblem) read =
            mtf_layout_problem_parse("text", text, strlen(text), NULL);
        assert_non_null(read);
        MtfSolveOptions options = { .work = 6, .gap = 0.001 };
        g_autoptr(MtfLayoutSolution) here = mtf_layout_solve(problem, &options, NULL, NULL);
        g_autoptr(MtfLayoutSolution) there = mtf_layout_solve(read, &options, NULL, NULL);
        assert_non_null(here);
        assert_non_null(there);
        assert_true(here->cost == there->cost && here->bound == there->bound);
        assert_memory_equal(here->choice, there->choice,
                            (gsize)mtf_layout_problem_node_count(problem) * sizeof(int));
        /* The second time with a limit that this choice would break. */
        limit = (int64_t)mtf_layout_problem_evaluate(problem, here->choice).peak * 49 / 50;
        mtf_free_setup_clear(&setup);
    }
}
