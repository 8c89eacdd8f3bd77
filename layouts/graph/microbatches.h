// SPDX-License-Identifier: GPL-3.0-or-later
/* Micro-batches: a step works through its batch in parts. The graph of such a step says so by one fact:
 * its batch dimension has the examples of one part, and of the step it has `step_size`. How many parts that
 * makes is the execution's to say (layouts/placement/execution.h) and follows here from the sizes.
 * Forward and backward run once for each part, clipping and updates once a step, so the graph's
 * operations, and the instructions they are lowered to, stand in two runs:
 *
 *     operation    0 1 2 … n-1                n …
 *                  forward, backward          clip, update
 *     times        m = step_size / size       1
 *
 * What of a micro-batch is wanted after the last (gradients, the loss) goes through an operation that
 * accumulates (layouts/execution/accumulation.h). Micro-batch k of m holds examples [k B/m, (k+1) B/m) of the
 * step's B. A batch may be divided into one, whose step_size is its size: a pipeline's step of one. */
#ifndef MTF_MICROBATCHES_H
#define MTF_MICROBATCHES_H

#include "layouts/graph/graph.h"

#define MTF_MAX_MICROBATCHES (1 << 20)

/* The dimension that micro-batches divide; -1: none. */
int mtf_graph_batch(const MtfGraph *graph);

/* The elements of a dimension in the whole step. */
int64_t mtf_graph_step_size(const MtfGraph *graph, int dim);

/* The m above; 1 where the batch is not divided. */
int mtf_graph_microbatches(const MtfGraph *graph);

/* Divides the batch of a whole step's graph by `microbatches`, which must divide it evenly. */
bool mtf_graph_divide_batch(MtfGraph *graph, int batch, int microbatches, GError **error);

/* Whether what is of a phase runs once a micro-batch. */
bool mtf_phase_repeats(const MtfGraph *graph, MtfPhase phase);

/* The n above: operations [0, n) run once a micro-batch. 0 without micro-batches. */
int mtf_graph_repeated(const MtfGraph *graph);

/* How often a step runs an operation, and all of a phase. */
int mtf_operation_times(const MtfGraph *graph, int operation);
/* How often its input k is brought to it, and its results are brought to where they are kept: a loop
 * reads what was there before it once, and is over when its stacks are; sums over micro-batches are
 * complete after the last. */
int mtf_input_times(const MtfGraph *graph, int operation, int k);
int mtf_output_times(const MtfGraph *graph, int operation);
int mtf_phase_times(const MtfGraph *graph, MtfPhase phase);

/* Whether the operation's result adds up over micro-batches. Its storage lives from the
 * first to the last of them; only then is the sum brought to where the layout keeps it. */
bool mtf_operation_accumulates(const MtfGraph *graph, int operation);

/* The dimension that counts examples: mtf_graph_batch's, or the first of the first input that
 * all inputs have (but sums that another pipeline stage sends once a step); -1 where there is none. */
int mtf_graph_find_batch(const MtfGraph *graph);

/* Fails, naming what is wrong, where a graph with micro-batches cannot be run: an operation that
 * runs once stands before one that is repeated, a repeated one reads a sum that is not complete, or
 * a variable has the batch dimension. */
bool mtf_graph_check_microbatches(const MtfGraph *graph, GError **error);

/* Whether the graph takes means over the examples of one micro-batch each ("per_microbatch"): then its
 * results depend on the number of micro-batches. */
bool mtf_graph_has_batch_statistics(const MtfGraph *graph);

/* How a step is done, for people: "in one piece", "in 4 micro-batches of 16, 96 operations recomputed",
 * "batch statistics of each", "attention in rings of 4 parts". Free with g_free. */
char *mtf_graph_step_format(const MtfGraph *graph);

#endif
