// SPDX-License-Identifier: GPL-3.0-or-later
/* Layers of a graph whose file knows none, as an ONNX file: the same operations on the same shapes again and
 * again, each time on variables of its own and on what the time before made:
 *
 *     embed │ norm  qkv  attend  out  add  norm  up  relu  down  add │ norm  qkv  …  add │ … │ norm  head
 *           └──────────────────── layer 0 ────────────────────────────┴──── layer 1 ──────┘ …
 *
 * So they are planned alike, drawn once and searched as fast as the layers of a family. */
#ifndef MTF_FIND_LAYERS_H
#define MTF_FIND_LAYERS_H

#include "layouts/graph/graph.h"

/* Marks repeated blocks in a graph that has none, and gives what is theirs and theirs alone names
 * "BLOCK/ITERATION/PLACE", made of what the names of the first two layers have in common; outputs and the loss keep
 * theirs. Loops belong to no layer. */
void mtf_graph_find_layers(MtfGraph *graph);

#endif
