// SPDX-License-Identifier: GPL-3.0-or-later
/* The frontier of time against memory on one mesh: the best layouts found under each of a row of
 * memory limits, from the least that would do to what the cheapest layout needs.
 *
 *     step time
 *       ^  x
 *       |    x
 *       |       x   x            every layout found is a candidate for all limits it fits,
 *       |               x   x    so more memory never gives a slower step
 *       +------------------------> memory limit
 *
 * Searches minimise the additive cost, but people wait for the step, in which a machine may hide
 * transfers behind kernels. So a layout found under a lower limit may be costlier and yet the
 * fastest: each limit has its cheapest layout, whose bound says how good it is, and its
 * fastest. Neither gets worse with more memory. */
#ifndef MTF_FRONTIER_H
#define MTF_FRONTIER_H

#include "analyzer/free/free_search.h"

#define MTF_FRONTIER_MAX_POINTS 256

typedef struct {
    int64_t limit; /* bytes of one device */
    int64_t bound; /* nanoseconds: no layout of this mesh within the limit costs less */
    const MtfIncumbent *cheapest, *fastest; /* of those known within the limit; the pool's */
} MtfFrontierPoint;

/* Searches under `n` limits (2 or more), ascending; whole GiB (or else MiB) where the steps are as
 * wide, and `options->memory_limit` among them where it lies between. `pool` holds the layouts
 * known before and gets all that are found. Returns an array of MtfFrontierPoint, empty when
 * nothing fits whatever the limit; NULL on an error. */
GArray *mtf_frontier(MtfFreeProblem *problem, const MtfFreeSearchOptions *options, int n,
                     MtfIncumbents *pool, GError **error);

/* [{"limit_bytes", "memory_bytes", "cost", "bound", "step_seconds", "name"}], cost and bound of the
 * cheapest and the rest of the fastest; the caller owns it. */
cJSON *mtf_frontier_to_json(const GArray *frontier);

#endif
