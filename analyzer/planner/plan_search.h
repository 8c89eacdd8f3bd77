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
#include "analyzer/rules/rule_search.h"

typedef struct {
    const MtfMachine *machine;
    int64_t memory_limit;    /* bytes of one device */
    const char *const *pins; /* as of MtfRuleSearchOptions */
    const char *const *forbids;
    bool rules_only;    /* no free layouts */
    MtfUniform uniform; /* whether repeated layers are laid out alike */
    int frontier;       /* points to search for; 0: none */
    double seconds;     /* wall-clock limit; 0 = none */
    bool has_gap; /* otherwise all is searched to the optimum, but free layouts of large graphs to
                     half a percent */
    double gap;   /* stop when (cost - bound) <= gap cost */
    guint64 seed;
    const char *dump; /* write the layout problem of the best rules' mesh there, or NULL */
    void *user;       /* passed to the functions, which may be NULL */
    bool (*cancel)(void *user);
    bool (*abandon)(void *user); /* as of MtfFreeSearchOptions */
    void (*found)(int64_t cost, void *user);
    void (*rules_progress)(int meshes, int64_t cost, void *user);
    void (*free_progress)(double cost, double bound, void *user);
    void (*free_guess)(double guess, void *user); /* as of MtfSolveOptions */
    void (*await)(void *user); /* returns when the free layouts of a mesh may be posed */
    void (*posed)(void *user); /* what two threads share is done: the free layouts of a mesh are
                                  posed, or none are searched */
    /* Whether a large graph's best layout, whose step takes so many seconds, is worth its proof; NULL: it
     * is. Without proof its bound stays 0. */
    bool (*worth_proof)(double step_seconds, void *user);
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
 * gives the same answer unless seconds or `cancel` stop it. Clear the answer in either case. */
bool mtf_plan_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfPlanSearchOptions *options, MtfPlanAnswer *answer, GError **error);
void mtf_plan_answer_clear(MtfPlanAnswer *answer);

/* Whether the cheapest is a free layout; and the layout of the plan, a copy. */
bool mtf_plan_answer_is_free(const MtfPlanAnswer *answer);
MtfLayout *mtf_plan_answer_layout(const MtfPlanAnswer *answer, const MtfGraph *graph);

/* The plan's `search` object; the caller owns it. */
cJSON *mtf_plan_answer_to_json(const MtfPlanAnswer *answer, int64_t memory_limit);

#endif
