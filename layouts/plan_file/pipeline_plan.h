// SPDX-License-Identifier: GPL-3.0-or-later
/* The plan of a pipeline: one training graph whose operations name their stage, for each stage a
 * mesh, the layout of its part of the graph and its program, and the order of the passes. A stage
 * runs on the domain that the order names (a rank there), domains lie behind one another: the
 * devices of domain d come after those of d - 1.
 *
 *     {"meshtf_pipeline_plan": 4, "graph": {…}, "microbatches": 4, "batch_dimension": "batch", "ring": 2,
 *      "schedule": "1f1b", "order": "0F0,0F1,0B0,…\n1F0,1B0,…\n", "predicted": {…},
 *      "stages": [{"first_device": 0, "mesh": "rows:2", "layout": {…}, "program_sha256": "…", …},
 *                 …], "transfers": {…}}
 *
 * The parts of the graph follow from it (layouts/graph/stage_split.h) and are not in the file. */
#ifndef MTF_PIPELINE_PLAN_H
#define MTF_PIPELINE_PLAN_H

#include "layouts/graph/stage_split.h"
#include "layouts/pipeline/pipeline_order.h"
#include "layouts/plan_file/plan.h"

/* Stages of one domain. */
#define MTF_MAX_CHUNKS 64

/* Owns all its parts. */
typedef struct {
    MtfGraph *training;   /* what the file has; NULL: graph */
    MtfGraph *graph;      /* the executed graph of all stages that it makes (executed_graph.h) */
    MtfDivision division; /* of all stages; what each keeps its plan says */
    MtfStageSplit *split;
    char *schedule; /* the name the order was made by; NULL: there is nothing to schedule */
    MtfPipelineOrder *order;
    GPtrArray *stages; /* MtfPlan: one a stage, of its part of the graph */
    cJSON *predicted;
} MtfPipelinePlan;

/* A pipeline without plans of its stages yet, of a graph in which every operation has a stage and an
 * order of its passes (both taken over). Fails (bad input) as mtf_stage_split does, without
 * micro-batches, where graph and order do not go together, and where the order holds messages or does
 * not begin with micro-batch 0. */
MtfPipelinePlan *mtf_pipeline_plan_new(MtfGraph *graph, const char *schedule,
                                       MtfPipelineOrder *order, GError **error);

/* The pipeline of one stage that runs a plan without stages, which it takes over: each micro-batch once
 * through the program, both passes as one,
 *
 *     (0F0;0B0)OVERLAP_F_B (0F1;0B1)OVERLAP_F_B …
 *
 * so that who executes plans knows pipelines only. */
MtfPipelinePlan *mtf_pipeline_plan_whole(MtfPlan *plan);
bool mtf_pipeline_is_whole(const MtfPipelinePlan *pipeline);

/* The graph of a stage, as its plan holds it; the pipeline owns it. */
const MtfGraph *mtf_pipeline_stage_graph(const MtfPipelinePlan *pipeline, int stage);

/* How many slots a stage has for micro-batches, and which each has: slots[microbatch] (pipeline_slots.h). */
int mtf_pipeline_stage_slots(const MtfPipelinePlan *pipeline, int stage, int *slots);

/* Whether steps begin before those before them have ended: of asynchronous schedules. */
bool mtf_pipeline_steps_overlap(const MtfPipelinePlan *pipeline);

/* How many steps a rank may be ahead of what all ranks know to be done: 0 where steps do not overlap or where
 * anything travels once a step (sums for clipping), which all wait for; else as many as the weights of the
 * first stage lag, which no rank need wait for. */
int mtf_pipeline_steps_ahead(const MtfPipelinePlan *pipeline);

/* What the schedule and the order of passes ask of a stage. */
MtfStageExecution mtf_pipeline_stage_execution(const MtfPipelinePlan *pipeline, int stage);

/* Appends the plan of the next stage; takes it over. Fails (bad input) where stages of one domain
 * are of different sizes. */
bool mtf_pipeline_plan_add(MtfPipelinePlan *pipeline, MtfPlan *plan, GError **error);

/* The plan of a stage; the pipeline owns it. */
MtfPlan *mtf_pipeline_stage(const MtfPipelinePlan *pipeline, int stage);

/* The first device of a domain. */
int mtf_pipeline_first_device(const MtfPipelinePlan *pipeline, int domain);

/* "device 3", "devices 1 to 7, one each" or "devices 0 to 7, mesh all:8", where they are those of several
 * stages "mesh all:4 each"; free with g_free. */
char *mtf_pipeline_place_format(int first, int last, const MtfMesh *mesh);

/* Devices of all domains. */
int mtf_pipeline_devices(const MtfPipelinePlan *pipeline);

/* As its stages predict: bytes that a device of the fullest domain needs; and of the tensors that stages hand
 * each other in a step. */
double mtf_pipeline_peak_bytes(const MtfPipelinePlan *pipeline);
double mtf_pipeline_sent_bytes(const MtfPipelinePlan *pipeline);

/* Whether the file is the plan of a pipeline; false where it cannot be read. */
bool mtf_pipeline_plan_is(const char *path);

/* Reads, checks and writes whole pipeline plans; the caller frees what is read. Bad input fails
 * with one sentence. */
MtfPipelinePlan *mtf_pipeline_plan_from_json(const MtfJson *root, GError **error);
MtfPipelinePlan *mtf_pipeline_plan_load(const char *path, GError **error);

/* The same of a plan with or without stages: the latter becomes a pipeline of one (mtf_pipeline_plan_whole). */
MtfPipelinePlan *mtf_pipeline_plan_load_any(const char *path, GError **error);
bool mtf_pipeline_plan_save(const MtfPipelinePlan *pipeline, const char *path, GError **error);

/* The digest of all stages' programs, of the order and of how transfers go; free with g_free. */
char *mtf_pipeline_plan_digest(const MtfPipelinePlan *pipeline);

void mtf_pipeline_plan_free(MtfPipelinePlan *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelinePlan, mtf_pipeline_plan_free)

#endif
