// SPDX-License-Identifier: GPL-3.0-or-later
/* From a graph of axes (axis_graph.h) to a graph of named dimensions: every class of axes becomes a
 * dimension, and where an input's axis and the index it goes by have different names, a `rename`
 * stands between them. */
#ifndef MTF_AXIS_BUILD_H
#define MTF_AXIS_BUILD_H

#include "analyzer/onnx/axis_graph.h"

/* The graph; `tensors` (or NULL) receives the tensor of the built graph for each tensor of this one
 * that is used (-1: of none), to be freed with g_free. What no operation reads and `kept` does not
 * name (numbers of tensors, -1 at the end) is left out. NULL with a bad-input error. */
MtfGraph *mtf_axis_graph_build(MtfAxisGraph *graph, const char *name, const int *kept,
                               int **tensors, GError **error);

#endif
