// SPDX-License-Identifier: GPL-3.0-or-later
/* Recomputation: what the backward pass reads of the forward pass need not stay in memory until
 * then. For chosen results it reads clones, "recompute/NAME", which are recomputed from what is
 * kept, right before their first use:
 *
 *     forward     x ──► a ──► b ──► y ──► …                  x, y kept; a, b dropped after use
 *     backward    … ──► recompute/a ──► recompute/b ──► gradients of this layer ──► …
 *
 *     cheap    results of element by element work, casts and attention scores are dropped, where
 *              what they follow from is there anyway or smaller
 *     layers   of every repeated block only what later blocks read is kept; all inside it is
 *              recomputed, one block at a time
 *     layers:K of the first K of them, which wait longest for the backward pass
 *
 * Each stage of a pipeline may have its own: the first stages, which hold the most micro-batches, need it
 * most.
 *
 * Clones run the same rows on the same values (dropout on the stream of its original), so under the
 * same layout gradients are equal to the bit. */
#ifndef MTF_RECOMPUTE_H
#define MTF_RECOMPUTE_H

#include "layouts/graph/graph.h"
#include "layouts/placement/execution.h"

/* Changes a training graph, which is canonical afterwards: as kept[0] says, or with n > 1 stage s of the n
 * that it is cut into as kept[s - 1] does. Layers are counted in each stage. Fails with a bad-input error
 * where layers are to be recomputed and nothing is repeated or fewer layers are, where the graph has clones
 * already, and where a name is taken. */
bool mtf_graph_recompute(MtfGraph *graph, const MtfKept *kept, int n, GError **error);

/* The number of each result's layer, in the order in which the forward pass comes to them; -1 outside of
 * layers and for what the backward pass makes. `layer` has a place a tensor. Returns how many layers there
 * are. */
int mtf_graph_number_layers(const MtfGraph *graph, int *layer);

/* How many layers "layers" recomputes. */
int mtf_graph_recomputable_layers(const MtfGraph *graph);

#endif
