// SPDX-License-Identifier: GPL-3.0-or-later
/* A view of a partition as a graph in the DOT language, through libcgraph, with HTML-like labels.
 * Phases and parts are clusters; what no arrow joins is set in columns, and drawn once where it looks alike
 * (view_groups.h). The same view gives the same bytes, whatever its names hold. */
#ifndef MTF_DOT_GRAPH_H
#define MTF_DOT_GRAPH_H

#include "reports/drawing/partition_view.h"

/* How a view is written. */
typedef struct {
    const char *name;   /* of the graph */
    const int *anchors; /* mtf_tensor_anchors: boxes link to "PAGE#t12"; NULL = no links */
    const char *page;   /* "index.html", or "" within the page */
    bool titled;        /* the graph's name, mesh and legend stand above, clusters have titles */
} MtfDotStyle;

/* The text; free with g_free. */
char *mtf_dot_graph(const MtfPartitionView *view, const MtfDotStyle *style, GError **error);

#endif
