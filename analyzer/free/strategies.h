// SPDX-License-Identifier: GPL-3.0-or-later
/* All ways to run one operation on a mesh, from its table row alone: every mesh axis independently
 * splits one index of the iteration space, or does the same work everywhere, or lets a partial sum
 * pass through. Indexes with fewer points than processors are not split. */
#ifndef MTF_STRATEGIES_H
#define MTF_STRATEGIES_H

#include "layouts/placement/strategy.h"

/* What the user asks of every operation: an axis that a dimension must or must not be split over.
 */
typedef struct {
    int dim, axis;
    bool forbidden; /* else required, wherever the dimension is iterated over */
} MtfPin;

/* The strategies of `operation` that obey `pins`, in a fixed order; an array of MtfStrategy, never
 * empty unless the pins contradict each other. Free with g_array_unref. */
GArray *mtf_strategies(const MtfGraph *graph, const MtfMesh *mesh, int operation,
                       const MtfPin *pins, int n_pins);

/* Of all strategies one for each way to cut the indexes into parts, whatever the axes: what the time of a kernel
 * depends on. There are far fewer of those on many axes (six of 2, and five indexes: 462 of 46,656).
 */
GArray *mtf_strategies_by_parts(const MtfGraph *graph, const MtfMesh *mesh, int operation);

#endif
