// SPDX-License-Identifier: GPL-3.0-or-later
/* The witness of cost/pipeline/pipeline_run.h: the same question answered by relaxing one inequality
 * after the other until nothing moves (a longest path by Bellman and Ford), which knows of no ranks
 * that play and no order of events. */
#ifndef MTF_TESTS_PIPELINE_EVENTS_H
#define MTF_TESTS_PIPELINE_EVENTS_H

#include "cost/pipeline/pipeline_run.h"

/* end[rank][i] of every action of an order without messages; free each and the array with g_free. */
double **mtf_test_pipeline_ends(const MtfPipelineOrder *order, const MtfStageTimes *times);

#endif
