// SPDX-License-Identifier: GPL-3.0-or-later
/* Local search over orders within a memory cap: letters of a rank's string (pipeline_string.h) move to
 * other places, moves that make the pipeline longer are taken with a probability that sinks (simulated
 * annealing, from a fixed seed), and the best order seen is kept. What is made shorter is the span; of
 * equal spans the one whose last rank ends first. */
#ifndef MTF_PIPELINE_ANNEAL_H
#define MTF_PIPELINE_ANNEAL_H

#include "cost/pipeline/pipeline_string.h"

/* Whether `a` is shorter than `b` in span, or as short and ends earlier. */
bool mtf_pipeline_score_is_better(const MtfPipelineScore *a, const MtfPipelineScore *b);

/* Betters `string`, which must fit and not deadlock, by `moves` tries; stops early where `bound`, below
 * which no span is, is reached. Returns the score. */
MtfPipelineScore mtf_pipeline_anneal(MtfPipelineString *string, const MtfPipelineCase *the_case,
                                     int64_t moves, double bound, uint32_t seed);

#endif
