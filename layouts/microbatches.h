// SPDX-License-Identifier: GPL-3.0-or-later
/* Micro-batches: a step works through its batch in parts. Forward and backward run once for each
 * part, clipping and updates once a step, so the graph's operations, and the instructions they are
 * lowered to, stand in two runs:
 *
 *     operation    0 1 2 … n-1          n …
 *                  forward, backward    clip, update
 *     times        microbatches         1
 *
 * The graph's batch dimension has the size of one micro-batch: micro-batch k of m holds examples
 * [k B/m, (k+1) B/m) of the step's B. */
#ifndef MTF_MICROBATCHES_H
#define MTF_MICROBATCHES_H

#include "layouts/graph.h"

/* The n above: operations [0, n) run once a micro-batch. 0 without micro-batches. */
int mtf_graph_repeated(const MtfGraph *graph);

/* How often a step runs an operation. */
int mtf_operation_times(const MtfGraph *graph, int operation);

/* The examples of a whole step: the batch dimension's size times the micro-batches. */
int64_t mtf_graph_step_size(const MtfGraph *graph, int dim);

/* Fails, naming the operation, where a graph with micro-batches cannot be run: an operation that
 * runs once stands before one that is repeated. */
bool mtf_graph_check_microbatches(const MtfGraph *graph, GError **error);

#endif
