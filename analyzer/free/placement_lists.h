// SPDX-License-Identifier: GPL-3.0-or-later
/* Lists of placements, each once in memory: tensors that may be kept alike, as in layers that repeat, share one, by whose
 * address edges are known to cost the same. */
#ifndef MTF_PLACEMENT_LISTS_H
#define MTF_PLACEMENT_LISTS_H

#include <glib.h>
#include <stdbool.h>

typedef struct MtfPlacementLists MtfPlacementLists;

/* There are none yet. The caller frees it; who has a reference to a list keeps that. */
MtfPlacementLists *mtf_placement_lists_new(void);
void mtf_placement_lists_free(MtfPlacementLists *all);

/* All placements (MtfPlacement) of some lists (GArray), and the replicated one, each once; without pending reductions
 * unless they may be `partial`. The same lists, and others that come to the same, give the same list, of which this
 * returns a reference. The lists must outlive `all`. */
GArray *mtf_placement_lists_merge(MtfPlacementLists *all, const GPtrArray *lists, bool partial);

#endif
