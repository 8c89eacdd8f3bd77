// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph that is run for what it makes of its inputs, from the one that is trained or written:
 *
 *     written   x ─► … ─► logits ─► cross entropy ─► loss          x ─► … ─► y
 *                         labels ──────┘
 *     forward   x ─► … ─► logits ─► logits/result                  x ─► … ─► y ─► y/result
 *
 * Results are kept until they are asked for, in variables NAME/result (MTF_MEMORY_OUTPUT). They are the graph's
 * "outputs". Where it names none, they are of a graph with a loss what is compared with labels, next tokens and
 * targets, which then nobody reads; where it has none of these, scores that it compares with another input, or
 * else the loss itself. Of one without they are the results of the operations whose results nothing reads; of a
 * loop, what its last iteration leaves.
 *
 * Dropout goes, and what differs between training steps and others is as in others; so do the optimizer and
 * what a step would assign to variables. */
#ifndef MTF_FORWARD_GRAPH_H
#define MTF_FORWARD_GRAPH_H

#include "layouts/graph/graph.h"

/* Fails (bad input) where the graph is one of training already or makes nothing of what it reads, or a name is
 * taken. */
MtfGraph *mtf_forward_graph(const MtfGraph *written, GError **error);

#endif
