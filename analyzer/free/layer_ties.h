// SPDX-License-Identifier: GPL-3.0-or-later
/* Repeated layers laid out alike: what of a problem of free layouts stands in the same place of
 * different layers of a block, and can be laid out in the same ways.
 *
 *     layer/0/wq ◄─ layer/1/wq ◄─ layer/2/wq …     node: its leader is that of the first layer
 *     grad/layer/0/wq ◄─ grad/layer/1/wq …
 *
 * Where a layer's node has other ways than that of the first, as where something else reads a result of
 * the last layer, it follows the first one that has the same. */
#ifndef MTF_LAYER_TIES_H
#define MTF_LAYER_TIES_H

#include "analyzer/free/free_problem.h"

typedef struct {
    int nodes;
    int *leader; /* for each node: the one that it follows, or itself */
    int *layer;  /* …: its layer, numbered over all blocks; -1 outside of layers */
    int layers;
} MtfLayerTies;

/* NULL where no block repeats. */
MtfLayerTies *mtf_layer_ties_new(const MtfFreeProblem *problem);
void mtf_layer_ties_free(MtfLayerTies *ties);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayerTies, mtf_layer_ties_free)

/* In how many ways a choice lays out the layers of the same block, beyond one for each block: 0 says
 * that all are alike. What only one layer has does not count. */
int mtf_layer_ties_differences(const MtfLayerTies *ties, const int *choice);

#endif
