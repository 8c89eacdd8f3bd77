// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for the best rule layout: the cheapest map from dimensions to mesh axes, over one mesh
 * or many, whose program fits the memory of a device.
 *
 *     for each mesh   tables of prices ──► integer program ──► rules ──► program ──► arena
 *                                              ▲                                      │
 *                                              └── excluded, when the arena is too large
 *
 * The integer program models memory from below, so its bound holds whatever packing adds. Rules
 * whose arena exceeds the limit are excluded one by one, which loses nothing; after
 * MTF_RULE_EXCLUSIONS of them the limit of the program is tightened instead by what was missing,
 * which is a heuristic: the bound is then still the last one before. */
#ifndef MTF_RULE_SEARCH_H
#define MTF_RULE_SEARCH_H

#include "analyzer/rules/rule_prices.h"
#include "cost/machine/machine.h"
#include "cost/machine/mapping.h"
#include "layouts/placement/rules.h"

#define MTF_RULE_EXCLUSIONS 24

typedef struct {
    const MtfMachine *machine;
    const MtfMapping *mapping;  /* how the one mesh lies on it; NULL: every mesh in order */
    MtfStageExecution stage;    /* how the layouts are run */
    int64_t memory_limit;       /* bytes of one device */
    bool modelled;              /* what arenas surely need stands for them: nothing is lowered */
    bool draft;                 /* free layouts follow: integer programs may take little work */
    const char *const *pins;    /* "d_ff:cols": the dimension lies on that axis; NULL-terminated */
    const char *const *forbids; /* the dimension does not lie on that axis; both may be NULL */
    double gap;                 /* stop a program when (cost - bound) <= gap cost */
    /* Meshes all of whose rules surely cost more than so many times the best that is known to fit are left, as
     * soon as that is seen; 0: none is */
    double wanted;
    MtfRulePrices *prices;     /* of the graph, for further searches; or NULL */
    MtfSearchControl *control; /* told the best cost after each mesh; or NULL */
} MtfRuleSearchOptions;

/* What the search found on one mesh. */
typedef struct {
    bool
        searched; /* false: it lacks a pinned axis, costs too much, or the search was stopped before */
    int64_t cost; /* of the cheapest rules found to fit; INT64_MAX: none */
} MtfRuleMesh;

typedef struct {
    bool found;       /* rules whose program fits */
    bool other_order; /* the caller's: they fit in another order of instructions only */
    bool stopped;     /* by its control, before the end */
    bool tightened;   /* the heuristic was used: cost may exceed bound */
    int meshes;       /* looked at */
    int excluded;     /* rules that the integer program took for fitting and whose arena did not */
    GArray *by_mesh;  /* MtfRuleMesh, one a mesh */
    MtfMesh mesh;
    MtfRules *rules;
    int64_t cost;        /* nanoseconds: the additive price of the program */
    int64_t bound;       /* no rules whose program fits have a lower price on any of the meshes */
    int64_t arena_bytes; /* of the program */
    /* When nothing is found: mesh, rules and arena_bytes are those of the smallest arena found, so
     * that arena_bytes is a limit that would do; and no smaller limit than this would: */
    int64_t limit_bound;
} MtfRuleAnswer;

/* Searches the meshes (MtfMesh) for a training graph without composites. Fails on pins and forbids
 * that name unknown dimensions or axes or contradict one another, and on meshes that the machine
 * cannot hold. The same input gives the same answer unless it is stopped. */
bool mtf_rule_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfRuleSearchOptions *options, MtfRuleAnswer *answer, GError **error);

/* The index of the mesh (MtfMesh) of two axes, or fewer, that are nearest to equal; 0: there is none. */
int mtf_squarest_mesh(const GArray *meshes);

void mtf_rule_answer_clear(MtfRuleAnswer *answer);

#endif
