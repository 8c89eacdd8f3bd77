// SPDX-License-Identifier: GPL-3.0-or-later
/* DeepSpeed's configuration of a pipeline: that of a plan without stages, and the section "pipeline", which
 * deepspeed.initialize gives to the engine of a PipelineModule. DeepSpeed runs 1F1B; it divides layers
 * evenly ("partition": "type:layer" counts modules by their class). */
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "reports/exports/frameworks/deepspeed_config.h"
#include "reports/exports/pipelines/framework_pipeline.h"
#include "reports/exports/pipelines/pipeline_forms.h"

#include <string.h>

static bool check_each(const MtfPipelinePlan *pipeline, const MtfFrameworkPlan *each,
                       GError **error) {
    if (strcmp(pipeline->schedule, "1f1b") != 0)
        return mtf_input_error(error,
                               "DeepSpeed's pipelines run 1f1b, and the plan's schedule is %s: "
                               "search --schedule 1f1b",
                               pipeline->schedule);
    if (each->parallelism.degree[MTF_PARALLEL_TENSOR] > 1)
        return mtf_input_error(error,
                               "tensor parallelism inside DeepSpeed's pipelines is the model's own "
                               "code, and every stage of the plan is tensor parallel %d",
                               each->parallelism.degree[MTF_PARALLEL_TENSOR]);
    if (each->parallelism.zero > 1)
        return mtf_input_error(error,
                               "DeepSpeed's pipelines go with ZeRO-1 at most, and stage 0 of the "
                               "plan is sharded as in ZeRO-%d",
                               each->parallelism.zero);
    return each->recomputes == MTF_RECOMPUTE_NONE ||
           (each->recomputes == MTF_RECOMPUTE_LAYERS && each->recomputed_layers == 0) ||
           mtf_input_error(error, "DeepSpeed's pipelines compute all layers again or none "
                                  "(search --recompute none or layers)");
}

char *mtf_export_pipeline_deepspeed(const MtfPipelinePlan *pipeline, GError **error) {
    MtfFrameworkPlan each;
    g_autoptr(MtfFrameworkPipeline) p = mtf_framework_pipeline_new(pipeline, "DeepSpeed", error);
    if (p == NULL || !mtf_framework_pipeline_even(p, "DeepSpeed divides", error) ||
        !mtf_framework_pipeline_each(p, "DeepSpeed", &each, error) ||
        !check_each(pipeline, &each, error))
        return NULL;
    bool again = each.recomputes == MTF_RECOMPUTE_LAYERS;
    each.recomputes = MTF_RECOMPUTE_NONE; /* said by the pipeline's own section */
    cJSON *config = mtf_deepspeed_config(pipeline->graph, mtf_pipeline_stage(pipeline, 0), &each);
    cJSON *section = cJSON_AddObjectToObject(config, "pipeline");
    mtf_json_add_integer(section, "stages", p->n_stages);
    cJSON_AddStringToObject(section, "partition", "type:layer");
    mtf_json_add_integer(section, "activation_checkpoint_interval", again ? 1 : 0);
    char *text = mtf_json_print(config);
    cJSON_Delete(config);
    return text;
}
