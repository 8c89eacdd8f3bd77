// SPDX-License-Identifier: GPL-3.0-or-later
/* One name for a thing that every layer has: "grad/layer/7/wq" is listed once, with a count, under
 * the name that has an asterisk in place of the 7. */
#ifndef MTF_LAYER_STAR_H
#define MTF_LAYER_STAR_H

#include "layouts/graph/graph.h"

/* The name with the layer's number starred, wherever "REPEAT/NUMBER" stands among its parts. Free
 * with g_free. */
char *mtf_layer_star(const MtfGraph *graph, const char *name);

#endif
