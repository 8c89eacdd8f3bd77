// SPDX-License-Identifier: GPL-3.0-or-later
/* torchtitan's flags, one a line: ./run_train.sh $(cat FLAGS). ZeRO-3 is its FSDP that gathers weights again for
 * the backward pass, ZeRO-1 and 2 are those that keep them until then; replicated weights are its DDP. */
#include "layouts/base/error.h"
#include "reports/exports/frameworks/torchtitan_flags.h"

#include <inttypes.h>
#include <string.h>

/* Why torchtitan runs no such plan, or NULL. */
static const char *obstacle(const MtfFrameworkPlan *p) {
    const MtfParallelism *parallel = &p->parallelism;
    bool tensor = parallel->degree[MTF_PARALLEL_TENSOR] > 1;
    if (tensor && !parallel->sequence_parallel)
        return "splits activations by positions between tensor parallel products, which this plan "
               "does not";
    if (tensor && parallel->degree[MTF_PARALLEL_DATA] > 1 && parallel->zero == 0)
        return "shards weights or the optimizer (FSDP) beside tensor parallelism, and this plan "
               "replicates both";
    if (p->recomputed_layers > 0)
        return "has no setting for recomputing the first layers alone (search --recompute none, "
               "cheap or layers)";
    return p->offloads ? "has no setting for what waits with the host (search --offload none)"
                       : NULL;
}

bool mtf_torchtitan_append(GString *text, const MtfPlan *plan, const MtfFrameworkPlan *p,
                           int64_t local, GError **error) {
    static const char *const modes[] = { "none", "selective", "full" };
    const MtfParallelism *parallel = &p->parallelism;
    const char *why = obstacle(p);
    if (why != NULL)
        return mtf_input_error(error, "torchtitan %s", why);
    int data = parallel->degree[MTF_PARALLEL_DATA];
    bool shards = parallel->zero > 0;
    g_string_append_printf(text,
                           "--parallelism.data_parallel_replicate_degree %d\n"
                           "--parallelism.data_parallel_shard_degree %d\n"
                           "--parallelism.tensor_parallel_degree %d\n",
                           shards ? 1 : data, shards ? data : 1,
                           parallel->degree[MTF_PARALLEL_TENSOR]);
    if (shards)
        g_string_append_printf(text, "--parallelism.fsdp_reshard_after_forward %s\n",
                               parallel->zero == 3 ? "always" : "never");
    int length = mtf_graph_find_dimension(plan->graph, "length");
    if (length >= 0)
        g_string_append_printf(text, "--training.seq_len %" PRId64 "\n",
                               mtf_graph_size(plan->graph, length));
    g_string_append_printf(text,
                           "--training.local_batch_size %" PRId64 "\n"
                           "--training.global_batch_size %" PRId64 "\n"
                           "--training.mixed_precision_param %s\n"
                           "--activation_checkpoint.mode %s\n",
                           local, p->batch,
                           strcmp(plan->precision, "bf16") == 0 ? "bfloat16" : "float32",
                           modes[p->recomputes]);
    if (p->recomputes == MTF_RECOMPUTE_CHEAP)
        g_string_append(text, "--activation_checkpoint.selective_ac_option op\n");
    return true;
}

char *mtf_export_torchtitan(const MtfStepFacts *facts, GError **error) {
    const MtfPlan *plan = facts->plan;
    MtfFrameworkPlan p;
    if (!mtf_framework_check_text(plan, "torchtitan", error) ||
        !mtf_framework_plan(plan, "torchtitan", &p, error))
        return NULL;
    if (p.parallelism.zero == 1 && plan->layout->execution.division.microbatches > 1) {
        mtf_input_error(error,
                        "torchtitan shards gradients with the optimizer, and this plan keeps "
                        "whole ones from micro-batch to micro-batch (ZeRO-1)");
        return NULL;
    }
    g_autoptr(GString) text = g_string_new(NULL);
    return mtf_torchtitan_append(text, plan, &p, p.micro_batch, error) ? g_strdup(text->str) : NULL;
}
