// SPDX-License-Identifier: GPL-3.0-or-later
/* What of a micro-batch is wanted after the last: the loss, gradients of variables, and what variables are
 * assigned. The training graph has them of its whole batch; where that is in parts
 * (layouts/graph/microbatches.h), each part's is summed, and what runs once a step reads the sum:
 *
 *     forward    losses ──reduce──► loss ──accumulate──► step/loss           a term of the batch (batch_terms.h)
 *                statistic ──× 1/m──► share/s ──accumulate──► step/share/s   a variable gets the mean
 *     backward   shares 1/n of such a mean are m/n: of the examples of a micro-batch
 *                … ──► part/W ──accumulate──► grad/W                         what was grad/W
 *     once       update/W reads grad/W, in bfloat16 where it did: sums are wide and rounded once
 *
 * A mean weighted by a mask is divided behind the last micro-batch, and so are its gradients:
 *
 *     losses * mask ──reduce_sum──► top ─────accumulate──► step/top ────┐
 *     mask ───────────reduce_sum──► bottom ──accumulate──► step/bottom ─┴─divide──► loss
 *     part/W ────────────────────────────────accumulate──► sum/W ───── × 1/step/bottom ──► grad/W */
#ifndef MTF_ACCUMULATION_H
#define MTF_ACCUMULATION_H

#include "layouts/graph/graph.h"

/* Does so in a training graph whose batch is divided, canonical and with what runs once a step behind all
 * else; the graph is canonical afterwards. Does nothing without micro-batches; without a loss nothing is
 * summed. Fails with a bad-input error where examples of several micro-batches mix, the graph adds up by
 * itself, or a name is taken. */
bool mtf_graph_accumulate(MtfGraph *graph, GError **error);

#endif
