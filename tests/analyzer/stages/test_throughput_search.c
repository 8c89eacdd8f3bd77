// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/stages/throughput_search.h"
#include "layouts/base/error.h"
#include "tests/support/problems/stage_graphs.h"

#include <math.h>

static const double tolerance = 1e-8;

/* Searches a random case; what was found must be what trying everything finds, or for a knapsack a
 * little more, with the truth between bound and plan. */
static void check_case(MtfStageKind kind, guint64 seed, bool limited) {
    guint64 n = 1000;
    g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(kind, seed, 5);
    MtfStageMachine machine = { .devices = 1 + (int64_t)mtf_test_draw(seed, &n, 4) };
    machine.memory = limited ? 10 + (double)mtf_test_draw(seed, &n, 150) : INFINITY;
    machine.bandwidth = 0.5 + (double)mtf_test_draw(seed, &n, 8);
    machine.batch = kind == MTF_STAGE_PIPER ? 12 : (int64_t)mtf_test_draw(seed, &n, 4);
    g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
    assert_true(cuts->complete);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfStagePlan) plan = mtf_throughput_search(graph, cuts, &machine, &error);
    double best = mtf_test_best_throughput(graph, &machine);
    assert_int_equal(plan == NULL, isinf(best));
    if (plan == NULL) {
        assert_int_equal(error->code, MTF_ERROR_FIT);
        return;
    }
    assert_true(plan->seconds >= best * (1 - tolerance));
    assert_true(plan->bound <= best * (1 + tolerance));
    if (!limited || kind != MTF_STAGE_PIPER)
        assert_true(plan->seconds <= best * (1 + tolerance));
    assert_true(mtf_stage_plan_devices(plan) <= machine.devices);
}

TEST(pipedreams_plans_equal_trying_everything) {
    for (guint64 seed = 0; seed < 600; seed++)
        check_case(MTF_STAGE_PIPEDREAM, seed, seed % 2 == 0);
}

TEST(pipers_plans_equal_trying_everything_without_a_limit) {
    for (guint64 seed = 0; seed < 300; seed++)
        check_case(MTF_STAGE_PIPER, seed, false);
}

TEST(under_a_limit_the_truth_lies_between_bound_and_plan) {
    for (guint64 seed = 0; seed < 600; seed++)
        check_case(MTF_STAGE_PIPER, seed, true);
}

/* How often the greedy knapsack is not the best is a figure, not a law: here in under one case of
 * ten, and never by half. */
TEST(the_knapsack_is_mostly_the_best) {
    int worse = 0;
    for (guint64 seed = 0; seed < 300; seed++) {
        g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(MTF_STAGE_PIPER, seed, 5);
        MtfStageMachine machine = { 3, 60, 2, 12, false };
        g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
        g_autoptr(MtfStagePlan) plan = mtf_throughput_search(graph, cuts, &machine, NULL);
        double best = mtf_test_best_throughput(graph, &machine);
        if (plan == NULL)
            continue;
        assert_true(plan->seconds < 1.5 * best);
        worse += plan->seconds > best * (1 + tolerance);
    }
    assert_true(worse < 30);
}

/* A diamond of 16 branches has 2^16 + 2 downsets; a family of 60 still divides it. */
TEST(too_many_cuts_are_taken_along_orders) {
    g_autoptr(MtfStageGraph) graph = mtf_stage_graph_new(MTF_STAGE_PIPEDREAM);
    for (int v = 0; v < 18; v++) {
        MtfStageWay way = { .degree = 1, .seconds = 1 };
        mtf_stage_graph_add_node(graph, "node");
        mtf_stage_graph_add_way(graph, v, &way);
    }
    for (int v = 1; v < 17; v++) {
        mtf_stage_graph_add_edge(graph, 0, v, 0);
        mtf_stage_graph_add_edge(graph, v, 17, 0);
    }
    MtfStageMachine machine = { 3, INFINITY, 1e9, 0, false };
    g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 60);
    g_autoptr(MtfStagePlan) plan = mtf_throughput_search(graph, cuts, &machine, NULL);
    assert_false(cuts->complete);
    assert_true(fabs(plan->seconds - 6) < tolerance);
    assert_true(fabs(plan->bound - 6) < tolerance);
}
