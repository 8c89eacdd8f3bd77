// SPDX-License-Identifier: GPL-3.0-or-later
/* What a long search says while it runs, on standard error: a line that is drawn anew on a terminal, and
 * elsewhere one line every ten seconds, so that nobody waits in silence and logs stay short.
 *
 *     meshtf-plan search: 10 s: posing free layouts; best 7.44 s
 *     meshtf-plan search: 20 s: free layouts; best 7.39 s, bound 7.36 s, gap 0.4 % */
#ifndef MTF_SEARCH_PROGRESS_H
#define MTF_SEARCH_PROGRESS_H

#include <glib.h>
#include <stdbool.h>

typedef struct MtfSearchProgress MtfSearchProgress;

/* Begins to say what is told below, from a thread of its own. */
MtfSearchProgress *mtf_search_progress_begin(void);

/* Stops and frees; NULL is accepted. */
void mtf_search_progress_end(MtfSearchProgress *progress);

/* What is being done, a constant string. From any thread, as the next one. */
void mtf_search_progress_phase(MtfSearchProgress *progress, const char *phase);

/* Best cost and bound so far in nanoseconds; INFINITY and 0 where there is none. */
void mtf_search_progress_bound(MtfSearchProgress *progress, double cost, double bound);

#endif
