// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_order.h"

MtfPipelineOrder *mtf_pipeline_order_new(int ranks, int stages, int microbatches,
                                         MtfStagePlaces places) {
    g_assert(ranks > 0 && stages > 0 && microbatches > 0);
    g_assert(places == MTF_STAGES_LOOP || stages == 2 * ranks);
    MtfPipelineOrder *order = g_new0(MtfPipelineOrder, 1);
    order->ranks = ranks;
    order->stages = stages;
    order->microbatches = microbatches;
    order->rank_of_stage = g_new(int, (gsize)stages);
    for (int s = 0; s < stages; s++)
        order->rank_of_stage[s] = places == MTF_STAGES_V && s >= ranks ? stages - 1 - s : s % ranks;
    order->actions = g_new(GArray *, (gsize)ranks);
    for (int r = 0; r < ranks; r++)
        order->actions[r] = g_array_new(FALSE, FALSE, sizeof(MtfPipelineAction));
    return order;
}

MtfPipelineOrder *mtf_pipeline_order_copy(const MtfPipelineOrder *order) {
    MtfPipelineOrder *copy = g_new(MtfPipelineOrder, 1);
    *copy = *order;
    copy->rank_of_stage =
        g_memdup2(order->rank_of_stage, (gsize)order->stages * sizeof *order->rank_of_stage);
    copy->actions = g_new(GArray *, (gsize)order->ranks);
    for (int r = 0; r < order->ranks; r++)
        copy->actions[r] = g_array_copy(order->actions[r]);
    return copy;
}

void mtf_pipeline_order_free(MtfPipelineOrder *order) {
    if (order == NULL)
        return;
    for (int r = 0; r < order->ranks; r++)
        g_array_unref(order->actions[r]);
    g_free(order->actions);
    g_free(order->rank_of_stage);
    g_free(order);
}

void mtf_pipeline_order_add(MtfPipelineOrder *order, MtfPipelineWork work, int stage,
                            int microbatch) {
    MtfPipelineAction action = { .stage = stage, .microbatch = microbatch, .work = work };
    g_array_append_val(order->actions[order->rank_of_stage[stage]], action);
}

bool mtf_pipeline_crosses(const MtfPipelineOrder *order, int stage, bool forward) {
    int other = forward ? stage + 1 : stage - 1;
    return other >= 0 && other < order->stages &&
           order->rank_of_stage[stage] != order->rank_of_stage[other];
}

bool mtf_pipeline_only_forward(const MtfPipelineOrder *order) {
    for (int r = 0; r < order->ranks; r++)
        for (int i = 0; i < mtf_pipeline_length(order, r); i++) {
            MtfPipelineWork work = mtf_pipeline_action(order, r, i)->work;
            if (mtf_work_computes(work) && work != MTF_WORK_FORWARD)
                return false;
        }
    return true;
}

int mtf_pipeline_in_flight(const MtfPipelineOrder *order, int rank) {
    int held = 0, most = 0;
    for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
        MtfPipelineWork work = mtf_pipeline_action(order, rank, i)->work;
        held += (work == MTF_WORK_FORWARD) - mtf_work_ends_microbatch(work);
        most = MAX(most, held);
    }
    return most;
}

/* The lowest slot that no micro-batch has; `count` have been given out so far. */
static int lowest_free_slot(GArray *taken) {
    for (guint i = 0; i < taken->len; i++)
        if (!g_array_index(taken, gboolean, i))
            return (int)i;
    gboolean free = FALSE;
    g_array_append_val(taken, free);
    return (int)taken->len - 1;
}

int mtf_pipeline_slots(const MtfPipelineOrder *order, int stage, int *slots) {
    g_autoptr(GArray) taken = g_array_new(FALSE, TRUE, sizeof(gboolean));
    int rank = order->rank_of_stage[stage];
    for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, rank, i);
        if (action->stage != stage)
            continue;
        if (action->work == MTF_WORK_FORWARD)
            slots[action->microbatch] = lowest_free_slot(taken);
        if (action->work == MTF_WORK_FORWARD || mtf_work_ends_microbatch(action->work))
            g_array_index(taken, gboolean, slots[action->microbatch]) =
                action->work == MTF_WORK_FORWARD;
    }
    return (int)taken->len;
}
