// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/pipelines/export_pipeline.h"

#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "layouts/pipeline/pipeline_text.h"
#include "reports/exports/pipelines/pipeline_forms.h"

#include <string.h>

static char *write_order(const MtfPipelinePlan *pipeline, GError **error) {
    (void)error;
    return mtf_pipeline_format(pipeline->order);
}

static const struct {
    const char *name, *framework;
    char *(*write)(const MtfPipelinePlan *, GError **);
} forms[] = {
    { "torch-pipelining", "torch.distributed.pipelining", write_order },
    { "megatron", "Megatron-LM", mtf_export_pipeline_megatron },
    { "deepspeed", "DeepSpeed", mtf_export_pipeline_deepspeed },
    { "alpa", "Alpa", mtf_export_pipeline_alpa },
};

char *mtf_export_pipeline(const MtfPipelinePlan *pipeline, const char *form, GError **error) {
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (strcmp(forms[i].name, form) != 0)
            continue;
        if (!mtf_pipeline_is_asynchronous(pipeline->schedule))
            return forms[i].write(pipeline, error);
        mtf_input_error(error, "%s runs every step alone, and steps of %s overlap",
                        forms[i].framework, pipeline->schedule);
        return NULL;
    }
    mtf_input_error(error,
                    "the plan of a pipeline cannot be exported to \"%s\", only to "
                    "torch-pipelining, megatron, deepspeed, alpa or onnx",
                    form);
    return NULL;
}
