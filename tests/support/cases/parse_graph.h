// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs and meshes for tests, from text; in that of graphs single quotes stand for double ones. */
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

/* The model of a config.json's text, for `batch` texts of `length` tokens, without an optimizer. */
MtfGraph *mtf_test_model(const char *config, int batch, int length);

/* A list of meshes (MtfMesh), "rows:4 rows:2;cols:2". */
GArray *mtf_test_meshes(const char *text);

/* Whether the backward pass reads a tensor of that name. */
bool mtf_test_is_read_back(const MtfGraph *graph, const char *tensor);

#endif
