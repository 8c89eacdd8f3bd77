// SPDX-License-Identifier: GPL-3.0-or-later
/* What no order of a pipeline can go below. A rank computes for `busy` seconds; between the beginning of
 * its first forward (of its first stage a) and its first input gradient (of its last stage b) a
 * micro-batch must go through all stages from a on and come back to b, and by then the rank can only do
 * forwards; memory admits n of them, n = floor(cap / smallest forward's share):
 *
 *     wait = sum of F from a on + sum of I behind b + transfers on the way
 *     span >= busy + max(0, wait - n * longest F)
 *
 * At cap = p micro-batches of equal stages that is (p - 1)(I + 2c) more than the ideal. And every
 * micro-batch holds its share of each stage s from the forward's beginning to the weight gradient's end,
 * at least the way from s to the last stage and back, in a room of `cap` times the span:
 *
 *     cap * span >= m * sum over s of (share at F * (way of s + I) + share after I * W) */
#ifndef MTF_PIPELINE_BOUND_H
#define MTF_PIPELINE_BOUND_H

#include "cost/pipeline/pipeline_schedule.h"

typedef struct {
    double span, makespan;
} MtfPipelineBound;

/* For the stages laid as `rank_of_stage` says. */
MtfPipelineBound mtf_pipeline_bound(const MtfPipelineCase *the_case, const int *rank_of_stage);

/* The smallest cap within which there is an order: a rank holds one micro-batch of all its stages. */
double mtf_pipeline_least_cap(const MtfPipelineCase *the_case, const int *rank_of_stage);

#endif
