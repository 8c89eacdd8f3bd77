// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/simulate/collective_simulator.h"
#include "cost/simulate/flow_simulator.h"

#include <math.h>

static void expect(double seconds, double expected) {
    if (fabs(seconds - expected) > 1e-12)
        fail_msg("%.12g s, not %.12g", seconds, expected);
}

/* 1 MB at 1e9 B/s, and a hop. */
TEST(a_flow_alone_takes_its_link_and_a_latency) {
    g_autoptr(MtfFlowSimulator) simulator = mtf_flow_simulator_new();
    int link = mtf_flow_simulator_link(simulator, 1e9);
    mtf_flow_simulator_send(simulator, 1e6, 1e-6, &link, 1);
    expect(mtf_flow_simulator_run(simulator), 1e-3 + 1e-6);
}

/* a goes through both links, b through the first of 1e9 B/s, c through the second of 2e9. a and b
 * get half of the first, c what a leaves of the second, 1.5e9. After 1 ms a and b of 0.5 MB are
 * through; c has 1.5 of its 3 MB left, for which it has the whole link: 0.75 ms. */
TEST(flows_share_fairly_and_take_what_others_leave) {
    g_autoptr(MtfFlowSimulator) simulator = mtf_flow_simulator_new();
    int first = mtf_flow_simulator_link(simulator, 1e9);
    int second = mtf_flow_simulator_link(simulator, 2e9);
    mtf_flow_simulator_send(simulator, 0.5e6, 0, (int[]){ first, second }, 2);
    mtf_flow_simulator_send(simulator, 0.5e6, 0, &first, 1);
    mtf_flow_simulator_send(simulator, 3e6, 0, &second, 1);
    expect(mtf_flow_simulator_run(simulator), 1.75e-3);
}

/* The second of two begins when the first has been delivered. The two directions of a link are two.
 */
TEST(what_waits_begins_at_the_delivery) {
    g_autoptr(MtfFlowSimulator) simulator = mtf_flow_simulator_new();
    int up = mtf_flow_simulator_link(simulator, 1e9), down = up + 1;
    int first = mtf_flow_simulator_send(simulator, 1e6, 5e-6, &up, 1);
    int second = mtf_flow_simulator_send(simulator, 2e6, 5e-6, &up, 1);
    mtf_flow_simulator_send(simulator, 3e6, 0, &down, 1);
    mtf_flow_simulator_order(simulator, first, second);
    expect(mtf_flow_simulator_run(simulator), 3e-3 + 10e-6);
}

/* x: 1 MB up, then y: 1 MB down, beside 1.5 MB down from the begin: x is done at 1 ms, and the
 * other has 0.5 MB left, shares the link for another 1 ms, and leaves y 0.5 ms. Backwards y goes
 * up, then x down; the other, now up, shares with y for 2 ms, when y is through, and has 0.5 MB
 * left beside no one; x, down, takes from 2 to 3 ms. */
TEST(a_reverse_goes_the_other_way) {
    g_autoptr(MtfFlowSimulator) simulator = mtf_flow_simulator_new();
    int up = mtf_flow_simulator_link(simulator, 1e9), down = up + 1;
    int x = mtf_flow_simulator_send(simulator, 1e6, 0, &up, 1);
    int y = mtf_flow_simulator_send(simulator, 1e6, 0, &down, 1);
    mtf_flow_simulator_send(simulator, 1.5e6, 0, &down, 1);
    mtf_flow_simulator_order(simulator, x, y);
    expect(mtf_flow_simulator_run(simulator), 2.5e-3);
    g_autoptr(MtfFlowSimulator) reverse = mtf_flow_simulator_reverse(simulator);
    expect(mtf_flow_simulator_run(reverse), 3e-3);
}

/* Two nodes of two ranks, all links 1e9 B/s; 1 us within a node, 2 us between. */
static MtfNetwork two_nodes(void) {
    MtfNetwork network = { .switched = true, .axes = 2 };
    network.axis[0] = (MtfNetworkAxis){ .size = 2, .bandwidth = 1e9, .latency = 2e-6 };
    network.axis[1] = (MtfNetworkAxis){ .size = 2, .bandwidth = 1e9, .latency = 1e-6 };
    return network;
}

/* An allgather of 4 MB: each rank's 1 MB to its counterpart, two over a node's uplink: 2 ms; then 2
 * MB to its neighbour: 2 ms. */
TEST(levels_are_gathered_from_the_outermost_on) {
    MtfNetwork network = two_nodes();
    MtfCollective gather = { .kind = MTF_ALLGATHER, .bytes = 4e6 };
    double seconds;
    assert_true(mtf_collective_simulate(&network, &gather, "hierarchical", &seconds));
    expect(seconds, 4e-3 + 3e-6);
}

/* 1 MB each to the next rank: one of each node's two leaves it, alone on its uplink. Two places on:
 * both leave. */
TEST(a_permutation_sends_outside_what_leaves) {
    MtfNetwork network = two_nodes();
    MtfCollective permute = { .kind = MTF_PERMUTE, .bytes = 1e6, .shift = 1 };
    MtfCollectivePrice price = mtf_collective_best(&network, &permute);
    double seconds;
    assert_true(mtf_collective_simulate(&network, &permute, "switch", &seconds));
    expect(seconds, 1e-3 + 2e-6);
    expect(price.seconds, 1e-3 + 2e-6);
    permute.shift = -2;
    assert_true(mtf_collective_simulate(&network, &permute, "switch", &seconds));
    expect(seconds, 2e-3 + 2e-6);
    expect(mtf_collective_best(&network, &permute).seconds, 2e-3 + 2e-6);
}
