// SPDX-License-Identifier: GPL-3.0-or-later
/* A model that generates as a pipeline of forward passes, from the pipeline that trains it: every
 * operation stays in its stage, so that a stage keeps the caches of its layers.
 *
 *     trained       stage 0  0F0 0F1 0B0 …       generates    stage 0  0F0       caches of layers 0, 1
 *                   stage 1  1F0 1B0 1F1 …                    stage 1  1F0       caches of layers 2, 3
 *
 * What goes from stage to stage is what the new graph has there: the tokens at hand of one tensor, and
 * positions that several stages count from. A model without stages is a pipeline of one, so that who
 * executes them knows pipelines only. */
#ifndef MTF_GENERATION_STAGES_H
#define MTF_GENERATION_STAGES_H

#include "layouts/inference/generation_graph.h"
#include "layouts/plan_file/pipeline_plan.h"

/* The pipeline that generates with the stages, domains and layouts of `trained`. Stages at the end of
 * which only the loss needs anything are left out. Fails (bad input) as mtf_generation_graph does, and
 * where a stage would lack a variable. Free with mtf_pipeline_plan_free. */
MtfPipelinePlan *mtf_generation_pipeline(const MtfPipelinePlan *trained,
                                         const MtfGenerationSizes *sizes, GError **error);

/* Gives a graph that was made from `trained` by mtf_generation_graph the stages of that. */
void mtf_generation_give_stages(MtfGraph *graph, const MtfGraph *trained);

/* A pipeline of forward passes, each stage on a domain of its own, without plans of its stages yet. Takes the
 * graph over, whose operations have a stage. Fails (bad input) as mtf_stage_split does. */
MtfPipelinePlan *mtf_generation_pipeline_new(MtfGraph *graph, GError **error);

/* A graph that generates in one piece; it and its layout are copied. */
MtfPipelinePlan *mtf_generation_whole(const MtfGraph *graph, const MtfLayout *layout);

/* The same with another number of tokens that an example brings. */
MtfPipelinePlan *mtf_generation_pipeline_at(const MtfPipelinePlan *pipeline, int64_t length);

#endif
