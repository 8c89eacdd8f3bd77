// SPDX-License-Identifier: GPL-3.0-or-later
/* What is said of a pipeline's step. The page is looked at in tests/e2e/pipelines.sh. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "layouts/base/json_writer.h"
#include "reports/facts/pipeline_facts.h"
#include "tests/support/cases/staged_plan.h"

#include <math.h>

/* The library's mlp in two stages of one device, zero bubble there and back. */
static MtfPipelinePlan *plan_of(const MtfMachine *machine, const char *schedule, int chunks) {
    const MtfTestStages of = { .schedule = schedule, .chunks = chunks, .microbatches = 4 };
    return mtf_test_staged_read_back(mtf_test_two_stages(machine, of));
}

/* Follows what each domain holds along its order: it begins and ends with what stays, and the most is
 * the sum of its stages' arenas at most. */
TEST(what_is_held_comes_and_goes) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "zb-v", 2);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    assert_non_null(facts);
    for (int domain = 0; domain < plan->order->ranks; domain++) {
        double fixed = mtf_pipeline_domain_fixed(facts, domain), held = fixed, most = fixed;
        for (int i = 0; i < mtf_pipeline_length(plan->order, domain); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(plan->order, domain, i);
            held += mtf_pipeline_action_adds(facts, action);
            most = MAX(most, held);
            held -= mtf_pipeline_action_frees(facts, action);
        }
        assert_true(fixed > 0 && most > fixed);
        assert_true(held == fixed);
        assert_true(most <= mtf_pipeline_domain_bytes(facts, domain));
    }
}

TEST(times_are_those_the_plan_predicts) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "1f1b", 1);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    assert_non_null(facts);
    double makespan = mtf_json_number_of(plan->predicted, "makespan_seconds", 0);
    assert_true(makespan > 0 && fabs(facts->run->makespan - makespan) <= 1e-9 * makespan);
}

/* Four stages on two devices, there and back: the first and the last are together. */
TEST(each_device_has_its_stages) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "zb-v", 2);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    int domain;
    g_autofree char *first = mtf_pipeline_stages_on(facts, 0, &domain);
    assert_string_equal(first, "0, 3");
    assert_int_equal(domain, 0);
    g_autofree char *second = mtf_pipeline_stages_on(facts, 1, &domain);
    assert_string_equal(second, "1, 2");
    assert_int_equal(domain, 1);
}

/* The transfer from stage 0 to 1, which one device sends to one other over a switch. */
static int forward_transfer(const MtfPipelinePlan *plan) {
    int i = 0;
    while (mtf_pipeline_transfer(plan, i)->from != 0 || mtf_pipeline_transfer(plan, i)->once)
        i++;
    return i;
}

TEST(the_link_that_bounds_a_transfer_is_named) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "1f1b", 1);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    int transfer = forward_transfer(plan);
    g_autofree char *link = mtf_pipeline_bottleneck(facts, transfer);
    assert_string_equal(link, "out of device 0");
    /* One sends all to one: no way is faster. */
    double bound = mtf_pipeline_transfer_bound(plan, transfer, &facts->network);
    assert_true(bound > 0 && fabs(facts->prices[transfer].seconds - bound) <= 1e-9 * bound);

    facts->prices[transfer] = (MtfRoutePrice){ .seconds = 1, .copied = true };
    g_autofree char *copied = mtf_pipeline_bottleneck(facts, transfer);
    assert_string_equal(copied, "its receiver copies");
    facts->prices[transfer].copied = false;
    g_autofree char *sent = mtf_pipeline_bottleneck(facts, transfer);
    assert_string_equal(sent, "messages, as measured");
}

/* A step's passes as the plan predicts them, on a clock that began before and goes half as fast. */
static void add_step(MtfRunTrace *trace, const MtfPipelineFacts *facts, double before) {
    const MtfPipelineOrder *order = facts->pipeline->order;
    for (int rank = 0; rank < order->ranks; rank++)
        for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, rank, i);
            const MtfActionTime *time = &facts->run->time[rank][i];
            MtfRunPass pass = { .rank = rank, .stage = action->stage };
            pass.microbatch = action->microbatch;
            pass.letter = "FIWB"[action->work];
            pass.start = before + 2 * time->begin;
            pass.seconds = 2 * (time->end - time->begin);
            g_array_append_val(trace->passes, pass);
        }
}

TEST(a_trace_says_when_the_passes_of_its_last_step_ran) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = plan_of(machine, "zb-v", 2);
    g_autoptr(MtfPipelineFacts) facts = mtf_pipeline_facts_new(plan, NULL);
    MtfRunTrace trace = { .passes = g_array_new(FALSE, FALSE, sizeof(MtfRunPass)) };
    MtfRunPass earlier = { 0, 0, 0, 'F', 1, 1 };
    g_array_append_val(trace.passes, earlier);
    add_step(&trace, facts, 5);
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_traced(facts, &trace);
    assert_non_null(run);
    assert_true(fabs(run->makespan - 2 * facts->run->makespan) < 1e-12);
    for (int rank = 0; rank < run->ranks; rank++)
        for (int i = 0; i < mtf_pipeline_length(plan->order, rank); i++)
            assert_true(fabs(run->time[rank][i].end - 2 * facts->run->time[rank][i].end) < 1e-12);

    g_array_index(trace.passes, MtfRunPass, 2).stage = 7;
    assert_null(mtf_pipeline_traced(facts, &trace));
    g_array_unref(trace.passes);
}
