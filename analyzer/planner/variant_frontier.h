// SPDX-License-Identifier: GPL-3.0-or-later
/* The frontier of time against memory over variants of a step: what each variant's own frontier
 * (free/frontier.h) found, joined.
 *
 *     step time
 *       ^ c                         a  in one piece         b  layers recomputed
 *       |    c  b                   c  and in 16 micro-batches
 *       |          b   a   a
 *       +------------------------> memory limit
 */
#ifndef MTF_VARIANT_FRONTIER_H
#define MTF_VARIANT_FRONTIER_H

#include "analyzer/planner/step_variants.h"

typedef struct {
    int64_t limit;       /* bytes of one device */
    int variant;         /* of the fastest within the limit, */
    int64_t bytes;       /* what it needs, */
    double step_seconds; /* its step */
    char *name;          /* and which layout it is, as in MtfIncumbent */
    int64_t cost;        /* nanoseconds: of the cheapest within the limit, */
    int64_t bound; /* which no layout of these variants on their meshes costs less than, as far as
                          * each was searched: all its layouts, or those of alike layers */
} MtfVariantPoint;

/* An empty array of MtfVariantPoint, which owns its names. */
GArray *mtf_variant_points_new(void);

/* Adds the frontier of one variant (MtfFrontierPoint). */
void mtf_variant_points_add(GArray *points, const GArray *frontier, int variant);

/* The best of all points under at most `n` limits, 2 or more, from the least that any needs to the most, and
 * `own` where it lies between; ascending, neither costlier nor slower. */
GArray *mtf_variant_frontier(const GArray *points, int n, int64_t own);

/* As mtf_frontier_to_json, with "microbatches" of the variants (MtfStepCandidate) and what
 * mtf_step_variant_add_kept says of them. */
cJSON *mtf_variant_frontier_to_json(const GArray *frontier, const GArray *variants);

#endif
