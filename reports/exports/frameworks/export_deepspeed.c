// SPDX-License-Identifier: GPL-3.0-or-later
/* DeepSpeed's configuration: batches, precision, ZeRO stage, clipping, and AutoTP's degree, for plans of
 * data and tensor parallelism with replicated weights or ZeRO. What of the forward pass is recomputed is the
 * model's own code there; the section says that it is to be. */
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/operation_table.h"
#include "reports/exports/frameworks/deepspeed_config.h"

#include <string.h>

static void add_switch(cJSON *config, const char *section, bool on) {
    cJSON *object = cJSON_AddObjectToObject(config, section);
    cJSON_AddBoolToObject(object, "enabled", on);
}

/* The norm that gradients are clipped to; 0: they are not. */
static double clip_norm(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->shown == MTF_SHOWN_CLIP_FACTOR)
            return op->attributes.limit;
    }
    return 0;
}

cJSON *mtf_deepspeed_config(const MtfGraph *graph, const MtfPlan *plan, const MtfFrameworkPlan *p) {
    cJSON *config = cJSON_CreateObject();
    mtf_json_add_integer(config, "train_batch_size", p->batch);
    mtf_json_add_integer(config, "train_micro_batch_size_per_gpu", p->micro_batch);
    mtf_json_add_integer(config, "gradient_accumulation_steps",
                         plan->layout->execution.division.microbatches);
    add_switch(config, "bf16", strcmp(plan->precision, "bf16") == 0);
    cJSON *zero = cJSON_AddObjectToObject(config, "zero_optimization");
    mtf_json_add_integer(zero, "stage", p->parallelism.zero);
    if (clip_norm(graph) > 0)
        mtf_json_add_number(config, "gradient_clipping", clip_norm(graph));
    if (p->parallelism.degree[MTF_PARALLEL_TENSOR] > 1) {
        cJSON *tensor = cJSON_AddObjectToObject(config, "tensor_parallel");
        mtf_json_add_integer(tensor, "autotp_size", p->parallelism.degree[MTF_PARALLEL_TENSOR]);
    }
    if (p->recomputes != MTF_RECOMPUTE_NONE) {
        cJSON *section = cJSON_AddObjectToObject(config, "activation_checkpointing");
        cJSON_AddBoolToObject(section, "partition_activations", p->offloads);
        if (p->offloads)
            cJSON_AddBoolToObject(section, "cpu_checkpointing", true);
        if (p->recomputed_layers > 0)
            mtf_json_add_integer(section, "number_checkpoints", p->recomputed_layers);
    }
    return config;
}

char *mtf_export_deepspeed(const MtfStepFacts *facts, GError **error) {
    MtfFrameworkPlan p;
    if (!mtf_framework_plan(facts->plan, "DeepSpeed", &p, error))
        return NULL;
    if (p.offloads && p.parallelism.degree[MTF_PARALLEL_TENSOR] > 1) {
        mtf_input_error(error,
                        "DeepSpeed splits what waits with the host among tensor parallel ranks, "
                        "which this plan does not (search --offload none)");
        return NULL;
    }
    if (p.recomputes == MTF_RECOMPUTE_CHEAP || p.parallelism.sequence_parallel) {
        mtf_input_error(error, "DeepSpeed's configuration has no word for %s",
                        p.recomputes == MTF_RECOMPUTE_CHEAP
                            ? "recomputing cheap results alone (search --recompute none or layers)"
                            : "activations split by positions between tensor parallel products");
        return NULL;
    }
    cJSON *config = mtf_deepspeed_config(facts->plan->graph, facts->plan, &p);
    char *text = mtf_json_print(config);
    cJSON_Delete(config);
    return text;
}
