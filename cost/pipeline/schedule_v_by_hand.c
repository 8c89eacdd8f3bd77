// SPDX-License-Identifier: GPL-3.0-or-later
/* Orders of two stages a rank, there and back, written down by hand. Rank s of p has stage a = s on the way
 * there and stage b = 2p - 1 - s on the way back. W is always the oldest weight gradient of its kind
 * that is still to be done.
 *
 * DualPipe-V: DeepSeek's DualPipe (arXiv 2412.19437, section 3.2.1) folded into a V, in the eight
 * phases of PyTorch's ScheduleDualPipeV; "a:F+b:B" overlaps a forward with a whole backward:
 *
 *     1  a:F                 2(p - 1 - s) times        5  b:B, b:F+a:B       p - 1 - s
 *     2  a:F b:F             s + 1                     6  b:B a:B            s + 1, I for B from the middle
 *     3  b:I W b:F           p - 1 - s                 7  W a:I              p - 1 - s
 *     4  a:F+b:B b:F+a:B     m - 2p + s + 1            8  W                  s + 1
 *
 * ZB-V (arXiv 2401.10241, section 6), whose span has no bubble at F = I = W and m >= 2p - 1; for fewer
 * micro-batches it is the order for 2p - 1 without the others:
 *
 *     1  a:F                 2(p - s) - 1 times        4  a:F (if any is left) a:I W b:F b:I W
 *     2  b:F a:F             s                         5  a:I b:I            s, then a:I W p - s
 *     3  b:F b:I W           p - s                     6  W of b, W of a */
#include "cost/pipeline/schedule_rows.h"

#include "layouts/base/error.h"

typedef struct {
    MtfPipelineOrder *order;
    int stage[2];              /* a and b */
    int forwards[2], backs[2]; /* of each, done so far */
    GQueue weights;            /* of pair numbers: weight gradients to be done */
} Rank;

static void add_forward(Rank *rank, int way) {
    mtf_pipeline_order_add(rank->order, MTF_WORK_FORWARD, rank->stage[way], rank->forwards[way]++);
}

static void add_backward(Rank *rank, int way) {
    mtf_pipeline_order_add(rank->order, MTF_WORK_BACKWARD, rank->stage[way], rank->backs[way]++);
}

static void add_input_gradient(Rank *rank, int way) {
    int microbatch = rank->backs[way]++;
    mtf_pipeline_order_add(rank->order, MTF_WORK_INPUT_GRADIENT, rank->stage[way], microbatch);
    g_queue_push_tail(&rank->weights, GINT_TO_POINTER(mtf_pipeline_pair(
                                          rank->order, rank->stage[way], microbatch)));
}

static void add_weight_gradient(Rank *rank) {
    if (g_queue_is_empty(&rank->weights))
        return;
    int pair = GPOINTER_TO_INT(g_queue_pop_head(&rank->weights)), m = rank->order->microbatches;
    mtf_pipeline_order_add(rank->order, MTF_WORK_WEIGHT_GRADIENT, pair / m, pair % m);
}

static void add_overlapped(Rank *rank, int forward_way) {
    add_forward(rank, forward_way);
    GArray *actions = rank->order->actions[rank->order->rank_of_stage[rank->stage[0]]];
    g_array_index(actions, MtfPipelineAction, actions->len - 1).with_next = true;
    add_backward(rank, 1 - forward_way);
}

/* Phases 1 to 5 of rank s. */
static void begin_and_meet(Rank *rank, int s) {
    int p = rank->order->ranks, m = rank->order->microbatches, after = p - 1 - s;
    for (int i = 0; i < 2 * after; i++)
        add_forward(rank, 0);
    for (int i = 0; i <= s; i++) {
        add_forward(rank, 0);
        add_forward(rank, 1);
    }
    for (int i = 0; i < after; i++) {
        add_input_gradient(rank, 1);
        add_weight_gradient(rank);
        add_forward(rank, 1);
    }
    for (int i = 0; i < m - 2 * p + s + 1; i++) {
        /* The last rank's first pair runs apart, which shortens the bubble. */
        if (i == 0 && after == 0) {
            add_forward(rank, 0);
            add_backward(rank, 1);
        } else {
            add_overlapped(rank, 0);
        }
        add_overlapped(rank, 1);
    }
    for (int i = 0; i < after; i++) {
        add_backward(rank, 1);
        add_overlapped(rank, 1);
    }
}

/* Phases 6 to 8: from its middle on, phase 6 leaves the weight gradients for later. */
static void end_apart(Rank *rank, int s) {
    int after = rank->order->ranks - 1 - s, steps = 2 * (s + 1), middle = s + 1;
    for (int k = 0; k < steps; k++)
        (k >= middle ? add_input_gradient : add_backward)(rank, k % 2 == 0);
    for (int i = 0; i < after; i++) {
        add_weight_gradient(rank);
        add_input_gradient(rank, 0);
    }
    for (int i = 0; i <= s; i++)
        add_weight_gradient(rank);
}

MtfPipelineOrder *mtf_schedule_dualpipe_v(const MtfPipelineCase *c, GError **error) {
    if (c->microbatches < 2 * c->ranks) {
        mtf_input_error(error, "dualpipe-v needs at least %d micro-batches for %d stages, not %d",
                        2 * c->ranks, c->ranks, c->microbatches);
        return NULL;
    }
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(c->ranks, 2 * c->ranks, c->microbatches, MTF_STAGES_V);
    for (int s = 0; s < c->ranks; s++) {
        Rank rank = { .order = order, .stage = { s, 2 * c->ranks - 1 - s } };
        g_queue_init(&rank.weights);
        begin_and_meet(&rank, s);
        end_apart(&rank, s);
        g_queue_clear(&rank.weights);
    }
    return order;
}

/* Input and weight gradient of one way at once, for ZB-V. */
static void add_both_gradients(Rank *rank, int way) {
    int microbatch = rank->backs[way]++;
    mtf_pipeline_order_add(rank->order, MTF_WORK_INPUT_GRADIENT, rank->stage[way], microbatch);
    mtf_pipeline_order_add(rank->order, MTF_WORK_WEIGHT_GRADIENT, rank->stage[way], microbatch);
}

/* Phases 1 to 4 of rank s. */
static void begin_zero_bubble(Rank *rank, int s) {
    int p = rank->order->ranks, m = rank->order->microbatches;
    for (int i = 0; i < 2 * (p - s) - 1; i++)
        add_forward(rank, 0);
    for (int i = 0; i < s; i++) {
        add_forward(rank, 1);
        add_forward(rank, 0);
    }
    for (int i = 0; i < p - s; i++) {
        add_forward(rank, 1);
        add_both_gradients(rank, 1);
    }
    while (rank->forwards[1] < m) {
        if (rank->forwards[0] < m)
            add_forward(rank, 0);
        add_both_gradients(rank, 0);
        add_forward(rank, 1);
        add_both_gradients(rank, 1);
    }
}

static void end_zero_bubble(Rank *rank, int s) {
    int p = rank->order->ranks, m = rank->order->microbatches;
    int weights[2] = { rank->backs[0], rank->backs[1] };
    for (int i = 0; i < s; i++)
        for (int way = 0; way < 2; way++)
            mtf_pipeline_order_add(rank->order, MTF_WORK_INPUT_GRADIENT, rank->stage[way],
                                   rank->backs[way]++);
    for (int i = 0; i < p - s; i++) {
        mtf_pipeline_order_add(rank->order, MTF_WORK_INPUT_GRADIENT, rank->stage[0],
                               rank->backs[0]++);
        mtf_pipeline_order_add(rank->order, MTF_WORK_WEIGHT_GRADIENT, rank->stage[0], weights[0]++);
    }
    for (int way = 1; way >= 0; way--)
        while (weights[way] < m)
            mtf_pipeline_order_add(rank->order, MTF_WORK_WEIGHT_GRADIENT, rank->stage[way],
                                   weights[way]++);
}

/* Drops the micro-batches from `m` on. */
static void drop_microbatches(MtfPipelineOrder *order, int m) {
    for (int r = 0; r < order->ranks; r++)
        for (guint i = order->actions[r]->len; i-- > 0;)
            if (g_array_index(order->actions[r], MtfPipelineAction, i).microbatch >= m)
                g_array_remove_index(order->actions[r], i);
    order->microbatches = m;
}

MtfPipelineOrder *mtf_schedule_zero_bubble_v_by_hand(const MtfPipelineCase *c) {
    int m = MAX(c->microbatches, 2 * c->ranks - 1);
    MtfPipelineOrder *order = mtf_pipeline_order_new(c->ranks, 2 * c->ranks, m, MTF_STAGES_V);
    for (int s = 0; s < c->ranks; s++) {
        Rank rank = { .order = order, .stage = { s, 2 * c->ranks - 1 - s } };
        begin_zero_bubble(&rank, s);
        end_zero_bubble(&rank, s);
    }
    drop_microbatches(order, c->microbatches);
    return order;
}
