// SPDX-License-Identifier: GPL-3.0-or-later
/* A forward graph with fewer of its repeated layers, to see on it in little time what takes long on all of
 * them: which mesh suits, which variant of the step.
 *
 *     layers   x ─► 0 ─► 1 ─► 2 ─► 3 … 996 ─► 997 ─► 998 ─► 999 ─► loss      1000
 *              x ─► 0 ─► 1 ─► 2 ──────────────► 997 ─► 998 ─► 999 ─► loss       6
 *
 * The first layer behind the cut reads of the last before it what it read of its own neighbour. */
#ifndef MTF_SHALLOW_GRAPH_H
#define MTF_SHALLOW_GRAPH_H

#include "layouts/graph/graph.h"

/* A copy in which every block of more than `layers` layers (>= 2) is cut to `layers`, which keep their
 * numbers. NULL where no block has more, where the graph has no loss or assigns to variables, and where
 * something else than the next layer reads one that goes. The caller frees it. */
MtfGraph *mtf_graph_shallow(const MtfGraph *graph, int layers);

/* The layer, of those left, that stands for a layer of the whole graph: the first and the last one for themselves, each
 * between them for as many as the others. */
int mtf_graph_shallow_layer(const MtfGraph *graph, int layers, MtfLayer layer);

#endif
