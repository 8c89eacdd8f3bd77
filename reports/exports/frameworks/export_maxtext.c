// SPDX-License-Identifier: GPL-3.0-or-later
/* MaxText's settings, one a line, as its command line takes them: how many ways each kind of parallelism
 * splits inside a slice, batch a device, micro-batches, types and what is recomputed. ZeRO-3 is its
 * fsdp, ZeRO-1 its optimizer sharded over data. */
#include "layouts/base/error.h"
#include "reports/exports/frameworks/framework_plan.h"

#include <string.h>

static void append_axes(GString *text, const MtfParallelism *p) {
    int data = p->degree[MTF_PARALLEL_DATA], tensor = p->degree[MTF_PARALLEL_TENSOR];
    g_string_append_printf(text, "ici_data_parallelism=%d\nici_fsdp_parallelism=%d\n",
                           p->zero == 3 ? 1 : data, p->zero == 3 ? data : 1);
    g_string_append_printf(text, "ici_tensor_parallelism=%d\nici_tensor_sequence_parallelism=%d\n",
                           p->sequence_parallel ? 1 : tensor, p->sequence_parallel ? tensor : 1);
    if (p->zero == 1)
        g_string_append(text, "shard_optimizer_over_data=true\n");
}

char *mtf_export_maxtext(const MtfStepFacts *facts, GError **error) {
    static const char *const policies[] = { "none", "minimal", "full" };
    bool bf16 = strcmp(facts->plan->precision, "bf16") == 0;
    MtfFrameworkPlan p;
    if (!mtf_framework_check_text(facts->plan, "MaxText", error) ||
        !mtf_framework_plan(facts->plan, "MaxText", &p, error))
        return NULL;
    if (p.recomputed_layers > 0 || p.parallelism.zero == 2) {
        mtf_input_error(error, "MaxText has no setting for %s",
                        p.recomputed_layers > 0
                            ? "recomputing some layers alone (search --recompute none or layers)"
                            : "gradients sharded beside replicated weights (ZeRO-2)");
        return NULL;
    }
    GString *text = g_string_new(NULL);
    append_axes(text, &p.parallelism);
    /* The batch of one accumulation, spread over all devices, those of tensor parallelism, too. */
    g_string_append_printf(text, "per_device_batch_size=%.10g\ngradient_accumulation_steps=%d\n",
                           (double)p.micro_batch / p.parallelism.degree[MTF_PARALLEL_TENSOR],
                           facts->plan->layout->execution.division.microbatches);
    g_string_append_printf(
        text, "dtype=%s\nweight_dtype=float32\nremat_policy=%s\n", bf16 ? "bfloat16" : "float32",
        p.offloads ? "custom\ndecoder_layer_input=offload" : policies[p.recomputes]);
    return g_string_free(text, FALSE);
}
