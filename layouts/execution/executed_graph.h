// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph that is laid out and run: a training graph with what its execution adds, which recomputes some
 * results and lets others wait with the host. Files hold the training graph and the execution; nothing in
 * the first depends on the second, and each graph follows from the other:
 *
 *     training graph ── execution.kept: recompute, then offload ──► executed graph
 *                    ◄── without clones and copies ──────────────── */
#ifndef MTF_EXECUTED_GRAPH_H
#define MTF_EXECUTED_GRAPH_H

#include "layouts/graph/graph.h"
#include "layouts/placement/execution.h"

/* Makes a training graph the executed one: of what kept[0] says, or with n > 1 of what kept[s - 1] says of stage s
 * of the n that it is cut into. Fails with a bad-input error as mtf_graph_recompute and mtf_graph_offload do. */
bool mtf_graph_execute(MtfGraph *graph, const MtfKept *kept, int n, GError **error);

/* The training graph that an executed one was made of by `kept`; a new graph. */
MtfGraph *mtf_graph_training_of(const MtfGraph *executed, const MtfKept *kept, int n);

/* The operation that an operation does over again: what a clone was made of, what takes to the host that which it
 * fetches; -1: none. Both have the same dimensions. */
int mtf_graph_original_operation(const MtfGraph *executed, int operation);

#endif
