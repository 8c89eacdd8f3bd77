// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/export_pipeline.h"

#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "layouts/pipeline/pipeline_text.h"

#include <string.h>

char *mtf_export_pipeline(const MtfPipelinePlan *pipeline, const char *form, GError **error) {
    if (strcmp(form, "torch-pipelining") != 0) {
        mtf_input_error(error,
                        "the plan of a pipeline cannot be exported to \"%s\", only to "
                        "torch-pipelining",
                        form);
        return NULL;
    }
    if (mtf_pipeline_is_asynchronous(pipeline->schedule)) {
        mtf_input_error(
            error, "torch.distributed.pipelining runs every step alone, and steps of %s overlap",
            pipeline->schedule);
        return NULL;
    }
    return mtf_pipeline_format(pipeline->order);
}
