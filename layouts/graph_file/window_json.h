// SPDX-License-Identifier: GPL-3.0-or-later
/* The attribute "windows" of an operation in a graph file. */
#ifndef MTF_WINDOW_JSON_H
#define MTF_WINDOW_JSON_H

#include "layouts/base/json_reader.h"
#include "layouts/graph/graph.h"

/* Reads the list "windows": objects with `from`, `to`, `kernel` (a dimension of the filter) or
 * `size`, `stride` (1), `dilation` (1) and either `before` (0) with `after` (what the sizes need),
 * or `padding`: "valid" (none), "same" (what makes ceil(size / stride) windows, the odd one behind)
 * or "same_lower" (before). Sizes of windows are counts of elements below 2^31. `kind` says which side
 * is the larger. */
bool mtf_windows_read(const MtfGraph *graph, int kind, const MtfJson *where,
                      MtfAttributes *attributes, GError **error);

/* The way back, with numbers for all padding. */
cJSON *mtf_windows_to_json(const MtfGraph *graph, const MtfAttributes *attributes);

#endif
