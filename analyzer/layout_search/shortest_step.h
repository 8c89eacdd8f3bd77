// SPDX-License-Identifier: GPL-3.0-or-later
/* Where transfers can be hidden, the layout of the shortest step need not be the cheapest: looks for it under
 * lower memory limits. */
#ifndef MTF_SHORTEST_STEP_H
#define MTF_SHORTEST_STEP_H

#include "analyzer/layout_search/best_attempt.h"

/* Notes in the answer the step of the best layout, or a layout of a shorter one. */
bool mtf_best_shorten(const MtfPlanSearch *search, MtfMeshAttempt *best, MtfPlanAnswer *answer,
                      GError **error);

#endif
