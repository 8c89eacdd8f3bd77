// SPDX-License-Identifier: GPL-3.0-or-later
/* The plan of a pipeline: one training graph whose operations name their stage, and for each stage
 * a domain (mesh and first device), the layout of its part of the graph, its program and the order
 * of its passes. Stages lie behind one another: the devices of stage s come after those of s - 1.
 *
 *     {"meshtf_pipeline_plan": 1, "graph": {…}, "microbatches": 8, "batch_dimension": "batch",
 *      "schedule": "1f1b", "predicted": {…},
 *      "stages": [{"first_device": 0, "order": "0F0 0F1 0B0 …", "mesh": "rows:2", "layout": {…},
 *                  "program_sha256": "…", …}, …]}
 *
 * The parts of the graph follow from it (layouts/graph/stage_split.h) and are not in the file. */
#ifndef MTF_PIPELINE_PLAN_H
#define MTF_PIPELINE_PLAN_H

#include "layouts/graph/stage_split.h"
#include "layouts/program/plan.h"
#include "layouts/program/stage_order.h"

typedef struct {
    MtfPlan *plan; /* of its part of the graph */
    MtfStageOrder *order;
    int first_device;
} MtfPlannedStage;

/* Owns all its parts. */
typedef struct {
    MtfGraph *graph; /* the whole training graph, with the micro-batches */
    MtfStageSplit *split;
    char *schedule;
    GArray *stages; /* MtfPlannedStage */
    cJSON *predicted;
} MtfPipelinePlan;

/* A pipeline without stages yet, of a graph (taken over) in which every operation has a stage.
 * Fails as mtf_stage_split does, and (bad input) without micro-batches. */
MtfPipelinePlan *mtf_pipeline_plan_new(MtfGraph *graph, const char *schedule, GError **error);

/* The graph of a stage, as its plan holds it: with the micro-batches in flight that `order` has.
 * Free with mtf_graph_free. */
MtfGraph *mtf_pipeline_stage_graph(const MtfPipelinePlan *pipeline, int stage,
                                   const MtfStageOrder *order);

/* Appends a stage; takes over plan and order. */
void mtf_pipeline_plan_add(MtfPipelinePlan *pipeline, MtfPlan *plan, MtfStageOrder *order);

MtfPlannedStage *mtf_pipeline_stage(const MtfPipelinePlan *pipeline, int stage);

/* Devices of all stages. */
int mtf_pipeline_devices(const MtfPipelinePlan *pipeline);

/* Whether the file is the plan of a pipeline; false where it cannot be read. */
bool mtf_pipeline_plan_is(const char *path);

MtfPipelinePlan *mtf_pipeline_plan_load(const char *path, GError **error);
bool mtf_pipeline_plan_save(const MtfPipelinePlan *pipeline, const char *path, GError **error);

/* The digest of all stages' programs and orders; free with g_free. */
char *mtf_pipeline_plan_digest(const MtfPipelinePlan *pipeline);

void mtf_pipeline_plan_free(MtfPipelinePlan *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelinePlan, mtf_pipeline_plan_free)

#endif
