// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_progress.h"

void mtf_pipeline_progress_init(MtfPipelineProgress *progress, const MtfPipelineOrder *order,
                                bool messages) {
    progress->order = order;
    progress->messages = messages;
    progress->done = g_new0(uint16_t, (gsize)order->stages * (gsize)order->microbatches);
    progress->head = g_new0(int, (gsize)order->ranks);
}

void mtf_pipeline_progress_clear(MtfPipelineProgress *progress) {
    g_clear_pointer(&progress->done, g_free);
    g_clear_pointer(&progress->head, g_free);
}

int mtf_pipeline_progress_group(const MtfPipelineProgress *progress, int rank) {
    int length = mtf_pipeline_length(progress->order, rank), end = progress->head[rank];
    if (end == length)
        return 0;
    while (end + 1 < length && mtf_pipeline_action(progress->order, rank, end)->with_next)
        end++;
    return end + 1 - progress->head[rank];
}

/* The forward's input is there: made here, made elsewhere, or received. */
static bool input_is_there(const MtfPipelineProgress *progress, int stage, int microbatch) {
    if (stage == 0)
        return true;
    if (progress->messages && mtf_pipeline_crosses(progress->order, stage, false))
        return mtf_pipeline_progress_done(progress, MTF_WORK_RECEIVE_FORWARD, stage, microbatch);
    return mtf_pipeline_progress_done(progress, MTF_WORK_FORWARD, stage - 1, microbatch);
}

static bool input_gradient_is_made(const MtfPipelineProgress *progress, int stage, int microbatch) {
    return mtf_pipeline_progress_done(progress, MTF_WORK_INPUT_GRADIENT, stage, microbatch) ||
           mtf_pipeline_progress_done(progress, MTF_WORK_BACKWARD, stage, microbatch);
}

/* The same of what the backward pass begins with, which the last stage makes itself. */
static bool gradient_is_there(const MtfPipelineProgress *progress, int stage, int microbatch) {
    if (!mtf_pipeline_progress_done(progress, MTF_WORK_FORWARD, stage, microbatch))
        return false;
    if (stage == progress->order->stages - 1)
        return true;
    if (progress->messages && mtf_pipeline_crosses(progress->order, stage, true))
        return mtf_pipeline_progress_done(progress, MTF_WORK_RECEIVE_BACKWARD, stage, microbatch);
    return input_gradient_is_made(progress, stage + 1, microbatch);
}

bool mtf_pipeline_progress_ready(const MtfPipelineProgress *progress,
                                 const MtfPipelineAction *action) {
    int stage = action->stage, microbatch = action->microbatch;
    switch (action->work) {
    case MTF_WORK_FORWARD:
        return input_is_there(progress, stage, microbatch);
    case MTF_WORK_INPUT_GRADIENT:
    case MTF_WORK_BACKWARD:
        return gradient_is_there(progress, stage, microbatch);
    case MTF_WORK_WEIGHT_GRADIENT:
    case MTF_WORK_SEND_BACKWARD:
        return input_gradient_is_made(progress, stage, microbatch);
    case MTF_WORK_SEND_FORWARD:
        return mtf_pipeline_progress_done(progress, MTF_WORK_FORWARD, stage, microbatch);
    case MTF_WORK_RECEIVE_FORWARD:
        return mtf_pipeline_progress_done(progress, MTF_WORK_SEND_FORWARD, stage - 1, microbatch);
    case MTF_WORK_RECEIVE_BACKWARD:
        return mtf_pipeline_progress_done(progress, MTF_WORK_SEND_BACKWARD, stage + 1, microbatch);
    default:
        return true;
    }
}

bool mtf_pipeline_progress_group_ready(const MtfPipelineProgress *progress, int rank) {
    int count = mtf_pipeline_progress_group(progress, rank);
    for (int i = 0; i < count; i++)
        if (!mtf_pipeline_progress_ready(
                progress, mtf_pipeline_action(progress->order, rank, progress->head[rank] + i)))
            return false;
    return count > 0;
}

void mtf_pipeline_progress_mark(MtfPipelineProgress *progress, const MtfPipelineAction *action) {
    if (action->microbatch >= 0)
        progress->done[mtf_pipeline_pair(progress->order, action->stage, action->microbatch)] |=
            (uint16_t)(1U << action->work);
}

void mtf_pipeline_progress_advance(MtfPipelineProgress *progress, int rank) {
    int count = mtf_pipeline_progress_group(progress, rank);
    for (int i = 0; i < count; i++)
        mtf_pipeline_progress_mark(
            progress, mtf_pipeline_action(progress->order, rank, progress->head[rank]++));
}

MtfPipelineAction mtf_pipeline_other_end(const MtfPipelineAction *message) {
    MtfPipelineAction other = *message;
    other.with_next = false;
    other.idle = 0;
    switch (message->work) {
    case MTF_WORK_SEND_FORWARD:
        other.work = MTF_WORK_RECEIVE_FORWARD;
        other.stage++;
        break;
    case MTF_WORK_RECEIVE_FORWARD:
        other.work = MTF_WORK_SEND_FORWARD;
        other.stage--;
        break;
    case MTF_WORK_SEND_BACKWARD:
        other.work = MTF_WORK_RECEIVE_BACKWARD;
        other.stage--;
        break;
    default:
        other.work = MTF_WORK_SEND_BACKWARD;
        other.stage++;
    }
    return other;
}
