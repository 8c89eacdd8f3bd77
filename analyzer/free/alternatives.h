// SPDX-License-Identifier: GPL-3.0-or-later
/* Why a layout is as it is: what one operation or tensor would cost under each of its other
 * strategies while everything else stays. */
#ifndef MTF_ALTERNATIVES_H
#define MTF_ALTERNATIVES_H

#include "analyzer/free/free_problem.h"

typedef struct {
    int strategy;
    int64_t delta; /* nanoseconds more than the choice; 0 for the choice itself */
} MtfAlternative;

/* For each node the numbers of the edges at it: an array of GArray of int. */
GPtrArray *mtf_edges_by_node(const MtfLayoutProblem *problem);

/* What `edge` costs under `choice` with `node`, one of its ends, at `strategy`. */
int64_t mtf_edge_cost(const MtfLayoutProblem *problem, const MtfLayoutEdge *edge, const int *choice,
                      int node, int strategy);

/* All strategies of `node`, the cheapest first, ties by number; free with g_array_unref. */
GArray *mtf_alternatives(const MtfLayoutProblem *problem, const int *choice, int node);

/* The `most` operations whose next best strategy costs most, costliest first, as a JSON list of
 * {"operation", "strategy", "next_best", "nanoseconds"}; the caller owns it. */
cJSON *mtf_alternatives_that_matter(const MtfFreeProblem *problem, const int *choice, int most);

#endif
