// SPDX-License-Identifier: GPL-3.0-or-later
/* From the forward graph a user writes to the graph of one training step:
 *
 *     forward graph ──expand──► primitive rows ──differentiate──► gradients ──► clip, updates
 *
 * It has the whole batch, and its updates stand at the end. It is what plans hold; layouts are searched for
 * it as it is run (layouts/execution/executed_graph.h). */
#ifndef MTF_TRAINING_GRAPH_H
#define MTF_TRAINING_GRAPH_H

#include "layouts/graph/graph.h"

/* A new graph with expand.h, differentiate.h and optimizer_updates.h applied; see there for names. Without an
 * optimizer it ends with the gradients. Tensors are in canonical order. Fails with a bad-input error: no
 * loss, a loss that is not a scalar, no variable that leads to it, no gradient, a name that is taken, a
 * tensor in bfloat16 (mixed_precision.h brings it in afterwards). */
MtfGraph *mtf_training_graph(const MtfGraph *forward, GError **error);

/* Whether a graph that is one of a whole training step as it was written (mtf_graph_is_training) changes what
 * it trains behind its loss, as rows of phase "update" do: what a variable becomes otherwise would be changed
 * before or behind the loss, as operations are ordered. Fails with a bad-input error. */
bool mtf_training_graph_check(const MtfGraph *graph, GError **error);

/* Makes every float tensor of the graph one of `dtype` (float32 or float64). */
void mtf_graph_set_precision(MtfGraph *graph, MtfDtype dtype);

#endif
