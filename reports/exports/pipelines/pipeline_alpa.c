// SPDX-License-Identifier: GPL-3.0-or-later
/* A Python module with the plan as Alpa's PipeshardParallel takes stages that are set by hand: layers, the
 * hosts and devices of each stage's mesh, and that mesh as data x tensor parallelism. What of a stage is
 * sharded how is found by Alpa itself, along these axes. */
#include "cost/machine/machine.h"
#include "layouts/base/error.h"
#include "reports/exports/pipelines/framework_pipeline.h"
#include "reports/exports/pipelines/pipeline_forms.h"

#include <inttypes.h>
#include <string.h>

static bool check_schedule(const MtfPipelinePlan *pipeline, const MtfFrameworkPipeline *p,
                           GError **error) {
    bool known =
        strcmp(pipeline->schedule, "1f1b") == 0 || strcmp(pipeline->schedule, "gpipe") == 0;
    if (!known || p->chunks > 1)
        return mtf_input_error(error,
                               "Alpa runs 1f1b or gpipe with a stage a mesh, and the plan's "
                               "schedule is %s: search --schedule 1f1b",
                               pipeline->schedule);
    for (int s = 0; s < p->n_stages; s++)
        if (p->stages[s].layers == 0)
            return mtf_input_error(
                error, "Alpa's stages have layers, and stage %d of the plan has none", s);
    return true;
}

static bool check_recomputation(const MtfFrameworkPipeline *p, bool *again, GError **error) {
    *again = p->stages[0].recomputed > 0;
    for (int s = 0; s < p->n_stages; s++) {
        const MtfFrameworkStage *stage = &p->stages[s];
        if (stage->selective || (stage->recomputed != 0 && stage->recomputed != stage->layers) ||
            *again != (stage->recomputed > 0))
            return mtf_input_error(error,
                                   "Alpa computes all layers again or none; stage %d stands in the "
                                   "way (search --recompute none or layers)",
                                   s);
    }
    return true;
}

/* Devices of a host: the innermost switch's; on a torus each is a host. */
static int64_t devices_of_host(const MtfPlan *plan) {
    MtfJson where = { .node = plan->machine, .index = -1 };
    g_autoptr(MtfMachine) machine =
        plan->machine != NULL ? mtf_machine_from_json(&where, NULL) : NULL;
    if (machine == NULL || !machine->network.switched || machine->network.axes == 0)
        return G_MAXINT;
    int64_t size = machine->network.axis[machine->network.axes - 1].size;
    return size > 0 ? size : G_MAXINT;
}

/* "[[0, 1], [2, 3]]" */
static void append_layers(GString *text, const MtfFrameworkPipeline *p) {
    int layer = 0;
    for (int s = 0; s < p->n_stages; s++) {
        g_string_append(text, s > 0 ? "], [" : "[[");
        for (int i = 0; i < p->stages[s].layers; i++, layer++)
            g_string_append_printf(text, "%s%d", i > 0 ? ", " : "", layer);
    }
    g_string_append(text, "]]");
}

/* A pair a stage: hosts and devices of each, or degrees of data and tensor parallelism. */
static void append_meshes(GString *text, const MtfPipelinePlan *pipeline,
                          const MtfFrameworkPipeline *p, bool physical) {
    for (int s = 0; s < p->n_stages; s++) {
        const int *degree = p->stages[s].plan.parallelism.degree;
        int devices = mtf_mesh_size(&mtf_pipeline_stage(pipeline, s)->layout->mesh);
        int64_t host = MIN(devices_of_host(mtf_pipeline_stage(pipeline, s)), devices);
        g_string_append_printf(text, "%s(%" PRId64 ", %" PRId64 ")", s > 0 ? ", " : "[",
                               physical ? devices / host : degree[MTF_PARALLEL_DATA],
                               physical ? host : degree[MTF_PARALLEL_TENSOR]);
    }
    g_string_append_c(text, ']');
}

static void append_options(GString *text, const MtfFrameworkPipeline *p) {
    for (int s = 0; s < p->n_stages; s++)
        g_string_append_printf(text, "%s%s", s > 0 ? ", " : "[",
                               p->stages[s].plan.parallelism.degree[MTF_PARALLEL_DATA] > 1
                                   ? "{\"force_batch_dim_to_mesh_dim\": 0}"
                                   : "{}");
    g_string_append_c(text, ']');
}

static char *write_module(const MtfPipelinePlan *pipeline, const MtfFrameworkPipeline *p,
                          bool again) {
    GString *text = g_string_new("# Written by meshtf-plan: the plan's stages for Alpa.\n"
                                 "import alpa\n\n");
    g_string_append_printf(text,
                           "METHOD = alpa.PipeshardParallel(\n"
                           "    num_micro_batches=%d,\n"
                           "    pipeline_schedule=\"%s\",\n"
                           "    layer_option=alpa.AutoLayerOption(layer_num=%d%s),\n"
                           "    stage_option=alpa.ManualStageOption(\n"
                           "        forward_stage_layer_ids=",
                           pipeline->order->microbatches, pipeline->schedule, p->layers,
                           again ? ", remat_mode=\"coarse_grained_remat\"" : "");
    append_layers(text, p);
    g_string_append(text, ",\n        submesh_physical_shapes=");
    append_meshes(text, pipeline, p, true);
    g_string_append(text, ",\n        submesh_logical_shapes=");
    append_meshes(text, pipeline, p, false);
    g_string_append(text, ",\n        submesh_autosharding_option_dicts=");
    append_options(text, p);
    g_string_append_printf(
        text,
        "),\n    default_auto_sharding_option=alpa.AutoShardingOption(prefer_reduce_scatter=%s))\n",
        p->stages[0].plan.parallelism.zero > 0 ? "True" : "False");
    return g_string_free(text, FALSE);
}

char *mtf_export_pipeline_alpa(const MtfPipelinePlan *pipeline, GError **error) {
    bool again;
    g_autoptr(MtfFrameworkPipeline) p = mtf_framework_pipeline_new(pipeline, "Alpa", error);
    return p != NULL && check_schedule(pipeline, p, error) && check_recomputation(p, &again, error)
               ? write_module(pipeline, p, again)
               : NULL;
}
