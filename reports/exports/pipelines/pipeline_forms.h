// SPDX-License-Identifier: GPL-3.0-or-later
/* The forms of export_pipeline.h, each in a file of its own. Each returns the whole text, to be freed by
 * g_free. */
#ifndef MTF_PIPELINE_FORMS_H
#define MTF_PIPELINE_FORMS_H

#include "layouts/plan_file/pipeline_plan.h"

/* The pipeline in a framework's words, to be freed with g_free. Fails with a sentence where the
 * framework cannot say it. */
char *mtf_export_pipeline_megatron(const MtfPipelinePlan *pipeline, GError **error);
char *mtf_export_pipeline_deepspeed(const MtfPipelinePlan *pipeline, GError **error);
char *mtf_export_pipeline_torchtitan(const MtfPipelinePlan *pipeline, GError **error);
char *mtf_export_pipeline_alpa(const MtfPipelinePlan *pipeline, GError **error);

#endif
