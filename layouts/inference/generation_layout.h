// SPDX-License-Identifier: GPL-3.0-or-later
/* The layout of a graph that generates, from that of the graph it was made from: what both have lies
 * alike, so that variables of one are copied to the other rank by rank; what is new follows its
 * operands, and caches are never split along the text, which attention wants whole. */
#ifndef MTF_GENERATION_LAYOUT_H
#define MTF_GENERATION_LAYOUT_H

#include "layouts/placement/layout.h"

/* `graph` was made from `from` by mtf_generation_graph and has no composites; `layout` is one of
 * `from`. The result is legal. Free with mtf_layout_free. */
MtfLayout *mtf_generation_layout(const MtfGraph *graph, const MtfGraph *from,
                                 const MtfLayout *layout);

#endif
