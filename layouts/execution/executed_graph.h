// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph that is laid out and run: a training graph as its execution has it, with batch and attention in
 * parts, some results recomputed and others waiting with the host. Files hold the training graph and the
 * execution; nothing in the first depends on the second:
 *
 *     training graph ── division: micro-batches, ring, key parts ── kept: recompute, offload ──► executed graph
 *
 * Of a batch in one piece, each variable is updated as soon as may be (early_updates.h); of one in parts,
 * their results are summed, and updates wait for the last (accumulation.h). */
#ifndef MTF_EXECUTED_GRAPH_H
#define MTF_EXECUTED_GRAPH_H

#include "layouts/graph/graph.h"
#include "layouts/placement/execution.h"

/* Makes a training graph, in canonical order, the executed one: of what kept[0] says, or with n > 1 of what
 * kept[s - 1] says of stage s of the n that it is cut into. Fails with a bad-input error as the functions
 * above do (accumulation.h, key_ring.h, key_parts.h, recompute.h, offload.h). */
bool mtf_graph_execute(MtfGraph *graph, const MtfDivision *division, const MtfKept *kept, int n,
                       GError **error);

/* The operation that an operation does over again: what a clone was made of, what takes to the host that
 * which it fetches; -1: none. Both have the same dimensions. */
int mtf_graph_original_operation(const MtfGraph *executed, int operation);

#endif
