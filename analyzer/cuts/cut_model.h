// SPDX-License-Identifier: GPL-3.0-or-later
/* One model of a pipeline for Alpa's dynamic program: the units of a graph (graph_units.h), in parts
 * that stages may be cut between, priced under the ways of unit_prices.h for one variant of the step.
 *
 *     T = Σ t_i + (M - 1) max t_j                     a stage a domain, M micro-batches
 *     T = Σ t_i / V + (M - 1 / V) max t_j             V chunks a domain, all domains of equal size
 *     T = M max t_j                                   steps that overlap (layouts/pipeline/pipeline_delay.h)
 *
 * The second is the interleaved schedule of Megatron (arXiv 2104.04473, section 2.2): its bubble is V
 * times shorter, and its first domain holds 1 + 1 / V times as much. What the host adds to a step
 * (mtf_machine_step_seconds) comes once. */
#ifndef MTF_CUT_MODEL_H
#define MTF_CUT_MODEL_H

#include "analyzer/cuts/graph_units.h"
#include "analyzer/cuts/unit_prices.h"
#include "analyzer/stages/latency_search.h"

typedef struct {
    int first, end; /* operations of the forward graph */
    int64_t devices;
    MtfMesh mesh; /* and the layout it was priced under */
    MtfRecompute recompute;
    const char *layout; /* owned by the plan */
    int style;          /* its number (standard_layouts.h) */
    double seconds;     /* of a micro-batch */
    double bytes;       /* of a device */
} MtfCutStage;

typedef struct {
    GArray *stages; /* MtfCutStage: of each domain, or `chunks` of each in turns */
    GPtrArray *names;
    int chunks;
    MtfStepVariant variant;
    MtfRecompute *recompute; /* of each stage, which the variant then has; or NULL: they are
                                alike */
    double seconds, bound;   /* of a step, in the model */
    int tried;               /* numbers of micro-batches and recomputations */
} MtfCutPlan;

void mtf_cut_plan_free(MtfCutPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCutPlan, mtf_cut_plan_free)

/* What stages may be made of; all borrowed. */
typedef struct {
    const MtfGraphUnits *units;
    const GArray *places;  /* of int, ascending: the units that parts begin at, and their number */
    const GArray *sizes;   /* of int64_t, ascending: devices of a stage */
    const GPtrArray *ways; /* MtfUnitWay, for the variant */
    int recomputations;    /* how many kinds of it ways have: each stage its own */
    const MtfRecompute *recompute_of_stage; /* of each stage, whose number is given; or NULL: any */
    MtfStepVariant variant;
    const MtfMachine *machine;
    int64_t devices, memory; /* of all stages; bytes of a device */
    int stages;              /* 0: any number */
    int chunks;              /* above 1 with one size, `stages` times which are all devices */
    bool overlaps;           /* steps follow one another without a bubble */
} MtfCutModel;

/* The best stages, in order; of `chunks` above 1 stages × chunks parts of the graph. NULL when none
 * fits. Ways that some stage might have had are marked as wanted. */
MtfCutPlan *mtf_cut_model_solve(const MtfCutModel *model);

/* Each unit's work where it costs least, spread evenly: no plan takes less. */
double mtf_cut_model_bound(const MtfCutModel *model);

#endif
