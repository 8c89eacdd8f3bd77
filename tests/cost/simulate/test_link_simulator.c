// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/simulate/link_simulator.h"

#include <math.h>

/* A line or ring of n places, 1 byte a second, 10 seconds a hop. */
static MtfLinkSimulator *slow_axis(int64_t n, bool wrap) {
    MtfNetwork network = { .axes = 1,
                           .axis = { { .size = n, .wrap = wrap, .bandwidth = 1, .latency = 10 } } };
    return mtf_link_simulator_new(&network);
}

static void check(const MtfLinkSimulator *simulator, double seconds) {
    assert_true(fabs(mtf_link_simulator_run(simulator) - seconds) < 1e-9);
}

TEST(one_transfer_takes_its_bytes_and_a_hop) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(3, false);
    mtf_link_simulator_send(s, 0, 0, true, 5);
    check(s, 15);
}

/* The second waits 5 s for the link, not for the first one's arrival. */
TEST(transfers_on_one_link_go_one_after_another) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(3, false);
    mtf_link_simulator_send(s, 0, 0, true, 5);
    mtf_link_simulator_send(s, 0, 0, true, 7);
    check(s, 22);
}

TEST(opposite_directions_do_not_contend) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(3, false);
    mtf_link_simulator_send(s, 0, 0, true, 5);
    mtf_link_simulator_send(s, 1, 0, false, 7);
    check(s, 17);
}

TEST(a_message_is_stored_and_forwarded) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(3, false);
    int first = mtf_link_simulator_send(s, 0, 0, true, 5);
    int second = mtf_link_simulator_send(s, 1, 0, true, 5);
    mtf_link_simulator_order(s, first, second);
    check(s, 30);
}

TEST(a_join_waits_for_the_last) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(4, true);
    int join = mtf_link_simulator_join(s);
    mtf_link_simulator_order(s, mtf_link_simulator_send(s, 0, 0, true, 5), join);
    mtf_link_simulator_order(s, mtf_link_simulator_send(s, 2, 0, true, 9), join);
    mtf_link_simulator_order(s, join, mtf_link_simulator_send(s, 3, 0, true, 1));
    check(s, 30);
}

TEST(the_reverse_takes_as_long) {
    g_autoptr(MtfLinkSimulator) s = slow_axis(4, false);
    int first = mtf_link_simulator_send(s, 0, 0, true, 5);
    int second = mtf_link_simulator_send(s, 1, 0, true, 3);
    mtf_link_simulator_order(s, first, second);
    mtf_link_simulator_send(s, 1, 0, true, 4);
    check(s, 28);
    g_autoptr(MtfLinkSimulator) back = mtf_link_simulator_reverse(s);
    check(back, 28);
}

TEST(neighbours_wrap_in_rings_and_end_in_lines) {
    MtfNetwork network = { .axes = 2,
                           .axis = { { .size = 2, .bandwidth = 1 },
                                     { .size = 3, .wrap = true, .bandwidth = 1 } } };
    assert_int_equal(mtf_network_neighbor(&network, 0, 0, true), 3);
    assert_int_equal(mtf_network_neighbor(&network, 0, 0, false), -1);
    assert_int_equal(mtf_network_neighbor(&network, 3, 0, true), -1);
    assert_int_equal(mtf_network_neighbor(&network, 3, 1, false), 5);
    assert_int_equal(mtf_network_neighbor(&network, 2, 1, true), 0);
}
