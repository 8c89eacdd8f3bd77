// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for a pipeline's order within a memory cap. It begins with every schedule of the table that
 * suits the number of chunks and fits, and with schedules whose warm-up is cut to the cap; betters the
 * best of them by local search (pipeline_anneal.h), long ones first with few micro-batches and then
 * extended; and ends as soon as a bound is reached (pipeline_bound.h). Small ones of one chunk go to the
 * integer program (pipeline_ilp.h), which betters or proves them. The answer never holds more than the cap
 * and is never longer than any schedule it began with. */
#ifndef MTF_PIPELINE_SEARCH_H
#define MTF_PIPELINE_SEARCH_H

#include "cost/pipeline/pipeline_schedule.h"

typedef struct {
    MtfPipelineOrder *order;
    double bound;      /* no order of these stages on these ranks has a shorter span */
    const char *begun; /* the schedule of the table that the best order grew from; static */
    bool proven;       /* the span is the bound, to a relative 1e-9 of sums or the solver's 1e-6 */
} MtfPipelineOrderSearch;

/* Fails with MTF_ERROR_FIT where the cap is below one micro-batch of a rank's stages, and when GLPK
 * fails. The caller frees `answer->order`. */
bool mtf_pipeline_order_search(const MtfPipelineCase *the_case, MtfPipelineOrderSearch *answer,
                               GError **error);

#endif
