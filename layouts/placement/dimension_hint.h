// SPDX-License-Identifier: GPL-3.0-or-later
/* "Did you mean …?" of a graph's dimensions, for names that users write in rules, pins and options. */
#ifndef MTF_DIMENSION_HINT_H
#define MTF_DIMENSION_HINT_H

#include "layouts/graph/graph.h"

/* ` (did you mean "NAME"?)` of the dimension that is nearest to a name that none has, or the empty text; free with
 * g_free. */
char *mtf_graph_dimension_hint(const MtfGraph *graph, const char *name);

#endif
