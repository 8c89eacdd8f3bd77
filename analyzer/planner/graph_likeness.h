// SPDX-License-Identifier: GPL-3.0-or-later
/* Whether two graphs are equal up to names: then a layout of one is a layout of the other, tensor for
 * tensor, and costs the same. Stages of a pipeline that hold equal layers are such graphs. */
#ifndef MTF_GRAPH_LIKENESS_H
#define MTF_GRAPH_LIKENESS_H

#include "layouts/graph/graph.h"

/* Compares two graphs over the same table of dimensions, operation by operation in their order. How
 * many micro-batches are in flight is no matter. */
bool mtf_graphs_are_alike(const MtfGraph *a, const MtfGraph *b);

#endif
