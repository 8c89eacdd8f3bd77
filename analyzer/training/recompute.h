// SPDX-License-Identifier: GPL-3.0-or-later
/* Recomputation: what the backward pass reads of the forward pass need not stay in memory until
 * then. For chosen results it reads clones, "recompute/NAME", which are computed again from what is
 * kept, right before their first use:
 *
 *     forward     x ──► a ──► b ──► y ──► …                  x, y kept; a, b dropped after use
 *     backward    … ──► recompute/a ──► recompute/b ──► gradients of this layer ──► …
 *
 *     cheap    results of element by element work, casts and attention scores are dropped, where
 *              what they follow from is there anyway or smaller
 *     layers   of every repeated block only what later blocks read is kept; all inside it is
 *              computed again, one block at a time
 *
 * Clones run the same rows on the same values (dropout on the stream of its original), so under the
 * same layout gradients are equal to the bit. */
#ifndef MTF_RECOMPUTE_H
#define MTF_RECOMPUTE_H

#include "layouts/graph/graph.h"

typedef enum {
    MTF_RECOMPUTE_NONE,
    MTF_RECOMPUTE_CHEAP,
    MTF_RECOMPUTE_LAYERS,
    MTF_RECOMPUTES,
} MtfRecompute;

/* "none", "cheap", "layers"; and back. Fails with a bad-input error that lists them; NULL is
 * "none". */
const char *mtf_recompute_name(MtfRecompute recompute);
bool mtf_recompute_parse(const char *text, MtfRecompute *recompute, GError **error);

/* Changes a training graph, which is canonical afterwards. Fails with a bad-input error where
 * blocks are to be recomputed and nothing is repeated, or a name is taken. */
bool mtf_graph_recompute(MtfGraph *graph, MtfRecompute recompute, GError **error);

#endif
