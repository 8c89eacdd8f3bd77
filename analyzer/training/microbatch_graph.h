// SPDX-License-Identifier: GPL-3.0-or-later
/* Whether a step may work through its batch in parts, and the loss of one that does.
 *
 * The batch dimension of a forward graph gets the size of one micro-batch. Means still divide by
 * the whole batch, as they do when ranks share it, so what a micro-batch computes is, by class:
 *
 *     fixed      the same for every micro-batch: of variables and constants alone
 *     part       has the batch dimension: its examples of the whole tensor
 *     statistic  a mean over the examples of one micro-batch, which the operation must say
 *                ("per_microbatch"), and what is computed of it: batch normalisation
 *     term       one term of a sum over micro-batches: the batch was summed away, or averaged
 *
 *     x[batch, d] ──► losses[batch] ──reduce_mean──► loss            (a term)
 *         part           part                          └──accumulate──► step/loss
 *
 * Terms may pass through what is linear in them and through nothing else. So whatever mixes
 * examples of several micro-batches (statistics of the whole batch, a maximum over it) is refused by
 * name, and the gradients of all micro-batches add up to that of the step. Statistics go anywhere: to
 * the model they are constants of the micro-batch that depend on all its examples, so a result with
 * statistics is one of so many micro-batches and of no other number.
 *
 * One loss may be more than linear: a term divided by another that no variable leads to, a mean
 * weighted by a mask. Both are accumulated and divided when the last micro-batch is done:
 *
 *     losses * mask ──reduce_sum──► top ─────accumulate──► step/top ────┐
 *     mask ───────────reduce_sum──► bottom ──accumulate──► step/bottom ─┴─divide──► loss
 *     part/W ────────────────────────────────accumulate──► sum/W ───── × 1/bottom ──► grad/W */
#ifndef MTF_MICROBATCH_GRAPH_H
#define MTF_MICROBATCH_GRAPH_H

#include "layouts/graph/graph.h"

/* The dimension that counts examples: of that name, or where `name` is NULL the first one of every
 * input. Returns -1 with a bad-input error. */
int mtf_batch_dimension(const MtfGraph *graph, const char *name, GError **error);

/* Makes a forward graph one of micro-batches: divides the dimension's size. Fails when it does not
 * divide or is given another name. 1 leaves the graph as it is. */
bool mtf_graph_set_microbatches(MtfGraph *graph, int batch, int microbatches, GError **error);

/* Checks a forward graph without composites and makes the sum of its loss over micro-batches
 * ("step/NAME") its loss. Does nothing without micro-batches, nor where the loss is no scalar. Of a
 * weighted mean that is the dividend; `*divisor` is then the sum of weights that the loss and its
 * gradients have yet to be divided by (else -1) and `*name` what the loss is called (free with
 * g_free). Of `assignments` (MtfUpdate), which happen once a step, the values become those of the step:
 * of what depends on statistics the mean over micro-batches, of terms their sum. */
bool mtf_accumulate_loss(MtfGraph *graph, GArray *assignments, int *divisor, char **name,
                         GError **error);

/* Divides, once a step: appends the loss called `name` and the gradients of `gradients`
 * (MtfVariableGradient), which then hold the quotients. */
bool mtf_divide_by_weights(MtfGraph *graph, int divisor, const char *name, GArray *gradients,
                           GError **error);

#endif
