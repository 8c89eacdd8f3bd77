// SPDX-License-Identifier: GPL-3.0-or-later
/* What a drawing of a cut graph shows: the whole forward pass, a frame a stage in the colour of its domain,
 * and on the arrows from frame to frame what stages send each other.
 *
 *     ┌ stage 0 · device 0 ───────────────────────────────────┐
 *     │   embedding ──► layer 0–3 (× 4)                       │     boxes: layers that are laid out alike,
 *     └────────────────────┬──────────────────────────────────┘     and else what has a name in common
 *              (layer/3/x_out · 32.00 KiB ↓)
 *              (grad/layer/3/x_out · 32.00 KiB ↑)                   bytes a micro-batch
 *     ┌ stages 1–6, alike ─┴──────────────────────────────────┐
 *     │                layer 4–7 (× 4)                        │     the first of equal stages behind each other
 *
 * Sums for clipping and the numbers of updates are left out. */
#ifndef MTF_CUT_VIEW_H
#define MTF_CUT_VIEW_H

#include "reports/drawing/partition_view.h"
#include "reports/facts/pipeline_facts.h"

/* Free with mtf_partition_view_free. A frame links to "FOLDER/index.html" of its first stage: folders[stage]. */
MtfPartitionView *mtf_cut_view_new(const MtfPipelineFacts *facts, char *const *folders);

#endif
