// SPDX-License-Identifier: GPL-3.0-or-later
/* The search for where to cut a graph into pipeline stages, together with the devices of each stage,
 * the micro-batches and what is computed again:
 *
 *     forward graph ──► units ──► prices of each unit on 1, 2, 4 … devices (unit_prices.h)
 *                                       │ for each number of micro-batches, and recomputation
 *                                       ▼
 *              Alpa's dynamic program over (units, devices), memory with micro-batches in flight
 *
 * Stages are priced by the sums of their units under layouts made by hand; the search over free
 * layouts of the stages that are chosen (pipeline_planning.h) comes after. The bound is of this
 * model: the work of all units, each where it costs least, spread evenly over the devices without a
 * bubble. */
#ifndef MTF_CUT_SEARCH_H
#define MTF_CUT_SEARCH_H

#include "analyzer/planner/planning.h"

typedef struct {
    const MtfGraph *forward;
    const MtfMachine *machine;
    int64_t devices;
    int64_t memory;                    /* bytes of a device */
    int stages;                        /* 0: any number */
    int microbatches;                  /* 0: any number */
    int recompute;                     /* MtfRecompute, or MTF_RECOMPUTES: any */
    int max_axes;                      /* of a stage's mesh */
    const char *batch_dim, *precision; /* as of MtfStepVariant */
} MtfCutRequest;

typedef struct {
    int first, end; /* operations of the forward graph */
    int64_t devices;
    MtfMesh mesh;       /* and the layout it was priced under */
    const char *layout; /* owned by the plan */
    double seconds;     /* of a micro-batch */
    double bytes;       /* of a device */
} MtfCutStage;

typedef struct {
    GArray *stages; /* MtfCutStage */
    GPtrArray *names;
    MtfStepVariant variant;
    double seconds, bound; /* of a step, in the model */
    int tried;             /* numbers of micro-batches and recomputations */
} MtfCutPlan;

/* The best cut; a fit error when none fits, a bad-input error where the batch cannot be divided. */
MtfCutPlan *mtf_cut_search(const MtfCutRequest *request, GError **error);
void mtf_cut_plan_free(MtfCutPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCutPlan, mtf_cut_plan_free)

/* Gives every operation of the forward graph the stage of the plan. */
void mtf_cut_plan_apply(const MtfCutPlan *plan, MtfGraph *forward);

#endif
