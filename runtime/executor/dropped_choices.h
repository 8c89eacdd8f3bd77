// SPDX-License-Identifier: GPL-3.0-or-later
/* How many of the experts that tokens chose had no place left for them: -1 among the results of `slots`
 * with a capacity. Ranks that hold the same tokens all count them, which leaves the share as it is. */
#ifndef MTF_DROPPED_CHOICES_H
#define MTF_DROPPED_CHOICES_H

#include "runtime/worker/worker.h"

typedef struct {
    double dropped, all; /* choices, of this rank */
} MtfDropped;

/* Whether some router of the graph has a capacity. */
bool mtf_dropped_may_be(const MtfGraph *graph);

/* After instruction `index` has run: counts, if that placed choices. */
void mtf_dropped_look(MtfDropped *dropped, const MtfWorker *worker, int index);

#endif
