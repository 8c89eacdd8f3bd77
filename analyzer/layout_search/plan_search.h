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

#include "analyzer/layout_search/plan_answer.h"
#include "analyzer/layout_search/variant_race.h"

/* Training graphs of more operations are large: each search takes long, so that fewer are made and
 * they end sooner. */
#define MTF_LARGE_OPERATIONS 4000
#define MTF_VERY_LARGE_OPERATIONS 20000

/* A layout that a search begins with, and its name as of an incumbent. */
typedef struct {
    const char *name;
    MtfLayout *layout;
} MtfKnownLayout;

/* What a first look at meshes leaves of them, beside a rival. */
typedef struct {
    GArray *meshes; /* MtfMesh: a layout of these may have the shorter step */
    GArray *bounds; /* int64_t: no layout of each, laid in order, costs less */
    int64_t least;  /* nor one of the others, which are hopeless; INT64_MAX: there are none */
} MtfFirstLook;

void mtf_first_look_free(MtfFirstLook *look);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfFirstLook, mtf_first_look_free)

typedef struct {
    const MtfMachine *machine;
    MtfStageExecution stage; /* how the layouts are run that are searched */
    int64_t memory_limit;    /* bytes of one device */
    const char *const *pins; /* as of MtfRuleSearchOptions */
    const char *const *forbids;
    bool rules_only; /* no free layouts */
    /* Rules are not searched: none fits, as is known, or they take long. There is one mesh then. */
    bool no_rules;
    /* What has the batch splits it on the first axis of a mesh, so that the others may be as many as are posed
     * without merging. */
    bool batch_first;
    /* MtfKnownLayout, on the one mesh: where one of them fits, the search is for the best layout from there on,
     * without a draft, others made by hand (but `by_hand`) or other mappings; NULL: none */
    const GArray *known;
    const MtfMapping *mapping;      /* how they lie on the machine; NULL: in order */
    const MtfRowPrices *row_prices; /* what memory is worth to them at times of the step; or NULL */
    bool by_hand;                   /* layouts made by hand are looked at in any case */
    MtfRulePrices *prices;          /* of the graph's rules, where some are known; or NULL */
    MtfOperationPrices
        *operations;    /* what its operations cost, for all searches on the machine; or NULL */
    MtfUniform uniform; /* whether repeated layers are laid out alike */
    int frontier;       /* points to search for; 0: none */
    bool has_gap; /* otherwise the best is searched to `proof_gap`, free layouts of large graphs to
                     half a percent */
    double gap;   /* stop when (cost - bound) <= gap cost */
    double proof_gap; /* 0: to the optimum */
    guint64 seed;
    bool keep_problem;         /* the answer has its layout problem */
    MtfSearchControl *control; /* time, and who listens, to costs in nanoseconds; or NULL */
    MtfVariantRace *race;      /* with other variants of the step, or NULL: */
    int runner;                /* its number there */
    double rival_seconds; /* of another plan's step, 0: none. A search that cannot come near it is
                             hopeless, and left: */
    bool by_bound;        /* as soon as its bound says so, without an answer */
    const MtfFirstLook *look; /* at its meshes, where that is done already; or NULL */
    bool settles;             /* the layout that a proof keeps may be settled beside it, with */
    const char *collectives;  /* … as of MtfSettling */
    int64_t bucket_bytes;     /* … */
    bool runs; /* the machine's software is to have memory for the plan, where one that
                                 it has was found with a step little longer (MTF_NEAR_STEP) */
} MtfPlanSearchOptions;

/* Searches the meshes (MtfMesh). True with or without a layout; false on an error. The same input
 * gives the same answer unless its control ends it. Clear the answer in either case. */
bool mtf_plan_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfPlanSearchOptions *options, MtfPlanAnswer *answer, GError **error);

/* Looks at the meshes as the search would at first; NULL where it would not, or at others in their place. */
MtfFirstLook *mtf_plan_search_look(const MtfGraph *graph, const GArray *meshes,
                                   const MtfPlanSearchOptions *options);
#endif
