// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "cost/transfer/route_price.h"
#include "layouts/base/json_writer.h"
#include "tests/support/cases/staged_plan.h"

#include <math.h>

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* Everything everywhere, so that both receivers want the whole tensor. */
static double replicate_transfer(MtfPipelinePlan *plan, int transfer) {
    const MtfStageTransfer *t = mtf_pipeline_transfer(plan, transfer);
    mtf_pipeline_stage(plan, t->from)->layout->tensors[t->sent] = mtf_placement_replicated();
    mtf_pipeline_stage(plan, t->to)->layout->tensors[t->received] = mtf_placement_replicated();
    return (double)mtf_graph_tensor_bytes(mtf_pipeline_stage(plan, t->from)->graph, t->sent);
}

TEST(the_busiest_link_and_the_longest_way_count) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = mtf_test_two_stages(machine, (MtfTestStages){ .devices = 2 });
    double bytes = replicate_transfer(plan, 0);
    MtfRoutePrice price = mtf_pipeline_transfer_price(plan, 0, machine);
    const MtfNetworkAxis *link = &machine->network.axis[0];
    double share = link->bandwidth * machine->derate.links;
    assert_false(price.copied);
    assert_near(price.seconds, link->latency + bytes / share, 1e-15);
    assert_near(price.busiest.amount, bytes, 0);
}

/* Stages on nodes of two devices, which share their node's link: direct copies cross it twice, gathered ones
 * once. */
TEST(what_is_gathered_crosses_slow_links_once) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = mtf_test_two_stages(machine, (MtfTestStages){ .devices = 2 });
    double bytes = replicate_transfer(plan, 0);
    machine->network = (MtfNetwork){ .switched = true,
                                     .axes = 2,
                                     .axis = { { .size = 0, .bandwidth = 1e6, .latency = 1e-6 },
                                               { .size = 2, .bandwidth = 1e9, .latency = 1e-6 } } };
    machine->derate.links = machine->derate.network = 1;
    mtf_pipeline_choose_transfers(plan, machine);
    assert_int_equal(mtf_pipeline_transfer(plan, 0)->way, MTF_TRANSFER_GATHERED);
    MtfRoutePrice price = mtf_pipeline_transfer_price(plan, 0, machine);
    assert_near(price.busiest.seconds, bytes / 1e6, 1e-12);
    assert_int_equal(price.busiest.axis, 0);
    /* Inside the node each device gets the other's half. */
    assert_near(price.seconds, 2e-6 + bytes / 1e6 + bytes / 2 / 1e9, 1e-12);
    /* Each element enters the node once, and that is the bound. */
    MtfNetwork network;
    mtf_pipeline_network(plan, machine, &network);
    assert_near(mtf_pipeline_transfer_bound(plan, 0, &network), 1e-6 + bytes / 1e6, 1e-12);
    mtf_pipeline_transfer(plan, 0)->way = MTF_TRANSFER_DIRECT;
    price = mtf_pipeline_transfer_price(plan, 0, machine);
    assert_near(price.seconds, 1e-6 + 2 * bytes / 1e6, 1e-12);
}

/* Tables in proportion to bytes: `direct` and `mpi` seconds a byte. */
static void add_tables(MtfMachine *machine, double direct, double mpi) {
    const double x[] = { 1, 1e9 }, by_copy[] = { direct, direct * 1e9 },
                 sent[] = { mpi, mpi * 1e9 };
    mtf_machine_add_curve(machine, "p2p/2", 2, x, by_copy);
    mtf_machine_add_curve(machine, "p2p/2/mpi", 2, x, sent);
}

TEST(within_a_host_what_was_measured_counts) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plan = mtf_test_two_stages(machine, (MtfTestStages){ .devices = 1 });
    double bytes = replicate_transfer(plan, 0);
    add_tables(machine, 1e-10, 4e-10);
    mtf_pipeline_choose_transfers(plan, machine);
    assert_int_equal(mtf_pipeline_transfer(plan, 0)->way, MTF_TRANSFER_DIRECT);
    MtfRoutePrice price = mtf_pipeline_transfer_price(plan, 0, machine);
    assert_true(price.copied);
    assert_near(price.seconds, bytes * 1e-10, 1e-12);

    add_tables(machine, 4e-10, 1e-10);
    mtf_pipeline_choose_transfers(plan, machine);
    assert_int_equal(mtf_pipeline_transfer(plan, 0)->way, MTF_TRANSFER_MPI);
    price = mtf_pipeline_transfer_price(plan, 0, machine);
    assert_false(price.copied);
    assert_near(price.seconds, bytes * 1e-10, 1e-12);
}

/* What its receiver copies is part of its passes: forward what comes forward. */
TEST(who_copies_computes_nothing_meanwhile) {
    g_autoptr(MtfMachine) machine = mtf_planning_machine("cpu-host", NULL, NULL);
    g_autoptr(MtfPipelinePlan) plain =
        mtf_test_two_stages(machine, (MtfTestStages){ .devices = 1 });
    add_tables(machine, 1e-9, 2e-9);
    g_autoptr(MtfPipelinePlan) plan = mtf_test_two_stages(machine, (MtfTestStages){ .devices = 1 });
    const cJSON *before = cJSON_GetArrayItem(cJSON_GetObjectItem(plain->predicted, "stages"), 1);
    const cJSON *after = cJSON_GetArrayItem(cJSON_GetObjectItem(plan->predicted, "stages"), 1);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(plan->predicted, "stages"), 0);
    g_autofree MtfRoutePrice *prices = mtf_pipeline_transfer_prices(plan, machine);
    double copied = 0;
    for (int i = 0; i < mtf_pipeline_transfers(plan); i++) {
        const MtfStageTransfer *t = mtf_pipeline_transfer(plan, i);
        copied += t->to == 1 && !t->once ? prices[i].seconds : 0;
    }
    assert_true(copied > 0);
    assert_near(mtf_json_number_of(after, "forward_seconds", -1),
                mtf_json_number_of(before, "forward_seconds", -1) + copied, 1e-9);
    assert_near(mtf_json_number_of(first, "transfer_seconds", -1), 0, 0);
}
