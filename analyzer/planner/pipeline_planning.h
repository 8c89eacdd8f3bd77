// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans a pipeline: the training graph is cut into stages, each stage's part is searched for its
 * best layout on a mesh of its own, and the order of the passes is that of a schedule:
 *
 *     graph ──cut──► training graph with stages ──split──► part of stage 1 ──search──► layout
 *                                                     └──► part of stage 2 ──search──► layout
 *                                                                │ times of the passes
 *                                                                ▼
 *                                          schedule: when each stage does what, and the step's length
 *
 * Layouts are proven for each stage alone, given the cut; the one made here, of a graph that has none, balances
 * work and is not proven (analyzer/cuts finds others). */
#ifndef MTF_PIPELINE_PLANNING_H
#define MTF_PIPELINE_PLANNING_H

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"
#include "layouts/plan_file/pipeline_plan.h"

typedef struct {
    const MtfGraph *written;       /* by the user; operations may name their stages already */
    int stages;                    /* domains of devices, each with `chunks` parts of the graph */
    int chunks;                    /* as the schedule needs */
    const char *schedule;          /* as of mtf_pipeline_schedule, or MTF_ANY_SCHEDULE */
    MtfStepVariant form;           /* of all stages */
    const GArray *meshes;          /* MtfMesh: what a stage may run on; all of equal size */
    const GPtrArray *stage_meshes; /* GArray of MtfMesh: of each stage its own; or NULL */
    const int *style; /* of the standard layout (standard_layouts.h) that all stages have,
                         each on its one mesh; NULL: layouts are searched */
    bool prices_only; /* with a style: stages run their operations in the order of the graph, and
                         the plan is good for nothing else; a stage's `predicted` has a framework's
                         memory alone: given_bytes, reserved_bytes, device_memory_bytes */
    MtfPlanSearchOptions search; /* of every stage; its control is not used */
    double stage_seconds;        /* for the search of each; 0: no limit */
    double rival_seconds;        /* of another plan's step: one that takes no less is not searched
                                    to the end; 0: none */
} MtfPipelineRequest;

/* The name for whichever schedule is predicted to be the fastest. Then the plan's predictions say
 * under "schedules" what those that were planned to the end take. */
#define MTF_ANY_SCHEDULE "auto"

/* The parts of the graph that a schedule puts on each stage's devices: what it needs, of any number 2;
 * 0 and an error that lists the schedules where there is none of that name. */
int mtf_pipeline_chunks(const char *schedule, GError **error);

/* The plan; NULL on an error: bad input, (MTF_ERROR_FIT) a stage that fits no layout, or (MTF_ERROR_FAILED) no
 * step shorter than the rival's. */
MtfPipelinePlan *mtf_pipeline_search(const MtfPipelineRequest *request, GError **error);

/* What goes from a stage, whose plan is there, to those behind it for one micro-batch. */
double mtf_pipeline_transfer_seconds(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                                     int stage);

#endif
