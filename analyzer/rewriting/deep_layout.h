// SPDX-License-Identifier: GPL-3.0-or-later
/* What was found of a graph that was cut to few of its layers (shallow_graph.h), for all layers, in the same proportions:
 * where memory has two ways of laying out a layer in turns, it takes as large a share of each.
 *
 *     layers   0  1     2     997     998     999         6 that were laid out
 *              0  1 … 1 2 … 2 997 … 997 998 … 998 999  1000 */
#ifndef MTF_DEEP_LAYOUT_H
#define MTF_DEEP_LAYOUT_H

#include "layouts/placement/layout.h"

typedef struct MtfDeepening MtfDeepening;

/* `deep` and `shallow` are steps made alike of a graph and of what mtf_graph_shallow left of it with `layers` layers;
 * both must outlive it. NULL where something of `deep` stands for nothing of `shallow`, as where other layers
 * are recomputed. */
MtfDeepening *mtf_deepening_new(const MtfGraph *deep, const MtfGraph *shallow, int layers);
void mtf_deepening_free(MtfDeepening *deepening);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDeepening, mtf_deepening_free)

/* A layout of the few as one of all, in the order of the operations; NULL where it is none. */
MtfLayout *mtf_deepening_layout(const MtfDeepening *deepening, const MtfLayout *layout);

/* Of the operations that one of the few stands for, in their order, the one in the middle. */
int mtf_deepening_operation(const MtfDeepening *deepening, int operation);

#endif
