// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_check.h"
#include "layouts/pipeline/pipeline_lower.h"
#include "layouts/pipeline/pipeline_slots.h"
#include "layouts/pipeline/pipeline_text.h"

#include <string.h>

/* PyTorch's test "simple_2_rank_2_stage" (test/distributed/pipelining/test_schedule.py). */
#define SIMPLE "0F0,0F1,   ,0B0,   ,0B1\n   ,1F0,1B0,1F1,1B1,   \n"

static MtfPipelineOrder *parse(const char *text) {
    GError *error = NULL;
    MtfPipelineOrder *order = mtf_pipeline_parse("f.csv", text, &error);
    if (order == NULL)
        print_message("%s\n", error->message);
    assert_non_null(order);
    return order;
}

static void assert_refused(const char *text, const char *sentence) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_pipeline_parse("f.csv", text, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, sentence) == NULL)
        print_message("%s\n", error->message);
    assert_non_null(strstr(error->message, sentence));
}

TEST(text_parses_back_to_itself) {
    const char *text = "0F0,0F1,3F0,,(3F1;3B0)OVERLAP_F_B,3B1,0I0,0W0,0B1\n"
                       ",1UNSHARD,1F0,2F0,1F1,2F1,2B0,2B1,1B0,1B1,1REDUCE_GRAD1,1RESHARD\n";
    g_autoptr(MtfPipelineOrder) order = parse(text);
    assert_int_equal(order->stages, 4);
    assert_int_equal(order->rank_of_stage[3], 0);
    g_autofree char *again = mtf_pipeline_format(order);
    assert_string_equal(again, text);
}

/* Both lists as that test expects them, and its 11 steps. */
TEST(messages_stand_where_pytorch_puts_them) {
    g_autoptr(MtfPipelineOrder) order = parse(SIMPLE);
    g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(order);
    g_autofree char *text = mtf_pipeline_format(lowered);
    assert_string_equal(text, "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                              "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
    assert_int_equal(mtf_pipeline_steps(lowered), 11);
    assert_true(mtf_pipeline_check(lowered, "lowered", NULL));
}

/* "v_2_rank_4_stage" of the same file: 24 steps; its B with a W beside it is an input gradient. */
TEST(neighbours_on_one_rank_send_nothing) {
    g_autoptr(MtfPipelineOrder) order =
        parse("0F0,0F1,   ,3F0,3B0,3F1,3B1,0B0,3W0,0B1,3W1,0W0,0W1\n"
              "   ,1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1,2W0,2W1,1W0,1W1\n");
    assert_int_equal(mtf_pipeline_action(order, 0, 3)->work, MTF_WORK_INPUT_GRADIENT);
    g_autoptr(MtfPipelineOrder) lowered = mtf_pipeline_lower(order);
    g_autofree char *text = mtf_pipeline_format(lowered);
    assert_null(strstr(text, "1SEND_F"));
    assert_int_equal(mtf_pipeline_steps(lowered), 24);
}

/* The activation slots asserted there: three, micro-batch 3 in the one that micro-batch 0 left. */
TEST(slots_are_used_again_after_the_weight_gradient) {
    g_autoptr(MtfPipelineOrder) order = parse("0F0,0F1,0I0,0F2,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n");
    int slots[4];
    assert_int_equal(mtf_pipeline_slots(order, 0, slots), 3);
    const int expected[4] = { 0, 1, 2, 0 };
    assert_memory_equal(slots, expected, sizeof slots);
}

/* 3B1 stands before 1B0, and with it before 0B0: it may not write over what 3B0 sends past stages 2 and 1. 3B2 stands
 * behind, and may wait. */
TEST(gradients_that_go_past_stages_have_slots_of_their_own) {
    const MtfGradientWay ways[] = { { 3, 2 }, { 2, 1 }, { 1, 0 }, { 3, 0 } };
    g_autoptr(MtfPipelineOrder) order =
        parse("0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
              "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
    for (guint n = 3; n <= G_N_ELEMENTS(ways); n++) {
        int counts[4], slots[16], own[4];
        g_autoptr(GArray) some = g_array_new(FALSE, FALSE, sizeof(MtfGradientWay));
        g_array_append_vals(some, ways, n);
        mtf_pipeline_find_slots(order, some, counts, slots);
        for (int s = 0; s < 3; s++)
            assert_int_equal(counts[s], mtf_pipeline_slots(order, s, own));
        assert_int_equal(counts[3], n == 3 ? 1 : 2);
        assert_true((slots[12] == slots[13]) == (n == 3));
        assert_int_equal(slots[12] == slots[14], true);
    }
}

/* What stage 3 sends past the others may be taken by 0W0, which stands behind 3I1. */
TEST(weight_gradients_take_what_is_sent_late) {
    const MtfGradientWay ways[] = { { 3, 2 }, { 2, 1 }, { 1, 0 }, { 3, 0 } };
    g_autoptr(MtfPipelineOrder) order = parse("0F0,0F1,3F0,3I0,3W0,3F1,0I0,3I1,3W1,0W0,0I1,0W1\n"
                                              "1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,2I1,2W1,1I1,1W1\n");
    int counts[4], slots[8];
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(MtfGradientWay));
    g_array_append_vals(all, ways, G_N_ELEMENTS(ways));
    mtf_pipeline_find_slots(order, all, counts, slots);
    assert_int_equal(counts[3], 2);
    assert_int_not_equal(slots[6], slots[7]);
}

/* Megatron's orders of chunks (tests/unit_tests/transformer/test_cuda_graphs.py): +c is a forward of
 * chunk c, -c a backward, micro-batches in order; 2 slots, and 5 of the first chunk. */
static int slots_of_megatron_order(const int *chunks, int count, int stages) {
    g_autoptr(MtfPipelineOrder) order =
        mtf_pipeline_order_new(1, stages, count / 2 / stages, MTF_STAGES_LOOP);
    int seen[2][3] = { { 0 } };
    for (int i = 0; i < count; i++) {
        int chunk = ABS(chunks[i]) - 1, backward = chunks[i] < 0;
        mtf_pipeline_order_add(order, backward ? MTF_WORK_BACKWARD : MTF_WORK_FORWARD, chunk,
                               seen[backward][chunk]++);
    }
    int slots[16];
    return mtf_pipeline_slots(order, 0, slots);
}

TEST(slots_are_those_of_megatron) {
    const int one[] = { 1, 1, -1, 1, -1, 1, -1, -1 };
    const int two[] = { 1, 1, 1, 2, 2, 2, -2, 1, -2, 1, -2, 2, -1, 2, -1, -1, -2, -2, -1, -1 };
    assert_int_equal(slots_of_megatron_order(one, 8, 1), 2);
    assert_int_equal(slots_of_megatron_order(two, 20, 2), 5);
}

TEST(circles_are_named) {
    assert_refused(
        "0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0\n",
        "f.csv deadlocks: rank 0 at 0B0 waits for rank 1, rank 1 at 1F1 waits for rank 0");
    /* Both send and neither receives: harmless with buffers, a circle with rendezvous. */
    assert_refused("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                   "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
                   "rank 0 at 0SEND_F1 waits for rank 1, rank 1 at 1SEND_B0 waits for rank 0");
    assert_refused("0W0,0F0,0I0\n", "rank 0 at 0W0 waits for what stands behind it");
}

TEST(incomplete_orders_are_refused) {
    assert_refused("0F0,0F0,0B0\n", "0F0 stands twice on rank 0");
    assert_refused("0F0,0F1,0B0\n", "0B1 is missing (as B, or as I and W)");
    assert_refused("0F0,0I0\n", "0W0 is missing");
    assert_refused("0F0,0B0,0I0\n", "0B0 stands beside 0I0");
    assert_refused("0F0,0B0\n0F1,0B1\n", "stage 0 stands on rank 0 and on rank 1");
    assert_refused("0F0,0B0\n2F0,2B0\n", "stage 1 of 3 is on no rank");
    assert_refused("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "0RECV_B0 is missing");
    assert_refused("0F0,0SEND_B0,0B0\n", "0SEND_B0 on rank 0 belongs to no stage");
}

/* Of a model that is run and not trained. */
TEST(orders_of_forward_passes_alone_are_complete) {
    g_autoptr(MtfPipelineOrder) order = parse("0F0,0F1\n1F0,1F1\n");
    assert_true(mtf_pipeline_only_forward(order));
    g_autoptr(MtfPipelineOrder) training = parse("0F0,0B0\n1F0,1B0\n");
    assert_false(mtf_pipeline_only_forward(training));
    assert_refused("0F0,0F1\n1F0\n", "1F1 is missing");
}

TEST(unreadable_cells_are_named) {
    assert_refused("0F0,0X0\n", "line 1, cell 2: \"0X0\" is not an action");
    assert_refused("# nothing\n", "no line with actions");
    assert_refused("0F\n", "line 1, cell 1");
    assert_refused("(0F0;0B0\n", "line 1, cell 1");
    assert_refused("(0F0;0SEND_F0)OVERLAP_F_B\n", "line 1, cell 1");
    assert_refused("999999999999F0\n", "line 1, cell 1");
    assert_refused("99999F99999\n", "make no pipeline");
}

/* The first group needs 3B0, which the second makes only after the first's own 0F1. */
TEST(overlapped_actions_wait_for_one_another) {
    assert_refused("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n", "deadlocks");
    g_autoptr(MtfPipelineOrder) apart = parse("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
    assert_int_equal(mtf_pipeline_in_flight(apart, 0), 2);
}
