// SPDX-License-Identifier: GPL-3.0-or-later
/* Layouts known before or during a search, with their prices: a search begins with the cheapest
 * that fits and is never worse than any of them. Lowering and packing a layout takes much longer
 * than pricing it, so a layout is measured when an answer depends on it, from the cheapest on:
 *
 *     cost        10   12   15   21
 *     least       too large  .    .        no arena is smaller than `least_bytes`
 *     measured              too large  fits ──► the best; what costs more need not be measured */
#ifndef MTF_INCUMBENTS_H
#define MTF_INCUMBENTS_H

#include "analyzer/free/free_problem.h"
#include "analyzer/solver/problem/search_control.h"

#include <cjson/cJSON.h>

/* What found layouts are called; other names say who would lay the graph out so. */
#define MTF_FREE_LAYOUT "free layout"
#define MTF_RULE_LAYOUT "best rule layout"

typedef struct {
    char *name; /* one of the above, or of a standard layout: "data parallelism" */
    MtfLayout *layout;
    int64_t cost;        /* nanoseconds: the price of its program */
    int64_t least_bytes; /* its program's arena is no smaller */
    /* Of those that the functions below return: */
    int64_t arena_bytes; /* of its program */
    double step_seconds; /* of its program's schedule */
    bool measured;       /* the last two are known */
} MtfIncumbent;

typedef struct MtfIncumbents MtfIncumbents;

/* An empty list for layouts of one mesh. The graph must outlive it; the pricer is copied. */
MtfIncumbents *mtf_incumbents_new(const MtfGraph *graph, const MtfPricer *pricer);
void mtf_incumbents_free(MtfIncumbents *incumbents);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfIncumbents, mtf_incumbents_free)

/* What a layout's program comes to. */
typedef struct {
    int64_t cost, arena_bytes; /* as of MtfIncumbent */
    double step_seconds;       /* … */
} MtfLayoutMeasures;

/* Lowers the layout and prices its program. */
MtfLayoutMeasures mtf_layout_measure(const MtfGraph *graph, const MtfPricer *pricer,
                                     const MtfLayout *layout);

/* Adds a copy of `layout`. */
void mtf_incumbents_add(MtfIncumbents *incumbents, const char *name, const MtfLayout *layout);

/* The same of one whose program was looked at already. */
void mtf_incumbents_add_measured(MtfIncumbents *incumbents, const char *name,
                                 const MtfLayout *layout, const MtfLayoutMeasures *value);

/* Adds the standard layouts (standard_layouts.h) of the problem, which has the list's graph and
 * pricer. */
void mtf_incumbents_add_standards(MtfIncumbents *incumbents, MtfFreeProblem *problem);

/* The cheapest that fits, the first of equals; NULL when none does. Owned by the list. */
const MtfIncumbent *mtf_incumbents_best(MtfIncumbents *incumbents, int64_t memory_limit);

/* The one of the shortest step that fits, the cheapest of equals; NULL when none does. Measures all
 * that may fit where the machine hides transfers. Owned by the list. */
const MtfIncumbent *mtf_incumbents_fastest(MtfIncumbents *incumbents, int64_t memory_limit);

/* Those that are measured and fit, of steps no longer than `seconds`, the shortest first. */
GPtrArray *mtf_incumbents_near(const MtfIncumbents *incumbents, int64_t memory_limit,
                               double seconds);

/* The one with the smallest arena; NULL when there are none. */
const MtfIncumbent *mtf_incumbents_smallest(MtfIncumbents *incumbents);

/* The one to show of each name but free layouts, in the order they were added: the cheapest that
 * fits, or else the cheapest, the first of equals. An array of const MtfIncumbent *. */
GPtrArray *mtf_incumbents_shown(MtfIncumbents *incumbents, int64_t memory_limit);

/* Those of them that fit: what surely does not is not measured for it. */
GPtrArray *mtf_incumbents_fitting(MtfIncumbents *incumbents, int64_t memory_limit);

/* Measures what the former shows, while there is time, so that it need not be done when all waits for it. */
void mtf_incumbents_measure(MtfIncumbents *incumbents, int64_t memory_limit,
                            const MtfSearchControl *control);

/* Lets those of the former that fit exchange in joined messages, as plans do, where that shortens their steps and they
 * fit still: what is known of their steps and arenas is of that then. Sizes of messages are `only` one, 0: any. */
void mtf_incumbents_join(MtfIncumbents *incumbents, int64_t memory_limit, int64_t only);

/* Leaves those that are measured, where there is no time to measure more. */
void mtf_incumbents_drop_unmeasured(MtfIncumbents *incumbents);

/* [{"name", "cost", "memory_bytes", "step_seconds"}] of those shown; the caller owns it. */
cJSON *mtf_incumbents_to_json(MtfIncumbents *incumbents, int64_t memory_limit);

#endif
