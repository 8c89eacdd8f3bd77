// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs for tests, from text in which single quotes stand for double ones. */
#ifndef MTF_TESTS_PARSE_GRAPH_H
#define MTF_TESTS_PARSE_GRAPH_H

#include "layouts/graph/graph.h"
#include "layouts/graph_file/graph_json.h"

/* Reads a graph file's text; the file is called "g.json" in messages. */
MtfGraph *mtf_test_graph_parse(const char *text, const MtfSizeOverrides *overrides, GError **error);

/* The same for text that must be good: prints the message and aborts when it is not. */
MtfGraph *mtf_test_graph(const char *text);

/* `count` layers of two products [b, d] [d, e] [e, d] with a gelu between them and a residual connection, the mean
 * square of what they come to as the loss, and SGD. */
MtfGraph *mtf_test_layers(int count, int b, int d, int e);

/* Whether the backward pass reads a tensor of that name. */
bool mtf_test_is_read_back(const MtfGraph *graph, const char *tensor);

#endif
