// SPDX-License-Identifier: GPL-3.0-or-later
/* Asynchronous pipelines: they do not run empty between steps. A stage begins with the next step's
 * micro-batches before this step's update, so it computes with weights that lag, the same ones in the
 * forward and the backward pass of a micro-batch, for which it keeps several versions. With w(t) the
 * weights after t updates, step t (from 1) of a stage D updates behind is
 *
 *     w(t) = w(t - 1) - rate x gradient(w(max(0, t - 1 - D)))
 *
 *     pipedream       D = ceil(lookahead / M): p - s versions where every micro-batch is a step
 *                     (PipeDream, arXiv 1806.03377, weight stashing)
 *     pipedream-2bw   D = 1 in all stages, two versions (arXiv 2006.09503), M >= p - 1
 *
 * where M micro-batches make a step and stage s of p looks p - 1 - s of them ahead. */
#ifndef MTF_PIPELINE_DELAY_H
#define MTF_PIPELINE_DELAY_H

#include "layouts/pipeline/pipeline_order.h"

/* Whether stages of the schedule compute with weights of earlier steps. */
bool mtf_pipeline_is_asynchronous(const char *schedule);

/* Micro-batches whose forward pass a stage does before the backward pass of the first: of an order with
 * one stage a rank. */
int mtf_pipeline_lookahead(const MtfPipelineOrder *order, int stage);

/* D of the formula; 0 for synchronous schedules. */
int mtf_pipeline_delay(const char *schedule, const MtfPipelineOrder *order, int stage);

#endif
