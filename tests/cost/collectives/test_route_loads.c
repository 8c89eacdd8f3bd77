// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/collectives/route_loads.h"

/* A ring of four places by a line of two, 10 bytes a second along the ring, 20 along the line. */
static const MtfNetwork torus = { .axes = 2,
                                  .axis = {
                                      { .size = 4, .wrap = true, .bandwidth = 10, .latency = 1 },
                                      { .size = 2, .bandwidth = 20, .latency = 0.5 } } };

/* Nodes of four devices: a node sends 10 bytes a second, a device 100. */
static const MtfNetwork levels = { .switched = true,
                                   .axes = 2,
                                   .axis = { { .size = 3, .bandwidth = 10, .latency = 2 },
                                             { .size = 4, .bandwidth = 100, .latency = 0.25 } } };

/* From (0, 0) to (3, 1) one hop back round the ring, then one along the line, out of place (3, 0), which is
 * rank 6. */
TEST(a_torus_is_walked_axis_by_axis_the_shorter_way) {
    MtfRouteLoads loads;
    mtf_route_loads_init(&loads, &torus);
    mtf_route_loads_add(&loads, 0, 7, 40);
    assert_float_equal(loads.route_seconds, 1.5, 0);
    MtfBusyLink busiest = mtf_route_loads_busiest(&loads);
    assert_int_equal(busiest.rank, 0);
    assert_int_equal(busiest.axis, 0);
    assert_true(busiest.second);
    assert_float_equal(busiest.seconds, 4, 0);
    mtf_route_loads_add(&loads, 6, 7, 100);
    busiest = mtf_route_loads_busiest(&loads);
    assert_int_equal(busiest.rank, 6);
    assert_int_equal(busiest.axis, 1);
    assert_float_equal(busiest.amount, 140, 0);
    assert_float_equal(busiest.seconds, 7, 0);
    mtf_route_loads_clear(&loads);
}

/* Devices 0 and 1 of node 0 send 50 bytes each to devices 4 and 8: all leave node 0 by its one link, half
 * enters each of the others. Between neighbours only their own links are used. */
TEST(nodes_send_by_their_own_link) {
    MtfRouteLoads loads;
    mtf_route_loads_init(&loads, &levels);
    mtf_route_loads_add(&loads, 0, 1, 600);
    MtfBusyLink busiest = mtf_route_loads_busiest(&loads);
    assert_float_equal(loads.route_seconds, 0.25, 0);
    assert_float_equal(busiest.seconds, 6, 0);
    assert_int_equal(busiest.axis, 1);
    mtf_route_loads_add(&loads, 0, 4, 50);
    mtf_route_loads_add(&loads, 1, 8, 50);
    busiest = mtf_route_loads_busiest(&loads);
    assert_float_equal(loads.route_seconds, 2, 0);
    assert_int_equal(busiest.rank, 0);
    assert_int_equal(busiest.axis, 0);
    assert_false(busiest.second);
    assert_float_equal(busiest.seconds, 10, 0);
    mtf_route_loads_clear(&loads);
}

TEST(nothing_is_busy_where_nothing_is_sent) {
    MtfRouteLoads loads;
    mtf_route_loads_init(&loads, &levels);
    mtf_route_loads_add(&loads, 5, 5, 1000);
    assert_float_equal(mtf_route_loads_busiest(&loads).seconds, 0, 0);
    assert_float_equal(loads.route_seconds, 0, 0);
    mtf_route_loads_clear(&loads);
}
