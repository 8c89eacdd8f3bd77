// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/stages/hierarchy_search.h"
#include "analyzer/stages/pipedream_profile.h"
#include "tests/support/problems/stage_graphs.h"

#include <math.h>

TEST(nested_plans_equal_trying_everything) {
    for (guint64 seed = 0; seed < 400; seed++) {
        guint64 n = 1000;
        g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(MTF_STAGE_PIPEDREAM, seed, 5);
        MtfStageLevels levels = {
            { 1 + (int64_t)mtf_test_draw(seed, &n, 3), 1 + (int64_t)mtf_test_draw(seed, &n, 3) },
            { 1 + (double)mtf_test_draw(seed, &n, 9), 1 + (double)mtf_test_draw(seed, &n, 3) }
        };
        MtfStageMachine machine = { levels.devices[0] * levels.devices[1], INFINITY,
                                    levels.bandwidth[0], 0, false };
        g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
        g_autoptr(MtfStagePlan) plan = mtf_hierarchy_search(graph, cuts, &levels, &machine, NULL);
        double best = mtf_test_best_hierarchy(graph, &levels);
        assert_true(fabs(plan->seconds - best) <= 1e-9 * best);
        assert_true(mtf_stage_plan_devices(plan) <= machine.devices);
    }
}

/* A limit that everything keeps changes nothing; less memory never makes a plan faster. */
TEST(less_memory_is_never_faster) {
    for (guint64 seed = 0; seed < 60; seed++) {
        g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(MTF_STAGE_PIPEDREAM, seed, 6);
        MtfStageLevels levels = { { 2, 3 }, { 4, 2 } };
        g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
        double before = mtf_test_best_hierarchy(graph, &levels);
        for (double memory = 1e6; memory >= 10; memory = memory > 200 ? 200 : memory - 20) {
            MtfStageMachine machine = { 6, memory, 4, 0, false };
            g_autoptr(MtfStagePlan) plan =
                mtf_hierarchy_search(graph, cuts, &levels, &machine, NULL);
            double now = plan != NULL ? plan->seconds : INFINITY;
            assert_true(now >= before * (1 - 1e-9));
            assert_true(memory < 1e6 || now <= before * (1 + 1e-9));
            for (guint i = 0; plan != NULL && i < plan->stages->len; i++)
                assert_true(g_array_index(plan->stages, MtfStage, i).bytes <= memory);
            before = now;
        }
    }
}

/* What PipeDream's own planner prints for its profiles (../shared/data/pipelines/README.md). */
static void check_profile(const char *name, double seconds, guint stages) {
    g_autofree char *path = g_strdup_printf("../shared/data/pipelines/pipedream_%s.txt", name);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        print_message("%s is not there\n", path);
        skip();
    }
    g_autoptr(MtfStageGraph) graph = mtf_pipedream_profile_parse(path, text, NULL);
    g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
    MtfStageLevels levels = { { 4, 4 }, { 10e9, 1e9 } };
    MtfStageMachine machine = { 16, INFINITY, 10e9, 0, false };
    g_autoptr(MtfStagePlan) plan = mtf_hierarchy_search(graph, cuts, &levels, &machine, NULL);
    assert_true(plan->seconds <= seconds * 1.00001);
    assert_true(plan->seconds >= seconds * 0.99);
    assert_true(plan->stages->len <= stages + 1);
}

TEST(vgg16_is_divided_as_well_as_by_pipedream) {
    check_profile("vgg16", 0.0443459, 3);
}

TEST(resnet50_is_divided_as_well_as_by_pipedream) {
    check_profile("resnet50", 0.0287170, 9);
}
