// SPDX-License-Identifier: GPL-3.0-or-later
/* Megatron-LM's flags of a pipeline that runs 1F1B, or interleaved 1F1B over several chunks a rank. Stages of
 * as many layers each follow from the number of stages; others are said by the layout of Megatron-Core
 * (docs/user-guide/features/pipeline_parallel_layout): E embedding, t a layer, L loss, | between stages:
 *
 *     layers 1 3 3 1, two ranks of two chunks      --pipeline-model-parallel-layout "Et|t*3|t*3|tL" */
#include "layouts/base/error.h"
#include "reports/exports/frameworks/megatron_flags.h"
#include "reports/exports/pipelines/framework_pipeline.h"
#include "reports/exports/pipelines/pipeline_forms.h"

#include <inttypes.h>
#include <string.h>

static bool check_schedule(const MtfPipelinePlan *pipeline, const MtfFrameworkPipeline *p,
                           GError **error) {
    int m = pipeline->order->microbatches;
    if (strcmp(pipeline->schedule, "1f1b") != 0 && strcmp(pipeline->schedule, "interleaved") != 0)
        return mtf_input_error(error,
                               "Megatron-LM runs 1f1b or interleaved, and the plan's schedule is "
                               "%s: search --schedule 1f1b|interleaved",
                               pipeline->schedule);
    return p->chunks == 1 || m % p->n_domains == 0 ||
           mtf_input_error(error,
                           "Megatron-LM's interleaved schedule wants a multiple of %d "
                           "micro-batches, as many as there are ranks of the pipeline, not %d",
                           p->n_domains, m);
}

static void append_layout(GString *text, const MtfFrameworkPipeline *p) {
    g_string_append(text, " --pipeline-model-parallel-layout \"E");
    for (int s = 0; s < p->n_stages; s++) {
        int layers = p->stages[s].layers;
        g_string_append(text, s > 0 ? "|" : "");
        if (layers > 1)
            g_string_append_printf(text, "t*%d", layers);
        else
            g_string_append(text, layers == 1 ? "t" : "");
    }
    g_string_append(text, "L\"");
}

char *mtf_export_pipeline_megatron(const MtfPipelinePlan *pipeline, GError **error) {
    MtfFrameworkPlan each;
    g_autoptr(MtfFrameworkPipeline) p = mtf_framework_pipeline_new(pipeline, "Megatron-LM", error);
    if (p == NULL || !check_schedule(pipeline, p, error) ||
        !mtf_framework_pipeline_each(p, "Megatron-LM", &each, error))
        return NULL;
    if (each.parallelism.zero > 1) {
        mtf_input_error(error,
                        "Megatron-LM distributes the optimizer of a pipeline (ZeRO-1), and "
                        "stage 0 of the plan is sharded as in ZeRO-%d",
                        each.parallelism.zero);
        return NULL;
    }
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "--tensor-model-parallel-size %d --pipeline-model-parallel-size %d",
                           each.parallelism.degree[MTF_PARALLEL_TENSOR], p->n_domains);
    if (!p->equal)
        append_layout(text, p);
    else if (p->chunks > 1)
        g_string_append_printf(text, " --num-layers-per-virtual-pipeline-stage %d",
                               p->stages[0].layers);
    g_string_append_printf(text, " --micro-batch-size %" PRId64 " --global-batch-size %" PRId64,
                           each.micro_batch, each.batch);
    mtf_megatron_append_execution(text, mtf_pipeline_stage(pipeline, 0), &each);
    g_string_append_c(text, '\n');
    return g_string_free(text, FALSE);
}
