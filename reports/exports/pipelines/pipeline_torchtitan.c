// SPDX-License-Identifier: GPL-3.0-or-later
/* torchtitan's flags of a pipeline: those of its stages, and the schedule by its name in
 * torch.distributed.pipelining. Stages have as many layers each. */
#include "layouts/base/error.h"
#include "reports/exports/frameworks/torchtitan_flags.h"
#include "reports/exports/pipelines/framework_pipeline.h"
#include "reports/exports/pipelines/pipeline_forms.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name, *torch;
} schedules[] = {
    { "gpipe", "GPipe" },
    { "1f1b", "1F1B" },
    { "interleaved", "Interleaved1F1B" },
    { "zb-v", "ZBVZeroBubble" },
    { "dualpipe-v", "DualPipeV" },
};

static const char *schedule_of(const MtfPipelinePlan *pipeline, GError **error) {
    for (gsize i = 0; i < G_N_ELEMENTS(schedules); i++)
        if (strcmp(schedules[i].name, pipeline->schedule) == 0)
            return schedules[i].torch;
    mtf_input_error(
        error,
        "torchtitan names gpipe, 1f1b, interleaved, zb-v and dualpipe-v, and the plan's "
        "schedule is %s: search --schedule with one of these, or give it the order "
        "that --to torch-pipelining writes (pipeline_parallel_schedule_csv)",
        pipeline->schedule);
    return NULL;
}

char *mtf_export_pipeline_torchtitan(const MtfPipelinePlan *pipeline, GError **error) {
    MtfFrameworkPlan each;
    const char *schedule = schedule_of(pipeline, error);
    if (schedule == NULL)
        return NULL;
    g_autoptr(MtfFrameworkPipeline) p = mtf_framework_pipeline_new(pipeline, "torchtitan", error);
    if (p == NULL || !mtf_framework_pipeline_even(p, "torchtitan's flags divide", error) ||
        !mtf_framework_pipeline_each(p, "torchtitan", &each, error))
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text,
                           "--parallelism.pipeline_parallel_degree %d\n"
                           "--parallelism.pipeline_parallel_schedule %s\n"
                           "--parallelism.pipeline_parallel_layers_per_stage %d\n"
                           "--parallelism.pipeline_parallel_first_stage_less_layers 0\n"
                           "--parallelism.pipeline_parallel_last_stage_less_layers 0\n"
                           "--parallelism.pipeline_parallel_microbatch_size %" PRId64 "\n",
                           p->n_domains, schedule, p->stages[0].layers, each.micro_batch);
    int64_t local = each.micro_batch * pipeline->order->microbatches;
    return mtf_torchtitan_append(text, mtf_pipeline_stage(pipeline, 0), &each, local, error)
               ? g_strdup(text->str)
               : NULL;
}
