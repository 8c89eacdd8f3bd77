// SPDX-License-Identifier: GPL-3.0-or-later
/* Layouts known before or during a search, each lowered, priced and packed: a search begins with
 * the cheapest that fits and is never worse than any of them. */
#ifndef MTF_INCUMBENTS_H
#define MTF_INCUMBENTS_H

#include "analyzer/free_problem.h"

#include <cjson/cJSON.h>

/* What found layouts are called; other names say who would lay the graph out so. */
#define MTF_FREE_LAYOUT "free layout"
#define MTF_RULE_LAYOUT "best rule layout"

typedef struct {
    char *name; /* one of the above, or of a standard layout: "data parallelism" */
    MtfLayout *layout;
    int64_t cost;        /* nanoseconds: the price of its program */
    int64_t arena_bytes; /* of its program */
    double step_seconds; /* of its program's schedule */
} MtfIncumbent;

/* An empty list of MtfIncumbent *; free with g_ptr_array_unref. */
GPtrArray *mtf_incumbents_new(void);

/* Adds a copy of `layout`. */
const MtfIncumbent *mtf_incumbents_add(GPtrArray *incumbents, const MtfGraph *graph,
                                       const MtfPricer *pricer, const char *name,
                                       const MtfLayout *layout);

/* Adds of the standard layouts (standard_layouts.h), for each name, the cheapest of all and the
 * cheapest that fits the limit. */
void mtf_incumbents_add_standards(GPtrArray *incumbents, MtfFreeProblem *problem,
                                  int64_t memory_limit);

/* The cheapest that fits, the first of equals; NULL when none does. */
const MtfIncumbent *mtf_incumbents_best(const GPtrArray *incumbents, int64_t memory_limit);

/* Whether incumbent `i` is the one to show of its name: the cheapest that fits, or else the
 * cheapest, the first of equals. Free layouts are not shown. */
bool mtf_incumbent_stands_for_its_name(const GPtrArray *incumbents, guint i, int64_t memory_limit);

/* [{"name", "cost", "memory_bytes", "step_seconds"}] of those; the caller owns it. */
cJSON *mtf_incumbents_to_json(const GPtrArray *incumbents, int64_t memory_limit);

#endif
