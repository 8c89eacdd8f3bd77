// SPDX-License-Identifier: GPL-3.0-or-later
/* Loops: part of a graph, the *body*, that runs many times and is planned once. In the graph it stands
 * flat: operations name the loop they belong to, and four rows join an iteration to the rest.
 *
 *     state = loop_begin(init)                 before the loop
 *       x = loop_slice(xs)                     element i of xs along the loop's dimension
 *       …  body: reads x, state, and whatever was there before
 *       ys = loop_stack(y)                     element i of ys
 *       last = loop_next(state, next)          the state of the next iteration
 *     … reads ys and last                      after the loop
 *
 * An iteration is numbered by its element: i = 0, 1, … or in a loop that runs in reverse the other way round.
 * Where a loop_next says `condition`, the loop is over once the bool that it hands on is false: what states
 * hand on is `where(condition, next, state)`, so that iterations behind it change nothing and need not run.
 * Prices and memory count them all. Within the graph the operations of a loop stand one behind another, those
 * that hand states on last; so do the instructions of a program. Loops hold no other loops. */
#ifndef MTF_LOOPS_H
#define MTF_LOOPS_H

#include "layouts/graph/operation_table.h"

#define MTF_MAX_ITERATIONS (1 << 20)

/* Loop number `loop`, from 1. */
const MtfLoop *mtf_graph_loop(const MtfGraph *graph, int loop);

/* How often its body runs; 1 for 0, which is no loop. */
int64_t mtf_loop_count(const MtfGraph *graph, int loop);

/* The element of the sliced dimension that iteration number `iteration` works on. */
int64_t mtf_loop_element(const MtfGraph *graph, int loop, int64_t iteration);

/* The state whose value ends the loop once it is false, or -1 where nothing does. */
int mtf_loop_condition(const MtfGraph *graph, int loop);

/* What the operation is for a loop. */
MtfLoopPart mtf_operation_loop_part(const MtfGraph *graph, int operation);

/* For each loop, from 1, its first operation and the one behind its last. Clear it with
 * mtf_loop_spans_clear. */
typedef struct {
    int *begins, *ends;
} MtfLoopSpans;
MtfLoopSpans mtf_loop_spans(const MtfGraph *graph);
void mtf_loop_spans_clear(MtfLoopSpans *spans);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MtfLoopSpans, mtf_loop_spans_clear)

/* Whether an operation of a loop finds `tensor`, which it reads, changed in every iteration. */
bool mtf_operation_reads_anew(const MtfGraph *graph, const MtfOperation *operation, int tensor);

/* For each tensor the variable or state whose next value it is, or -1; free with g_free. */
int *mtf_graph_next_values(const MtfGraph *graph);

/* Operations [*first, *end) are those at which `tensor` would be needed if every loop ran once: widens
 * them to what iterations need. `consumers` and `spans` are the graph's. */
void mtf_loop_prolong(const MtfGraph *graph, const MtfConsumers *consumers,
                      const MtfLoopSpans *spans, int tensor, int *first, int *end);

/* The loop that a tensor changes in from iteration to iteration: it is the result of its body, or a
 * state of it. Results that are complete when the loop is over (loop_stack, loop_next) belong to
 * none; 0: none. `states` are mtf_graph_states. */
int mtf_tensor_loop(const MtfGraph *graph, const int *states, int tensor);

/* For each tensor the loop whose state it is, or 0; free with g_free. */
int *mtf_graph_states(const MtfGraph *graph);

/* Brings operations into an order in which they can run and those of a loop stand together, changing
 * as little as that takes; leaves those out that are `dead` (NULL: none). Nothing is done where there is
 * no loop. Fails when a loop needs its own results. */
bool mtf_graph_gather_loops(MtfGraph *graph, const bool *dead, GError **error);

/* For i = 0 … the number of operations, whether the place before operation i lies inside of a loop or
 * between where its states begin and it: no pipeline stage may end there. Free with g_free. */
bool *mtf_loop_places(const MtfGraph *graph);

/* Fails with a sentence where an operation reads what it cannot. */
bool mtf_graph_check_loops(const MtfGraph *graph, GError **error);

#endif
