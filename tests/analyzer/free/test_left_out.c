// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/left_out.h"
#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "cost/memory/arena.h"
#include "tests/support/cases/free_setup.h"

#include <string.h>

#define CHOICES 12

static MtfGraph *tiny_graph(const MtfModelFamily *family) {
    MtfModelSettings settings = mtf_model_settings(mtf_model_preset_find(family, "tiny", NULL));
    g_autoptr(MtfGraph) forward = family->build(&settings, NULL);
    return mtf_training_graph(forward, NULL);
}

/* Each node takes any strategy: all reshardings are legal, and most are made. */
static int *any_choice(const MtfLayoutProblem *problem, GRand *random) {
    int n = mtf_layout_problem_node_count(problem);
    int *choice = g_new(int, n);
    for (int v = 0; v < n; v++)
        choice[v] = g_rand_int_range(random, 0, mtf_layout_problem_node(problem, v)->strategies);
    return choice;
}

static MtfLayoutValue value_of(const MtfLeftOut *left, const int *choice) {
    g_autoptr(MtfLayoutProblem) posed = mtf_left_out_pose(left);
    g_autofree int *same = mtf_left_out_choice(left, choice);
    return mtf_layout_problem_evaluate(posed, same);
}

/* Notes any choice under a limit that its slices keep and its program does not; whether there is such a limit. */
static bool note(MtfLeftOut *left, const MtfFreeSetup *setup, const int *choice, int64_t *limit) {
    g_autoptr(MtfLayout) layout = mtf_free_problem_layout(setup->problem, choice);
    g_autoptr(MtfProgram) program = mtf_lower(setup->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    *limit = (int64_t)value_of(left, choice).peak;
    if (*limit >= arena->bytes)
        return false;
    mtf_left_out_note(left, choice, program, arena->bytes, *limit);
    return true;
}

/* What is noted of a choice excludes it, whatever was noted before, and changes no choice's cost. */
static void check_choices(const MtfModelFamily *family, const char *mesh) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph(family), mesh);
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    g_autoptr(MtfLeftOut) left = mtf_left_out_new(setup.problem);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    int noted = 0;
    for (int i = 0; i < CHOICES; i++) {
        g_autofree int *choice = any_choice(problem, random), *other = any_choice(problem, random);
        int64_t limit;
        if (note(left, &setup, choice, &limit)) {
            assert_true(value_of(left, choice).peak > limit);
            noted++;
        }
        MtfLayoutValue before = mtf_layout_problem_evaluate(problem, other);
        MtfLayoutValue after = value_of(left, other);
        assert_true(after.cost == before.cost && after.impossible == before.impossible);
        assert_true(after.peak >= before.peak);
    }
    assert_true(noted > 0);
    mtf_free_setup_clear(&setup);
}

TEST(what_is_noted_excludes_its_choice_and_costs_nothing) {
    check_choices(&mtf_model_transformer_lm, "rows:4");
    check_choices(&mtf_model_unet, "rows:2;cols:2");
}

/* The least bytes that the node between them allows for two strategies. */
static int64_t least_bytes(const MtfLayoutProblem *posed, int edge, int from, int to) {
    const MtfLayoutEdge *same = mtf_layout_problem_edge(posed, edge),
                        *allowed = mtf_layout_problem_edge(posed, edge + 1);
    const MtfLayoutNode *node = mtf_layout_problem_node(posed, same->to);
    int n_to = mtf_layout_problem_node(posed, allowed->to)->strategies;
    int64_t least = INT64_MAX;
    for (int v = 0; v < node->strategies; v++)
        if (same->costs[from * node->strategies + v] < MTF_IMPOSSIBLE &&
            allowed->costs[v * n_to + to] < MTF_IMPOSSIBLE)
            least = MIN(least, node->usages[v]);
    return least;
}

static int edge_between(const MtfLayoutProblem *problem, int from, int to) {
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        if (edge->from == from && edge->to == to)
            return e;
    }
    fail();
    return -1;
}

/* What lies where an operation wants it needs nothing, and what does not needs a copy of what it wants. */
static void check_move(const MtfFreeSetup *setup, const MtfLayoutProblem *posed, int edge) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup->problem);
    int from = mtf_layout_problem_edge(posed, edge)->from,
        to = mtf_layout_problem_edge(posed, edge + 1)->to;
    int moved = edge_between(problem, from, to);
    for (int p = 0; p < mtf_layout_problem_node(problem, from)->strategies; p++)
        for (int q = 0; q < mtf_layout_problem_node(problem, to)->strategies; q++) {
            MtfFreeMove move = mtf_free_problem_move(setup->problem, moved, p, q);
            const MtfTensor *tensor = mtf_graph_tensor(setup->graph, move.tensor);
            int64_t copy =
                mtf_largest_elements(setup->graph, &setup->mesh, &tensor->shape, move.to) *
                mtf_dtype_bytes(tensor->dtype);
            int64_t least = least_bytes(posed, edge, p, q);
            if (mtf_placement_equal(move.from, move.to))
                assert_int_equal(least, 0);
            else if (mtf_free_problem_node_operation(setup->problem, to) >= 0)
                assert_true(least >= copy);
        }
}

TEST(a_resharding_needs_its_copy_and_none_needs_nothing) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph(&mtf_model_unet), "rows:4");
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup.problem);
    g_autoptr(MtfLeftOut) left = mtf_left_out_new(setup.problem);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (int i = 0; i < CHOICES; i++) {
        g_autofree int *choice = any_choice(problem, random);
        int64_t limit;
        note(left, &setup, choice, &limit);
    }
    g_autoptr(MtfLayoutProblem) posed = mtf_left_out_pose(left);
    int first = mtf_layout_problem_edge_count(problem),
        edges = mtf_layout_problem_edge_count(posed);
    assert_true(edges > first);
    for (int e = first; e < edges; e += 2)
        check_move(&setup, posed, e);
    mtf_free_setup_clear(&setup);
}
