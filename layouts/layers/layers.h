// SPDX-License-Identifier: GPL-3.0-or-later
/* Layers, the iterations of a graph's repeated blocks, for people: whose layer a thing is stands in its
 * field `layer` (graph.h) and is never read off its name. Where the field says so, the name usually holds
 * "BLOCK/ITERATION" as one of its parts, which these functions replace or leave out:
 *
 *     name "grad/layer/7/wq" of layer 7 of block "layer"
 *     star       "grad/layer/'*'/wq"  one name for what every layer has
 *     in layer 0 "grad/layer/0/wq"    its twin
 *     place      "wq", behind "grad/"
 *
 * A name that does not hold it, whoever gave it, stays as it is. */
#ifndef MTF_LAYERS_H
#define MTF_LAYERS_H

#include "layouts/graph/graph.h"

/* The name that stands for the same thing in all layers of the block. Free with g_free. */
char *mtf_layer_star(const MtfGraph *graph, const char *name, MtfLayer layer);

/* The name of the same thing in another iteration. Free with g_free. */
char *mtf_layer_twin(const MtfGraph *graph, const char *name, MtfLayer layer, int iteration);

/* What follows the layer in the name, a part of it, with the length of what stands before it in
 * `*before`; outside of layers the whole name. */
const char *mtf_layer_place(const MtfGraph *graph, const char *name, MtfLayer layer, gsize *before);

/* A name from where that of what it was made for begins in it: "h/1" of "back/h/1" for "h"; all of it
 * where it does not hold that, or `of` is NULL. */
const char *mtf_name_from(const char *name, const char *of);

#endif
