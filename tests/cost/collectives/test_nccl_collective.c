// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/collectives/nccl_collective.h"

#include <math.h>

static const MtfMachineTransport plain = { .nccl = true, .base = { 6.6e-6, 14e-6, 8.4e-6 } };

/* A node of 8 on 300 GB/s links, and `nodes` of them on 200 GB/s. */
static MtfNetwork nodes_of_8(int64_t nodes) {
    MtfNetwork network = { .switched = true, .axes = 2 };
    network.axis[0] = (MtfNetworkAxis){ .size = nodes, .bandwidth = 2e11, .latency = 14e-6 };
    network.axis[1] = (MtfNetworkAxis){ .size = 8, .bandwidth = 3e11, .latency = 3.4e-6 };
    mtf_network_drop_trivial(&network);
    return network;
}

static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * expected))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* A ring in the protocol Simple: 8.4 us + 2 7 3.4 us + 2 7/8 1 GiB / 300 GB/s. */
TEST(large_sums_in_a_node_go_round_the_ring) {
    MtfNetwork node = nodes_of_8(1);
    assert_close(mtf_nccl_seconds(&plain, &node, MTF_ALLREDUCE, 0x1p30),
                 8.4e-6 + 14 * 3.4e-6 + 1.75 * 0x1p30 / 3e11);
}

/* LL: 6.6 us + 14 hops of 0.18 3.4 us, at half the bandwidth. */
TEST(small_sums_take_the_quick_protocol) {
    MtfNetwork node = nodes_of_8(1);
    assert_close(mtf_nccl_seconds(&plain, &node, MTF_ALLREDUCE, 1024),
                 6.6e-6 + 14 * 0.18 * 3.4e-6 + 1.75 * 1024 / 1.5e11);
}

/* Of 4 nodes: 4 hops between nodes and 28 inside, without the least: 4 14 us + 27 3.4 us; the
 * network is the slowest hop. */
TEST(a_ring_of_nodes_waits_for_the_network) {
    MtfNetwork four = nodes_of_8(4);
    assert_close(mtf_nccl_seconds(&plain, &four, MTF_ALLGATHER, 0x1p33),
                 8.4e-6 + 4 * 14e-6 + 27 * 3.4e-6 + 31.0 / 32 * 0x1p33 / 2e11);
}

/* Rings of 128 nodes have 1024 hops, trees 2 (7 + 7): for a megabyte the tree wins. */
TEST(sums_over_many_nodes_go_up_a_tree) {
    MtfNetwork many = nodes_of_8(128);
    double gather = mtf_nccl_seconds(&plain, &many, MTF_ALLGATHER, 1 << 20);
    double sum = mtf_nccl_seconds(&plain, &many, MTF_ALLREDUCE, 1 << 20);
    assert_true(sum < gather);
    assert_close(sum, 6.6e-6 + 2 * 0.18 * (7 * 3.4e-6 + 7 * 14e-6) + 2.0 * (1 << 20) / 1e11);
}

/* nccl-tests on H200 (stas00/ml-engineering, network/README.md): bus bandwidth of sums of 16 GiB over
 * 8, 365.6 GB/s round the ring and 473 to 480 in the switch. */
TEST(sums_in_the_switch_exceed_the_ring) {
    g_autoptr(MtfMachine) machine = mtf_machine_load("h100", NULL);
    MtfNetwork node;
    assert_true(mtf_machine_slice(machine, 8, &node, NULL));
    mtf_network_drop_trivial(&node);
    MtfMachineTransport ring = machine->transport;
    ring.in_switch = 0;
    double bytes = 0x1p34, moved = 1.75 * bytes;
    double bus = moved / mtf_nccl_seconds(&machine->transport, &node, MTF_ALLREDUCE, bytes);
    assert_true(fabs(bus / 476e9 - 1) < 0.03);
    bus = moved / mtf_nccl_seconds(&ring, &node, MTF_ALLREDUCE, bytes);
    assert_true(fabs(bus / 365.6e9 - 1) < 0.03);
}
