// SPDX-License-Identifier: GPL-3.0-or-later
/* A search over the free layouts of a large graph, and on another processor, where one is free, what will be
 * asked for when it is over:
 *
 *     draft  │ measure layouts made by hand …
 *     proof  │ … and the rest of them, then settle the layout that the proof is about to keep
 *
 * The search does without: it begins with the cheapest layout known, which is measured before. So it finds the
 * same, and the rest is measured the same later. */
#ifndef MTF_ACCOMPANIED_SEARCH_H
#define MTF_ACCOMPANIED_SEARCH_H

#include "analyzer/layout_search/mesh_attempt.h"

/* As mtf_free_search of the attempt's problem. With `settles` the attempt's free layout, or where it has none the one
 * that the search begins with, may be settled then, and stays so if it is kept. */
bool mtf_search_accompanied(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                            const MtfFreeSearchOptions *options, bool settles,
                            MtfFreeAnswer *answer, GError **error);

#endif
