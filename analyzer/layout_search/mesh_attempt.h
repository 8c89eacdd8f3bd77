// SPDX-License-Identifier: GPL-3.0-or-later
/* One mesh of a plan's search, laid on the machine one way:
 *
 *     rules ──► incumbents: rules, the field's layouts ──► free layouts
 *
 * What a search has found when it ends is in the attempt. Beside a rival it ends early where its bound
 * says that its step is longer, if no more of it is hidden than of the layouts above. */
#ifndef MTF_MESH_ATTEMPT_H
#define MTF_MESH_ATTEMPT_H

#include "analyzer/layout_search/plan_search.h"

/* What takes so many times the rival's step when it is found is not worth a proof, or variants that save
 * recomputation, a third of the arithmetic at most: together they shorten no step by half. */
#define MTF_HOPELESS 2

/* A search as it goes on. */
typedef struct {
    const MtfGraph *graph;
    const GArray *meshes;
    const MtfPlanSearchOptions *options;
    MtfRuleAnswer *in_order; /* of all meshes */
    MtfSearchControl *control;
    const GArray *bounds; /* int64_t: no layout of each mesh, laid in order, costs less */
    int64_t known;        /* what the best layout of other meshes costs; 0: none */
} MtfPlanSearch;

/* One mesh, laid one way. */
typedef struct {
    MtfMesh mesh;
    bool in_order;
    MtfPricer pricer;
    MtfRuleAnswer rules;
    MtfFreeProblem *problem; /* NULL: rules only */
    MtfLayerTies *ties;      /* NULL: no layers repeat, or they may differ as they like */
    MtfLayout *alike;        /* the best found that fits and lays them out alike; NULL: none */
    MtfIncumbents *incumbents;
    MtfFreeAnswer free;
    MtfSettledLayout settled; /* its layout, settled; or none */
    double posing_seconds;    /* of its problem */
    bool begun;               /* with a known layout that fits (MtfPlanSearchOptions) */
    int64_t cost;             /* of the best layout; INT64_MAX: none fits */
    bool hopeless;            /* by its bound, or by a draft's step; it has no layout then */
    double
        lost_start; /* the step of such a layout that does not fit, but already loses to a plan that is known; 0: none */
    bool lags; /* behind another variant, before its free layouts were searched, and has none */
} MtfMeshAttempt;

/* Searches one mesh laid as `mapping` says, or in order for NULL. `known` is a layout found before, or
 * NULL. NULL on an error. */
MtfMeshAttempt *mtf_mesh_attempt(const MtfPlanSearch *search, const MtfMesh *mesh,
                                 const MtfMapping *mapping, const MtfLayout *known, GError **error);
void mtf_mesh_attempt_free(MtfMeshAttempt *attempt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfMeshAttempt, mtf_mesh_attempt_free)

/* What a bound says, beside a rival, of a mesh laid in order. */
typedef struct {
    bool
        hopeless; /* no step is shorter than the rival's, if no more of it is hidden than of layouts made by hand
                      which fit */
    bool nearly;   /* more rounds are likely to say so */
    int64_t least; /* no layout costs less */
} MtfMeshLook;

/* Looks at the mesh for so many rounds. */
MtfMeshLook mtf_mesh_look(const MtfPlanSearch *search, const MtfMesh *mesh, int rounds);

/* A copy of the best layout; there must be one. */
MtfLayout *mtf_mesh_attempt_layout(const MtfPlanSearch *search, const MtfMeshAttempt *attempt);

/* The layout of some rules, run as the search says. */
MtfLayout *mtf_plan_search_rules(const MtfPlanSearch *search, const MtfMesh *mesh,
                                 const MtfRules *rules);

/* Entries of all matrices of the attempt's problem, which must exist. With MTF_WIDE_ENTRIES or more it is
 * wide: each round of a search over it is long. */
#define MTF_WIDE_ENTRIES 1e6
double mtf_mesh_attempt_entries(const MtfMeshAttempt *attempt);

/* What is hopeless to search costs no less: its step would be longer than the rival's, if no more of it were hidden than
 * of known layouts. INT64_MAX: nothing is. */
int64_t mtf_mesh_attempt_hopeless(const MtfPlanSearch *search, const MtfMeshAttempt *attempt);

/* Begins a part of the search that ends when its bound reaches the rival's cost, which must outlive it. */
void mtf_plan_search_begin_part(const MtfPlanSearch *search, _Atomic int64_t *rival,
                                MtfSearchControl *part);

/* Adds the free layout that was found to the incumbents. */
void mtf_mesh_attempt_keep_found(MtfMeshAttempt *attempt);

/* Looks for the best layout whose repeated layers are alike, unless it is known, notes it and adds it to the
 * incumbents; nothing where layers are not to be alike by default. */
bool mtf_mesh_attempt_find_alike(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                                 GError **error);

/* The options of a search over the attempt's free layouts. */
MtfFreeSearchOptions mtf_mesh_attempt_options(const MtfPlanSearch *search,
                                              const MtfMeshAttempt *attempt);

/* Whether there is no time for more than is needed; whether the graph is large (MTF_LARGE_OPERATIONS);
 * the gap that searches over free layouts may leave. */
bool mtf_plan_search_is_late(const MtfPlanSearch *search);
bool mtf_plan_search_is_large(const MtfPlanSearch *search);
double mtf_plan_search_gap(const MtfPlanSearch *search);

#endif
