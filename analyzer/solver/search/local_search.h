// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns values of a core into better, legal ones. From any starting values:
 *
 *     repair    while a memory row is overfull: the move that relieves it at the least cost for
 *               what it relieves; a node that moved waits before it may move again
 *     polish    single nodes, then pairs across an edge, to cheaper values that fit; then costly
 *               nodes are pushed to a cheaper value that does not fit, and the rest is repaired
 *
 * Only rows that were overfull once are watched during moves; the others are looked at when a
 * result is judged. Deterministic for a seed. */
#ifndef MTF_LOCAL_SEARCH_H
#define MTF_LOCAL_SEARCH_H

#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfLocalSearch MtfLocalSearch;

/* The core must stay unchanged while the search lives; the search only reads it. */
MtfLocalSearch *mtf_local_search_new(const MtfCore *core, guint64 seed);
void mtf_local_search_free(MtfLocalSearch *search);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLocalSearch, mtf_local_search_free)

/* Repairs and polishes `values` (indexed as in the core) in place. True when they are legal. */
bool mtf_local_search_improve(MtfLocalSearch *search, int *values);

#endif
