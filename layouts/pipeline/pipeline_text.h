// SPDX-License-Identifier: GPL-3.0-or-later
/* Orders as text, in the grammar of PyTorch's schedule files: one line a rank, cells between commas,
 * an empty cell is an idle slot.
 *
 *     cell    = [stage] work [micro-batch] | "(" cell ";" cell ")OVERLAP_F_B"
 *     work    = F | I | W | B | SEND_F | RECV_F | SEND_B | RECV_B | UNSHARD | RESHARD | REDUCE_GRAD
 *
 * I is the input gradient, W the weight gradient, B both. Older files write B for I: a B whose W
 * stands in the file as well is read as I. Lines that begin with # are skipped.
 * The numbers of ranks, stages and micro-batches are what the file shows. */
#ifndef MTF_PIPELINE_TEXT_H
#define MTF_PIPELINE_TEXT_H

#include "layouts/pipeline/pipeline_order.h"

/* Reads an order and checks it (pipeline_check.h). `name` stands for the file in messages. */
MtfPipelineOrder *mtf_pipeline_parse(const char *name, const char *text, GError **error);

/* The same from a file; "-" is standard input. */
MtfPipelineOrder *mtf_pipeline_load(const char *path, GError **error);

/* The order as text, which parses back to the same order; free with g_free. */
char *mtf_pipeline_format(const MtfPipelineOrder *order);

/* One action, "2F0"; free with g_free. */
char *mtf_pipeline_action_format(const MtfPipelineAction *action);

#endif
