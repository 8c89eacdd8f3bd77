// SPDX-License-Identifier: GPL-3.0-or-later
/* What an operation of the forward pass makes of one micro-batch's examples, and with it whether a step may
 * work through its batch in parts. Means divide by the whole batch, as they do when ranks share it:
 *
 *     fixed      the same for every micro-batch: of variables and constants alone
 *     part       has the batch dimension: its examples of the whole tensor
 *     statistic  a mean over the examples of one micro-batch, which the operation must say
 *                ("per_microbatch"), and what is computed of it: batch normalisation
 *     term       one term of a sum over micro-batches: the batch was summed away, or averaged
 *
 *     x[batch, d] ──► losses[batch] ──reduce_mean──► loss
 *         part           part                         term
 *
 * Terms may pass through what is linear in them and through nothing else. So whatever mixes
 * examples of several micro-batches (statistics of the whole batch, a maximum over it) is refused by
 * name, and the gradients of all micro-batches add up to that of the step. Statistics go anywhere: to
 * the model they are constants of the micro-batch that depend on all its examples, so a result with
 * statistics depends on the number of micro-batches.
 *
 * One loss may be more than linear: a term divided by another that no variable leads to, a mean
 * weighted by a mask. */
#ifndef MTF_BATCH_TERMS_H
#define MTF_BATCH_TERMS_H

#include "layouts/graph/graph.h"

typedef enum { MTF_BATCH_FIXED, MTF_BATCH_PART, MTF_BATCH_STATISTIC, MTF_BATCH_TERM } MtfBatchClass;

/* The class of each result of a forward pass without composites, by tensor (fixed: of the other phases); free
 * with g_free. `*division` is the operation that makes the loss a weighted mean, else -1; its result has no
 * class. Fails with a bad-input error (NULL) where examples of several micro-batches mix, or the loss is no
 * sum over them. */
MtfBatchClass *mtf_batch_classes(const MtfGraph *graph, int batch, int *division, GError **error);

/* Fails where an operation says where elements lie along the batch, or gives it another name. */
bool mtf_batch_check_positions(const MtfGraph *graph, int batch, GError **error);

#endif
