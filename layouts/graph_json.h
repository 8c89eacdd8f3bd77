// SPDX-License-Identifier: GPL-3.0-or-later
/* graph.json (format in layouts/README.md): strict reading and writing of graphs. `repeat` blocks
 * are unrolled while reading: block `layer` of count 24 gives "layer/7/wq", and the carried value
 * after the block is "layer/x". Written graphs are flat. */
#ifndef MTF_GRAPH_JSON_H
#define MTF_GRAPH_JSON_H

#include "layouts/graph.h"
#include "layouts/json_reader.h"

#include <cjson/cJSON.h>

/* `sizes` overrides dimension sizes ("batch" -> GINT_TO_POINTER, or NULL); an unknown name in it is
 * an error. */
typedef struct {
    char **names; /* NULL-terminated, or NULL */
    int64_t *sizes;
} MtfSizeOverrides;

MtfGraph *mtf_graph_load(const char *path, const MtfSizeOverrides *overrides, GError **error);
MtfGraph *mtf_graph_from_json(const MtfJson *root, const MtfSizeOverrides *overrides,
                              GError **error);
cJSON *mtf_graph_to_json(const MtfGraph *graph);
bool mtf_graph_save(const MtfGraph *graph, const char *path, GError **error);

#endif
