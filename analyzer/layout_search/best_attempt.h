// SPDX-License-Identifier: GPL-3.0-or-later
/* What is done with the best attempt of a plan's search: it is proven, laid out alike where layers repeat,
 * and searched under other memory limits. All that is found on the way is among its incumbents. */
#ifndef MTF_BEST_ATTEMPT_H
#define MTF_BEST_ATTEMPT_H

#include "analyzer/layout_search/mesh_attempt.h"
#include "analyzer/layout_search/plan_answer.h"

/* By how much a plan that the software can run may have a longer step than one that it cannot for no better one to be
 * looked for. */
#define MTF_NEAR_STEP 1.02

/* Of a large graph's variants that are searched at once the drafts race: whether another one's is faster, so
 * that no more need be done with this one. Waits until theirs are known. Of smaller graphs (but those whose searches
 * are over soon) whether what was found trails, as far as is known by now. */
bool mtf_best_loses(const MtfPlanSearch *search, const MtfMeshAttempt *best);

/* Goes on where the search of the best answer ended, where that is worth it. */
bool mtf_best_prove(const MtfPlanSearch *search, MtfMeshAttempt *best, GError **error);

/* Looks for the best layout whose repeated layers are alike, unless it is known; before the proof, so that it
 * is known when time is up. */
bool mtf_best_find_alike(const MtfPlanSearch *search, MtfMeshAttempt *best, GError **error);

/* Makes the plan the fastest layout whose layers are alike, unless one in which they differ is clearly
 * faster. */
void mtf_best_choose_alike(const MtfPlanSearch *search, const MtfMeshAttempt *best,
                           MtfPlanAnswer *answer);

/* Where the machine's software has no memory for the plan: makes it the fastest known that it has memory for, if its
 * step is little longer. Of those in which layers are alike or differ, as mtf_best_choose_alike. */
void mtf_best_choose_runnable(const MtfPlanSearch *search, MtfMeshAttempt *best,
                              MtfPlanAnswer *answer);

/* The frontier, where it is asked for. */
bool mtf_best_frontier(const MtfPlanSearch *search, MtfMeshAttempt *best, GArray **frontier,
                       GError **error);

/* The fastest that is known; of large graphs among the cheapest of each name. */
const MtfIncumbent *mtf_best_fastest(const MtfPlanSearch *search, const MtfMeshAttempt *best);

/* What searches under other limits found replaces the answer where it is cheaper. */
void mtf_best_take_cheaper(const MtfPlanSearch *search, MtfMeshAttempt *best);

/* Adds a free layout, or NULL, to the incumbents. */
void mtf_best_add(MtfMeshAttempt *best, const MtfLayout *layout);

/* Says anew what the choices of another layout are worth. */
void mtf_best_explain(MtfMeshAttempt *best, const MtfLayout *layout);

#endif
