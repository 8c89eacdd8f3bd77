// SPDX-License-Identifier: GPL-3.0-or-later
/* A phase of inference in pipeline stages: a model that is cut as for training, each stage with the caches
 * of its layers on devices of its own, its layout searched like that of a whole model.
 *
 *     stage 0, devices 0 to 3   batch 0 | batch 1 | batch 2 |
 *     stage 1, devices 4 to 7           | batch 0 | batch 1 | batch 2
 *
 *     step     sum of the stages and of what goes from one to the next: when a batch's tokens are there
 *     slowest  the longest of them: the interval at which batches come out when as many are under way as
 *              there are stages */
#ifndef MTF_INFERENCE_STAGES_H
#define MTF_INFERENCE_STAGES_H

#include "analyzer/serving/inference_plan.h"
#include "layouts/plan_file/pipeline_plan.h"

typedef struct {
    MtfPipelinePlan *plan;     /* NULL: a stage fits no layout */
    MtfInferencePhase *phases; /* of each stage, whose plans the pipeline has */
    double *transfer_seconds;  /* of each stage to the next */
    int stages, unfit;         /* the stage that does not fit */
    double step_seconds, slowest_seconds;
    int64_t max_context;               /* of the stage with the shortest */
    int64_t weight_bytes, cache_bytes; /* of the device with most */
} MtfInferencePipeline;

/* Searches every stage of a phase's graph (mtf_inference_graph of a cut one, taken over) on the meshes
 * (MtfMesh), all of one size; or, where `leader` is not NULL, lays each out as that pipeline of the other
 * phase has it (mtf_inference_follow). True with or without a plan. Clear the pipeline in either case. */
bool mtf_inference_pipeline_search(MtfGraph *graph, const GArray *meshes,
                                   const MtfInferencePipeline *leader,
                                   const MtfPlanSearchOptions *options, int64_t cache_limit,
                                   MtfInferencePipeline *pipeline, GError **error);
void mtf_inference_pipeline_clear(MtfInferencePipeline *pipeline);

/* Seconds of a step when caches hold `context` tokens an example. */
double mtf_inference_pipeline_seconds_at(const MtfInferencePipeline *pipeline, int64_t context);

#endif
