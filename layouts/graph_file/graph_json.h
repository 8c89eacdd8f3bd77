// SPDX-License-Identifier: GPL-3.0-or-later
/* graph.json (format in layouts/FORMATS.md): strict reading and writing of graphs. `repeat` blocks
 * are unrolled while reading: block `layer` of count 24 gives "layer/7/wq", and the carried value
 * after the block is "layer/x". Written graphs are flat. */
#ifndef MTF_GRAPH_JSON_H
#define MTF_GRAPH_JSON_H

#include "layouts/base/json_reader.h"
#include "layouts/graph/graph.h"

#include <cjson/cJSON.h>

/* Sizes that replace those of the file (--dim batch=512); a name the graph lacks is an error. What a
 * dimension is renamed to takes its size, too, where it has none of its own here. */
typedef struct {
    char **names;   /* NULL-terminated, or NULL */
    int64_t *sizes; /* one a name */
} MtfSizeOverrides;

/* Reads a graph; `overrides` may be NULL. A composite graph and a training graph are both fine. */
MtfGraph *mtf_graph_load(const char *path, const MtfSizeOverrides *overrides, GError **error);
MtfGraph *mtf_graph_from_json(const MtfJson *root, const MtfSizeOverrides *overrides,
                              GError **error);

/* The graph as a JSON tree, freed by cJSON_Delete. Reading it gives the same graph with its tensors
 * in canonical order (mtf_graph_canonicalize), and writing that gives the same bytes. */
cJSON *mtf_graph_to_json(const MtfGraph *graph);

/* Writes graph.json whole or not at all. */
bool mtf_graph_save(const MtfGraph *graph, const char *path, GError **error);

#endif
