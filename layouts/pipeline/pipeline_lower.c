// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_lower.h"

#include "layouts/pipeline/pipeline_check.h"
#include "layouts/pipeline/pipeline_progress.h"

/* Appends the message that this action causes, on both ranks, and marks it. */
static void add_message(MtfPipelineProgress *progress, MtfPipelineOrder *lowered,
                        const MtfPipelineAction *action) {
    bool forward = action->work == MTF_WORK_FORWARD;
    if (!forward && !mtf_work_makes_input_gradient(action->work))
        return;
    if (!mtf_pipeline_crosses(lowered, action->stage, forward))
        return;
    MtfPipelineAction send = { .stage = action->stage,
                               .microbatch = action->microbatch,
                               .work = forward ? MTF_WORK_SEND_FORWARD : MTF_WORK_SEND_BACKWARD };
    MtfPipelineAction receive = mtf_pipeline_other_end(&send);
    mtf_pipeline_order_add(lowered, send.work, send.stage, send.microbatch);
    mtf_pipeline_order_add(lowered, receive.work, receive.stage, receive.microbatch);
    mtf_pipeline_progress_mark(progress, &send);
    mtf_pipeline_progress_mark(progress, &receive);
}

static void lower_group(MtfPipelineProgress *progress, MtfPipelineOrder *lowered, int rank) {
    int first = progress->head[rank], count = mtf_pipeline_progress_group(progress, rank);
    for (int i = 0; i < count; i++) {
        MtfPipelineAction action = *mtf_pipeline_action(progress->order, rank, first + i);
        action.idle = 0;
        g_array_append_val(lowered->actions[rank], action);
    }
    mtf_pipeline_progress_advance(progress, rank);
    for (int i = 0; i < count; i++)
        add_message(progress, lowered, mtf_pipeline_action(progress->order, rank, first + i));
}

/* An idle slot takes the rank's turn of a round. */
static bool takes_idle_slot(const MtfPipelineProgress *progress, int *idled, int rank) {
    if (mtf_pipeline_progress_group(progress, rank) == 0 ||
        idled[rank] == mtf_pipeline_action(progress->order, rank, progress->head[rank])->idle)
        return false;
    idled[rank]++;
    return true;
}

/* One group a rank and round, as PyTorch walks; whether any rank got on. */
static bool walk_round(MtfPipelineProgress *progress, MtfPipelineOrder *lowered, int *idled) {
    bool advanced = false;
    for (int r = 0; r < lowered->ranks; r++) {
        bool idle = takes_idle_slot(progress, idled, r);
        bool ready = !idle && mtf_pipeline_progress_group_ready(progress, r);
        if (ready) {
            lower_group(progress, lowered, r);
            idled[r] = 0;
        }
        advanced = advanced || idle || ready;
    }
    return advanced;
}

MtfPipelineOrder *mtf_pipeline_lower(const MtfPipelineOrder *order) {
    MtfPipelineOrder *lowered = mtf_pipeline_order_copy(order);
    if (mtf_pipeline_has_messages(order))
        return lowered;
    for (int r = 0; r < order->ranks; r++)
        g_array_set_size(lowered->actions[r], 0);
    MtfPipelineProgress progress;
    mtf_pipeline_progress_init(&progress, order, true);
    g_autofree int *idled = g_new0(int, (gsize)order->ranks);
    bool advanced = true;
    while (advanced)
        advanced = walk_round(&progress, lowered, idled);
    for (int r = 0; r < order->ranks; r++)
        g_assert(mtf_pipeline_progress_group(&progress, r) == 0);
    mtf_pipeline_progress_clear(&progress);
    return lowered;
}

/* One step: every rank its head group if that is ready when its turn comes, and then those that were
 * not once more. */
static void take_step(MtfPipelineProgress *progress, bool *advanced) {
    int ranks = progress->order->ranks;
    for (int r = 0; r < ranks; r++) {
        advanced[r] = mtf_pipeline_progress_group_ready(progress, r);
        if (advanced[r])
            mtf_pipeline_progress_advance(progress, r);
    }
    for (int r = 0; r < ranks; r++)
        if (!advanced[r] && mtf_pipeline_progress_group_ready(progress, r))
            mtf_pipeline_progress_advance(progress, r);
}

static bool all_done(const MtfPipelineProgress *progress) {
    for (int r = 0; r < progress->order->ranks; r++)
        if (mtf_pipeline_progress_group(progress, r) > 0)
            return false;
    return true;
}

int mtf_pipeline_steps(const MtfPipelineOrder *order) {
    MtfPipelineProgress progress;
    mtf_pipeline_progress_init(&progress, order, mtf_pipeline_has_messages(order));
    g_autofree bool *advanced = g_new0(bool, (gsize)order->ranks);
    int steps = 0;
    while (!all_done(&progress)) {
        take_step(&progress, advanced);
        steps++;
    }
    mtf_pipeline_progress_clear(&progress);
    return steps;
}
