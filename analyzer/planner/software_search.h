// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for a plan that the chosen software can run. Searches (deep_search.h) weigh what programs of our own
 * take; a framework may need more for the same layout, as where it keeps scores, or gradients until all are there.
 * Then programs are allowed less, until what the framework needs fits:
 *
 *     programs may take    the best one takes    the framework needs
 *     68 GiB               61                    86                     too much: as much less as it is more
 *     48                   34                    31                     fits; between the two there may be better
 *     55                   54                    66                     fits as well, and is faster
 *
 * Of graphs that are not searched at once drafts say first how much that is: the first plan's variant on its mesh, layers
 * alike, whose problem is posed once and solved in a part of a second for each limit. */
#ifndef MTF_SOFTWARE_SEARCH_H
#define MTF_SOFTWARE_SEARCH_H

#include "analyzer/planner/deep_search.h"

/* As mtf_deep_search; `programs_limit` is what programs were allowed where the answer was found, the options' limit
 * where that did. Fails (MTF_ERROR_FIT) where no plan was found that the software can run, and says what it would
 * need at least; and where time was up before. Where nothing fits it looks for a limit that would do, `enough` of the
 * answer, by the same search within what was found to take least. Clear the answer in either case. */
bool mtf_software_search(const MtfVariantSearchOptions *options, guint large,
                         MtfVariantAnswer *answer, int64_t *programs_limit, GError **error);

#endif
