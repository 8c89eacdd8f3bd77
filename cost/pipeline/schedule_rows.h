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

/* schedule_heuristic.c: within the memory of p, of 2p micro-batches, of the cap alone */
MtfPipelineOrder *mtf_schedule_zero_bubble_1p(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_zero_bubble_2p(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_zero_bubble_auto(const MtfPipelineCase *c, GError **error);

/* schedule_v_by_hand.c; ZB-V by hand suits equal times and cannot fail. */
MtfPipelineOrder *mtf_schedule_zero_bubble_v_by_hand(const MtfPipelineCase *c);
MtfPipelineOrder *mtf_schedule_dualpipe_v(const MtfPipelineCase *c, GError **error);

/* schedule_there_and_back.c */
MtfPipelineOrder *mtf_schedule_zero_bubble_v(const MtfPipelineCase *c, GError **error);

/* schedule_pattern.c: half and a third of 1F1B's memory */
MtfPipelineOrder *mtf_schedule_v_half(const MtfPipelineCase *c, GError **error);
MtfPipelineOrder *mtf_schedule_v_min(const MtfPipelineCase *c, GError **error);

#endif
