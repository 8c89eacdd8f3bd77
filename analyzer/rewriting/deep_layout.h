// SPDX-License-Identifier: GPL-3.0-or-later
/* A layout of a graph that was cut to few of its layers (shallow_graph.h), as one of all layers, in the same proportions:
 * where memory has two ways of laying out a layer in turns, it takes as large a share of each.
 *
 *     layers   0  1     2     997     998     999         6 that were laid out
 *              0  1 … 1 2 … 2 997 … 997 998 … 998 999  1000 */
#ifndef MTF_DEEP_LAYOUT_H
#define MTF_DEEP_LAYOUT_H

#include "layouts/placement/layout.h"

/* `deep` and `shallow` are steps made alike of a graph and of what mtf_graph_shallow left of it with `layers` layers;
 * `layout` is of the second. In the order of the operations; NULL where something of `deep` stands for nothing of
 * `shallow`, as where other layers are recomputed. */
MtfLayout *mtf_layout_deepen(const MtfGraph *deep, const MtfGraph *shallow, int layers,
                             const MtfLayout *layout);

#endif
