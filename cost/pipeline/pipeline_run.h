// SPDX-License-Identifier: GPL-3.0-or-later
/* When the actions of a pipeline's order run, and what they hold. Every rank does its actions one
 * after the other, each as soon as what it needs is there; a result that goes to another rank arrives
 * `transfer` seconds after it was made, in the background (sends and receives of the order take no
 * time of their own). A fused backward (B) passes its gradient on when both halves are done;
 * overlapped actions run one after the other.
 *
 *     rank 0  F0 F1 .. .. B0 .. B1         makespan = last end of all
 *     rank 1     F0 B0 F1 B1 ..            span     = max over ranks of (last end - first begin)
 *
 * A pipeline's bubble is (span - ideal) / span, ideal = the most computing that a rank has (arXiv
 * 2401.10241, section 4): steps follow one another, and a rank that begins late ends late. */
#ifndef MTF_PIPELINE_RUN_H
#define MTF_PIPELINE_RUN_H

#include "layouts/pipeline/pipeline_order.h"

/* Of one stage and one micro-batch; any unit of time. */
typedef struct {
    double forward, input_gradient, weight_gradient;
    double transfer_forward;  /* of its result to the stage after it, if that is on another rank */
    double transfer_backward; /* of its input gradient to the stage before it, likewise */
} MtfStageTimes;

/* What an action adds to what its rank holds, in any unit. Together they are 0, or micro-batches would
 * leave something behind. Forwards take theirs when they begin, gradients give theirs back (or take
 * it) when they end. */
typedef struct {
    double forward, input_gradient, weight_gradient;
} MtfStageMemory;

typedef struct {
    double begin, end;
} MtfActionTime;

typedef struct {
    int ranks;
    MtfActionTime **time;        /* [ranks][actions of the rank] */
    double *first, *last, *busy; /* [ranks]: first begin, last end, sum of what it computes */
    double makespan, span, ideal, bubble;
    double period; /* of steps that overlap: from one to the next */
} MtfPipelineRun;

/* Runs a checked order; times[stage]. Free with mtf_pipeline_run_free. */
MtfPipelineRun *mtf_pipeline_run_new(const MtfPipelineOrder *order, const MtfStageTimes *times);

/* How steps of an asynchronous pipeline follow one another. */
typedef struct {
    const MtfStageTimes *times; /* [stages] */
    const double *once;         /* [stages]: what a stage does behind a step's passes */
    int ahead; /* steps that a rank may be ahead of what all have done: above that it waits for them */
} MtfSteadyTimes;

/* The order in which a stage of an asynchronous pipeline (layouts/pipeline/pipeline_delay.h) does the passes of one
 * step among many: its backward passes, each behind the forward pass of the micro-batch that lies ahead, by
 * their numbers in the steps that they belong to. */
MtfPipelineOrder *mtf_pipeline_steady_order(const MtfPipelineOrder *order);

/* One such step, in that order, after so many that each takes as long as the others: `period`. What is shown of it
 * begins at 0. The busiest stage waits for the bubble's share of what it does not do once a step. */
MtfPipelineRun *mtf_pipeline_run_steady(const MtfPipelineOrder *order, const MtfSteadyTimes *times);

void mtf_pipeline_run_free(MtfPipelineRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineRun, mtf_pipeline_run_free)

/* The time that one action computes: 0 for messages. */
double mtf_pipeline_action_seconds(const MtfPipelineAction *action, const MtfStageTimes *times);

/* What one action adds; memory[stage]. A fused backward adds both gradients' shares. */
double mtf_pipeline_action_memory(const MtfPipelineAction *action, const MtfStageMemory *memory);

/* The most that `rank` holds at any time. It depends on the order alone, not on times. */
double mtf_pipeline_peak(const MtfPipelineOrder *order, const MtfStageMemory *memory, int rank);

#endif
