// SPDX-License-Identifier: GPL-3.0-or-later
/* The whole search for a plan of one training graph:
 *
 *     rule layouts over all meshes ──► the most promising meshes, for each
 *
 *         in order ──► rules ──► standard layouts ──► free layouts ──► best program
 *            ▲                                                             │
 *            └──── the mapping that suits its traffic, if that is cheaper ◄┘
 *
 * Whatever was found before is an incumbent of what is searched next, so the answer is never worse
 * than the best rules, the layouts the field makes by hand, or the mesh laid in order. Bounds hold
 * for the mesh and the mapping of the answer.
 *
 * All this is about the additive cost. Where a machine overlaps transfers with kernels, the
 * cheapest layout need not have the shortest step: one that shards more costs more, and what it
 * costs more may all be hidden. So layouts are then searched under lower memory limits, too, and
 * the plan is the one of all that were found and fit that has the shortest step. */
#ifndef MTF_PLAN_SEARCH_H
#define MTF_PLAN_SEARCH_H

#include "analyzer/free/free_search.h"
#include "analyzer/free/frontier.h"
#include "analyzer/planner/alike_layers.h"
#include "analyzer/planner/variant_race.h"
#include "analyzer/rules/rule_search.h"

typedef struct {
    const MtfMachine *machine;
    int64_t memory_limit;    /* bytes of one device */
    const char *const *pins; /* as of MtfRuleSearchOptions */
    const char *const *forbids;
    bool rules_only;    /* no free layouts */
    MtfUniform uniform; /* whether repeated layers are laid out alike */
    int frontier;       /* points to search for; 0: none */
    bool has_gap; /* otherwise all is searched to the optimum, but free layouts of large graphs to
                     half a percent */
    double gap;   /* stop when (cost - bound) <= gap cost */
    guint64 seed;
    const char *dump;          /* write the layout problem of the best rules' mesh there, or NULL */
    MtfSearchControl *control; /* time, and who listens, to costs in nanoseconds; or NULL */
    MtfVariantRace *race;      /* with other variants of the step, or NULL: */
    int runner;                /* its number there */
} MtfPlanSearchOptions;

typedef struct {
    bool found;                /* a layout that fits */
    bool in_order;             /* the mesh lies on the machine in order */
    int64_t cost;              /* of the cheapest layout, nanoseconds */
    MtfLayout *fastest;        /* that is not the cheapest: of a shorter step, or of alike layers;
                                  NULL: none */
    int64_t fastest_cost;      /* of that */
    double step_seconds;       /* of the layout; 0: not known (rules only) */
    MtfPricer pricer;          /* with the mesh as it is laid on the machine */
    MtfRuleAnswer rules;       /* on that mesh; bound: over all meshes in order as well */
    MtfFreeAnswer free;        /* layout NULL: not searched, or nothing fits */
    MtfIncumbents *incumbents; /* rules and standard layouts on that mesh; NULL: none */
    GArray *frontier;          /* NULL: not asked for */
    MtfAlikeLayers alike;      /* what is said of repeated layers */
    int64_t in_order_cost;     /* of the best found with the mesh laid in order */
    int meshes;                /* searched for rules */
    int free_meshes;           /* searched for free layouts */
    int mappings;              /* tried for the traffic of the best program */
} MtfPlanAnswer;

/* Searches the meshes (MtfMesh). True with or without a layout; false on an error. The same input
 * gives the same answer unless its control ends it. Clear the answer in either case. */
bool mtf_plan_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfPlanSearchOptions *options, MtfPlanAnswer *answer, GError **error);
void mtf_plan_answer_clear(MtfPlanAnswer *answer);

/* Whether the cheapest is a free layout; and the layout of the plan, a copy. */
bool mtf_plan_answer_is_free(const MtfPlanAnswer *answer);
MtfLayout *mtf_plan_answer_layout(const MtfPlanAnswer *answer, const MtfGraph *graph);

/* The plan's `search` object; the caller owns it. */
cJSON *mtf_plan_answer_to_json(const MtfPlanAnswer *answer, int64_t memory_limit);

#endif
