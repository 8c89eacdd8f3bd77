// SPDX-License-Identifier: GPL-3.0-or-later
/* What of a graph a training step needs: everything that the loss follows from, and the values that
 * its variables take after a step. The rest is dead: named by `check`, and not executed. */
#ifndef MTF_LIVE_GRAPH_H
#define MTF_LIVE_GRAPH_H

#include "layouts/graph/graph.h"

/* The names of the dead operations and of the variables that no live operation reads (char *, two
 * arrays to be freed with g_ptr_array_unref), in the order of the graph. Nothing is dead in a graph
 * without a loss and without outputs, whose results are all wanted. */
typedef struct {
    GPtrArray *operations, *variables;
} MtfDeadParts;

/* The operations and variables that nothing asked for needs; the caller clears it. */
MtfDeadParts mtf_dead_parts(const MtfGraph *graph);
void mtf_dead_parts_clear(MtfDeadParts *dead);

/* Drops the dead parts, but for variables that published files keep: those are read and written with
 * the others. */
void mtf_graph_drop_dead(MtfGraph *graph);

/* Drops likewise what neither a loss nor what variables take after a step needs, whether there is a loss or
 * not. */
void mtf_graph_keep_needed(MtfGraph *graph);

#endif
