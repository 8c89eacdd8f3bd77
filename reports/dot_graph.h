// SPDX-License-Identifier: GPL-3.0-or-later
/* Draws a partition view as a Graphviz graph, through libcgraph. The text is the same, byte for
 * byte, for the same plan. */
#ifndef MTF_DOT_GRAPH_H
#define MTF_DOT_GRAPH_H

#include "reports/partition_view.h"

/* The graph in the DOT language; free with g_free. NULL when libcgraph fails. */
char *mtf_dot_graph(const MtfPlan *plan, const MtfPartitionView *view, GError **error);

#endif
