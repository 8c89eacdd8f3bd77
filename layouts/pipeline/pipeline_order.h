// SPDX-License-Identifier: GPL-3.0-or-later
/* The order of a pipeline: for every rank (a domain of the pipeline) the list of what it does in one
 * training step, one action after the other. An action is a piece of work of one stage on one
 * micro-batch, written as in PyTorch's schedules:
 *
 *     rank 0   0F0 0F1 0B0 0B1          F forward      I input gradient    W weight gradient
 *     rank 1   1F0 1B0 1F1 1B1          B both gradients
 *
 * Ranks may have several stages (chunks). They go around, or there and back:
 *
 *     loop, 3 ranks, 6 stages          V, 3 ranks, 6 stages
 *     rank 0  0   3                    rank 0  0         5
 *     rank 1    1   4                  rank 1    1     4
 *     rank 2      2   5                rank 2      2 3
 *
 * Orders are made by the rows of cost/pipeline/pipeline_schedule.h, by a search, or read from a
 * file (pipeline_text.h); pipeline_check.h says whether an order is sound, and pipeline_lower.h puts
 * the sends and receives in. */
#ifndef MTF_PIPELINE_ORDER_H
#define MTF_PIPELINE_ORDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    MTF_WORK_FORWARD,
    MTF_WORK_INPUT_GRADIENT,
    MTF_WORK_WEIGHT_GRADIENT,
    MTF_WORK_BACKWARD,        /* input and weight gradients as one */
    MTF_WORK_SEND_FORWARD,    /* the result of this stage, to the next one */
    MTF_WORK_RECEIVE_FORWARD, /* the input of this stage, from the one before */
    MTF_WORK_SEND_BACKWARD,   /* this stage's input gradient, to the one before */
    MTF_WORK_RECEIVE_BACKWARD,
    /* What sharded data parallelism adds in PyTorch's files; nothing waits for these. */
    MTF_WORK_UNSHARD,
    MTF_WORK_RESHARD,
    MTF_WORK_REDUCE_GRADIENT,
    MTF_WORKS,
} MtfPipelineWork;

typedef struct {
    int32_t stage;
    int32_t microbatch; /* -1 where the work has none (UNSHARD, RESHARD) */
    MtfPipelineWork work;
    int32_t idle;   /* empty slots before it in a file; only lowering heeds them */
    bool with_next; /* overlapped with the action after it: "(4F1;0B0)OVERLAP_F_B" */
} MtfPipelineAction;

typedef enum {
    MTF_STAGES_LOOP, /* stage s on rank s mod ranks */
    MTF_STAGES_V,    /* two stages a rank: s and 2 ranks - 1 - s */
} MtfStagePlaces;

typedef struct {
    int ranks, stages, microbatches;
    int *rank_of_stage; /* [stages] */
    GArray **actions;   /* [ranks], of MtfPipelineAction */
} MtfPipelineOrder;

/* An order without actions. Everything at least 1; V needs two stages a rank. */
MtfPipelineOrder *mtf_pipeline_order_new(int ranks, int stages, int microbatches,
                                         MtfStagePlaces places);
MtfPipelineOrder *mtf_pipeline_order_copy(const MtfPipelineOrder *order);
void mtf_pipeline_order_free(MtfPipelineOrder *order);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineOrder, mtf_pipeline_order_free)

/* Appends an action to the list of the rank that has the stage. */
void mtf_pipeline_order_add(MtfPipelineOrder *order, MtfPipelineWork work, int stage,
                            int microbatch);

static inline int mtf_pipeline_length(const MtfPipelineOrder *order, int rank) {
    return (int)order->actions[rank]->len;
}

static inline MtfPipelineAction *mtf_pipeline_action(const MtfPipelineOrder *order, int rank,
                                                     int i) {
    return &g_array_index(order->actions[rank], MtfPipelineAction, (guint)i);
}

/* F, I, W and B, which take a device's time. */
static inline bool mtf_work_computes(MtfPipelineWork work) {
    return work <= MTF_WORK_BACKWARD;
}

/* I and B, which make the gradient that the stage before waits for. */
static inline bool mtf_work_makes_input_gradient(MtfPipelineWork work) {
    return work == MTF_WORK_INPUT_GRADIENT || work == MTF_WORK_BACKWARD;
}

/* W and B, after which nothing of the micro-batch is kept for this stage. */
static inline bool mtf_work_ends_microbatch(MtfPipelineWork work) {
    return work == MTF_WORK_WEIGHT_GRADIENT || work == MTF_WORK_BACKWARD;
}

/* The number of the pair (stage, micro-batch), for arrays over both. */
static inline int mtf_pipeline_pair(const MtfPipelineOrder *order, int stage, int microbatch) {
    return stage * order->microbatches + microbatch;
}

/* Whether what leaves `stage` forwards (or backwards) goes to a stage on another rank; false as
 * well where there is no such stage. */
bool mtf_pipeline_crosses(const MtfPipelineOrder *order, int stage, bool forward);

/* Whether no pass is one of gradients: the order of a model that is run, not trained. */
bool mtf_pipeline_only_forward(const MtfPipelineOrder *order);

/* The most micro-batches that `rank` holds at any time, counted over its stages: from the beginning
 * of their forward to the end of their weight gradient. */
int mtf_pipeline_in_flight(const MtfPipelineOrder *order, int rank);

/* Gives each micro-batch of `stage` the lowest slot for its activations that is free from its
 * forward to its weight gradient: slots[microbatch]. Returns how many slots that takes. */
int mtf_pipeline_slots(const MtfPipelineOrder *order, int stage, int *slots);

#endif
