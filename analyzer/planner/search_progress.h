// SPDX-License-Identifier: GPL-3.0-or-later
/* What a long search says while it runs, on standard error: a line that is drawn anew on a terminal, and
 * elsewhere one line every ten seconds, so that nobody waits in silence and logs stay short.
 *
 *     meshtf-plan search: 10 s: posing free layouts; best 7.44 s
 *     meshtf-plan search: 20 s: free layouts; best 7.39 s, bound 7.36 s, gap 0.4 %
 *
 * A bound is told as long as its phase lasts: the next mesh has one of its own. */
#ifndef MTF_SEARCH_PROGRESS_H
#define MTF_SEARCH_PROGRESS_H

#include "analyzer/solver/problem/search_control.h"

typedef struct MtfSearchProgress MtfSearchProgress;

/* Begins to print what is set below, from a thread of its own. */
MtfSearchProgress *mtf_search_progress_begin(void);

/* Stops and frees; NULL is accepted. */
void mtf_search_progress_end(MtfSearchProgress *progress);

/* Of a search whose costs are nanoseconds; phases are constant strings. Valid until the end. */
const MtfSearchListener *mtf_search_progress_listener(const MtfSearchProgress *progress);

/* What stands behind the seconds. */
char *mtf_search_progress_state(const MtfSearchProgress *progress);

#endif
