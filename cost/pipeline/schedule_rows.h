// SPDX-License-Identifier: GPL-3.0-or-later
/* The makers behind the table of schedules (pipeline_schedule.h), each with its source in its file.
 * All but the interleaved one get the number of chunks that their row says. */
#ifndef MTF_SCHEDULE_ROWS_H
#define MTF_SCHEDULE_ROWS_H

#include "cost/pipeline/pipeline_schedule.h"

/* schedule_one_forward.c */
MtfPipelineOrder *mtf_schedule_gpipe(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_one_forward(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_eager(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_interleaved(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_zero_bubble_h1(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_zero_bubble_h2(const MtfPipelineCase *c, GError **error);

#endif
