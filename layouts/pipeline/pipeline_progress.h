// SPDX-License-Identifier: GPL-3.0-or-later
/* How far a walk over an order has come: which actions are done, and at which each rank stands. It
 * knows what an action waits for (pipeline_check.h); checking, lowering and counting steps walk over
 * orders with it. Actions that are overlapped stand and go as one group.
 *
 *     rank 0   0F0 0F1 [0B0] 0B1          the groups in brackets are the heads;
 *     rank 1   1F0 1B0 [(1F1;1B1)]        what stands left of them is done */
#ifndef MTF_PIPELINE_PROGRESS_H
#define MTF_PIPELINE_PROGRESS_H

#include "layouts/pipeline/pipeline_order.h"

typedef struct {
    const MtfPipelineOrder *order;
    bool messages;  /* results of other ranks arrive by the order's own receives */
    uint16_t *done; /* [pairs], bit w: work w is done */
    int *head;      /* [ranks], the first action of the list that is not done */
} MtfPipelineProgress;

/* Nothing is done yet; with `messages` transfers are actions of their own. Clear it after use;
 * `order` must outlive it. */
void mtf_pipeline_progress_init(MtfPipelineProgress *progress, const MtfPipelineOrder *order,
                                bool messages);
void mtf_pipeline_progress_clear(MtfPipelineProgress *progress);

/* The number of actions in the head group of `rank`; 0 when its list is done. */
int mtf_pipeline_progress_group(const MtfPipelineProgress *progress, int rank);

/* Whether nothing but the rank's own turn keeps this action waiting; a receive needs that its send is
 * done, a send that its result is made. */
bool mtf_pipeline_progress_ready(const MtfPipelineProgress *progress,
                                 const MtfPipelineAction *action);

/* Whether all actions of the head group are ready. */
bool mtf_pipeline_progress_group_ready(const MtfPipelineProgress *progress, int rank);

/* Marks one action as done, wherever it stands. */
void mtf_pipeline_progress_mark(MtfPipelineProgress *progress, const MtfPipelineAction *action);

/* Marks the head group as done and goes on to the next. */
void mtf_pipeline_progress_advance(MtfPipelineProgress *progress, int rank);

static inline bool mtf_pipeline_progress_done(const MtfPipelineProgress *progress,
                                              MtfPipelineWork work, int stage, int microbatch) {
    return progress->done[mtf_pipeline_pair(progress->order, stage, microbatch)] >> work & 1;
}

/* The other end of a message: of a send its receive, of a receive its send. */
MtfPipelineAction mtf_pipeline_other_end(const MtfPipelineAction *message);

static inline bool mtf_work_is_send(MtfPipelineWork work) {
    return work == MTF_WORK_SEND_FORWARD || work == MTF_WORK_SEND_BACKWARD;
}

static inline bool mtf_work_is_receive(MtfPipelineWork work) {
    return work == MTF_WORK_RECEIVE_FORWARD || work == MTF_WORK_RECEIVE_BACKWARD;
}

#endif
