// SPDX-License-Identifier: GPL-3.0-or-later
/* What training frameworks ask of a pipeline: stages cut between the layers of one chain, each a plan of a
 * framework's kind (framework_plan.h).
 *
 *     stage      0            1            2            3
 *     domain     0            1            0            1         2 domains x 2 chunks
 *     layers     0 1          2 3          4 5          6 7       beside them the embedding, the loss */
#ifndef MTF_FRAMEWORK_PIPELINE_H
#define MTF_FRAMEWORK_PIPELINE_H

#include "layouts/plan_file/pipeline_plan.h"
#include "reports/exports/frameworks/framework_plan.h"

typedef struct {
    int layers, recomputed; /* layers, and those of them that are recomputed */
    bool selective;         /* some results are recomputed that take no products */
    MtfFrameworkPlan plan;
} MtfFrameworkStage;

typedef struct {
    int n_stages, n_domains, chunks; /* stages = domains x chunks */
    int layers;                      /* of all stages */
    bool equal;                      /* as many layers in every stage */
    MtfFrameworkStage *stages;       /* [n_stages] */
} MtfFrameworkPipeline;

/* Fails where no framework says such a pipeline, with the stage and the layer or axis that stand in the
 * way. */
MtfFrameworkPipeline *mtf_framework_pipeline_new(const MtfPipelinePlan *pipeline,
                                                 const char *framework, GError **error);
void mtf_framework_pipeline_free(MtfFrameworkPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfFrameworkPipeline, mtf_framework_pipeline_free)

/* Fails, with the first stage that is run in another way than the first one, where all are to be run alike:
 * degrees of parallelism, ZeRO, what is recomputed. `*each` becomes that way; it recomputes that number of
 * layers of each stage, 0: all. */
bool mtf_framework_pipeline_each(const MtfFrameworkPipeline *pipeline, const char *framework,
                                 MtfFrameworkPlan *each, GError **error);

/* Fails where a stage has not as many layers as the first; `who` divides layers evenly, "DeepSpeed
 * divides". */
bool mtf_framework_pipeline_even(const MtfFrameworkPipeline *pipeline, const char *who,
                                 GError **error);

#endif
