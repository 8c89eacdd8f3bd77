// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for a step's plan (variant_search.h) of graphs of any depth. Of a very large graph whose layers
 * repeat, variants of the step and meshes are compared on a few of its layers, under a memory limit in
 * proportion; the whole graph is searched for a plan of the one variant on the one mesh that were best there:
 *
 *     1000 layers ──► 24 of them ──► all variants, all meshes ──► the best of each
 *          │                                                          │
 *          └──────────────────► layouts, proof, plan ◄────────────────┘
 *
 * Where --seconds leave no time for that, all layers get the layout that the few were found (rewriting/deep_layout.h),
 * and the bound is that of the work alone. Rules that do not fit there are not looked for again. Where no such plan fits all are compared on the whole
 * graph. Cost, bound and memory of the plan are those of all layers in any case. */
#ifndef MTF_DEEP_SEARCH_H
#define MTF_DEEP_SEARCH_H

#include "analyzer/planner/variant_search.h"

/* As mtf_variant_search; a step of more than `large` operations is very large. */
bool mtf_deep_search(const MtfVariantSearchOptions *options, guint large, MtfVariantAnswer *answer,
                     GError **error);

#endif
