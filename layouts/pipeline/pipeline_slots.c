// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_slots.h"

#include "layouts/pipeline/pipeline_progress.h"

typedef struct {
    const MtfPipelineOrder *order;
    const GArray *ways;
    int *counts, *slots;
    int *before; /* the micro-batch that had the slot before, or -1; as slots */
} Slots;

/* Gives each micro-batch of a stage the slot that was left longest ago. */
static void give_slots(const Slots *s, int stage) {
    int microbatches = s->order->microbatches, rank = s->order->rank_of_stage[stage];
    int *slots = s->slots + stage * microbatches;
    GQueue free = G_QUEUE_INIT;
    for (int k = 0; k < s->counts[stage]; k++)
        g_queue_push_tail(&free, GINT_TO_POINTER(k));
    for (int i = 0; i < mtf_pipeline_length(s->order, rank); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(s->order, rank, i);
        if (action->stage != stage)
            continue;
        if (action->work == MTF_WORK_FORWARD)
            slots[action->microbatch] = GPOINTER_TO_INT(g_queue_pop_head(&free));
        if (mtf_work_ends_microbatch(action->work))
            g_queue_push_tail(&free, GINT_TO_POINTER(slots[action->microbatch]));
    }
    g_queue_clear(&free);
}

static void find_before(const Slots *s, int stage) {
    int microbatches = s->order->microbatches, rank = s->order->rank_of_stage[stage];
    int row = stage * microbatches;
    g_autofree int *last = g_new(int, s->counts[stage]);
    for (int k = 0; k < s->counts[stage]; k++)
        last[k] = -1;
    for (int i = 0; i < mtf_pipeline_length(s->order, rank); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(s->order, rank, i);
        if (action->stage != stage || action->work != MTF_WORK_FORWARD)
            continue;
        int slot = s->slots[row + action->microbatch];
        s->before[row + action->microbatch] = last[slot];
        last[slot] = action->microbatch;
    }
}

/* By the end of the micro-batch: where weights' gradients stand apart, they alone may read what was sent. */
static bool has_taken(const MtfPipelineProgress *progress, int stage, int microbatch) {
    return mtf_pipeline_progress_done(progress, MTF_WORK_BACKWARD, stage, microbatch) ||
           mtf_pipeline_progress_done(progress, MTF_WORK_WEIGHT_GRADIENT, stage, microbatch);
}

/* Whether the gradients that the slot held before have been taken, which those of the action replace. */
static bool may_write(const Slots *s, const MtfPipelineProgress *progress,
                      const MtfPipelineAction *action) {
    bool writes = action->work == MTF_WORK_BACKWARD || action->work == MTF_WORK_INPUT_GRADIENT;
    int before =
        writes ? s->before[action->stage * s->order->microbatches + action->microbatch] : -1;
    for (guint i = 0; before >= 0 && i < s->ways->len; i++) {
        const MtfGradientWay *way = &g_array_index(s->ways, MtfGradientWay, i);
        if (way->from == action->stage && !has_taken(progress, way->to, before))
            return false;
    }
    return true;
}

/* The stage of the rank's next actions that has to wait for its slot; -1: none has. */
static int waiting_stage(const Slots *s, const MtfPipelineProgress *progress, int rank) {
    int count = mtf_pipeline_progress_group(progress, rank);
    for (int i = 0; i < count; i++) {
        const MtfPipelineAction *action =
            mtf_pipeline_action(s->order, rank, progress->head[rank] + i);
        if (!may_write(s, progress, action))
            return action->stage;
    }
    return -1;
}

static bool advance_rank(const Slots *s, MtfPipelineProgress *progress, int rank) {
    bool advanced = false;
    while (mtf_pipeline_progress_group(progress, rank) > 0 &&
           mtf_pipeline_progress_group_ready(progress, rank) &&
           waiting_stage(s, progress, rank) < 0) {
        mtf_pipeline_progress_advance(progress, rank);
        advanced = true;
    }
    return advanced;
}

/* A stage in a circle of those that wait for their slots, which has not one for each micro-batch; -1: there
 * is none. */
static int stage_in_circle(const Slots *s) {
    MtfPipelineProgress progress;
    int stage = -1;
    mtf_pipeline_progress_init(&progress, s->order, false);
    for (bool advanced = true; advanced;) {
        advanced = false;
        for (int r = 0; r < s->order->ranks; r++)
            advanced |= advance_rank(s, &progress, r);
    }
    for (int r = 0; r < s->order->ranks && stage < 0; r++) {
        int waiting = waiting_stage(s, &progress, r);
        if (waiting >= 0 && s->counts[waiting] < s->order->microbatches)
            stage = waiting;
    }
    mtf_pipeline_progress_clear(&progress);
    return stage;
}

void mtf_pipeline_find_slots(const MtfPipelineOrder *order, const GArray *ways, int *counts,
                             int *slots) {
    int pairs = order->stages * order->microbatches;
    g_autofree int *before = g_new(int, (gsize)pairs);
    const Slots all = { order, ways, counts, slots, before };
    for (int stage = 0; stage < order->stages; stage++) {
        counts[stage] = mtf_pipeline_slots(order, stage, slots + stage * order->microbatches);
        find_before(&all, stage);
    }
    for (int stage; (stage = stage_in_circle(&all)) >= 0;) {
        counts[stage]++;
        give_slots(&all, stage);
        find_before(&all, stage);
    }
}
