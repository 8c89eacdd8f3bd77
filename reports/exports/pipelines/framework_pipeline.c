// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/pipelines/framework_pipeline.h"

#include "layouts/base/error.h"

#include <string.h>

/* ---- Layers ---------------------------------------------------------------------------------- */

static bool note_layer(const MtfOperation *op, const char *framework, int *layer, GError **error) {
    int stage = op->stage - 1;
    if (*layer >= 0 && *layer != stage)
        return mtf_input_error(error,
                               "%s cuts pipelines between layers; layer %d lies in stages %d and "
                               "%d, where operation \"%s\" is",
                               framework, op->layer.iteration, *layer, stage, op->name);
    *layer = stage;
    return true;
}

/* Which stage has which layer, by iteration; -1: none. Unref it. */
static GArray *find_layers(const MtfGraph *graph, const char *framework, GError **error) {
    g_autoptr(GArray) layers = g_array_new(FALSE, FALSE, sizeof(int));
    const int nowhere = -1;
    int block = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->layer.block == 0 || op->n_inputs == 0 || op->phase != MTF_PHASE_FORWARD)
            continue;
        if (block != 0 && op->layer.block != block) {
            mtf_input_error(error,
                            "%s cuts one chain of layers; stage %d has layers of another kind "
                            "(\"%s\")",
                            framework, op->stage - 1, op->name);
            return NULL;
        }
        block = op->layer.block;
        while ((int)layers->len <= op->layer.iteration)
            g_array_append_val(layers, nowhere);
        if (!note_layer(op, framework, &g_array_index(layers, int, op->layer.iteration), error))
            return NULL;
    }
    if (layers->len == 0)
        mtf_input_error(error, "%s cuts pipelines between layers, and this model has none",
                        framework);
    return layers->len > 0 ? g_steal_pointer(&layers) : NULL;
}

static void count_layers(MtfFrameworkPipeline *p, const GArray *layers) {
    p->layers = (int)layers->len;
    for (guint i = 0; i < layers->len; i++)
        p->stages[g_array_index(layers, int, i)].layers++;
    p->equal = true;
    for (int s = 1; s < p->n_stages; s++)
        p->equal &= p->stages[s].layers == p->stages[0].layers;
}

/* ---- Stages ---------------------------------------------------------------------------------- */

/* What a stage recomputes is what its execution says. */
static void set_recomputation(MtfFrameworkStage *stage) {
    int layers = stage->plan.recomputed_layers;
    stage->selective = stage->plan.recomputes == MTF_RECOMPUTE_CHEAP;
    if (stage->plan.recomputes == MTF_RECOMPUTE_LAYERS)
        stage->recomputed = layers > 0 ? MIN(layers, stage->layers) : stage->layers;
}

static bool plan_stages(MtfFrameworkPipeline *p, const MtfPipelinePlan *pipeline,
                        const char *framework, GError **error) {
    for (int s = 0; s < p->n_stages; s++) {
        if (!mtf_framework_plan(mtf_pipeline_stage(pipeline, s), framework, &p->stages[s].plan,
                                error)) {
            g_prefix_error(error, "stage %d: ", s);
            return false;
        }
        set_recomputation(&p->stages[s]);
    }
    return true;
}

MtfFrameworkPipeline *mtf_framework_pipeline_new(const MtfPipelinePlan *pipeline,
                                                 const char *framework, GError **error) {
    g_autoptr(GArray) layers = find_layers(pipeline->graph, framework, error);
    if (layers == NULL)
        return NULL;
    g_autoptr(MtfFrameworkPipeline) p = g_new0(MtfFrameworkPipeline, 1);
    p->n_stages = pipeline->order->stages;
    p->n_domains = pipeline->order->ranks;
    p->chunks = p->n_stages / p->n_domains;
    p->stages = g_new0(MtfFrameworkStage, p->n_stages);
    count_layers(p, layers);
    return plan_stages(p, pipeline, framework, error) ? g_steal_pointer(&p) : NULL;
}

void mtf_framework_pipeline_free(MtfFrameworkPipeline *pipeline) {
    if (pipeline == NULL)
        return;
    g_free(pipeline->stages);
    g_free(pipeline);
}

/* ---- All alike ------------------------------------------------------------------------------- */

/* "data parallel 2 x tensor parallel 1, ZeRO-0"; free with g_free. */
static char *describe(const MtfParallelism *p) {
    return g_strdup_printf(
        "data parallel %d x tensor parallel %d%s, ZeRO-%d", p->degree[MTF_PARALLEL_DATA],
        p->degree[MTF_PARALLEL_TENSOR],
        p->sequence_parallel && p->degree[MTF_PARALLEL_TENSOR] > 1 ? ", sequence parallel" : "",
        p->zero);
}

static bool fail_unlike(const char *framework, int stage, const char *there, const char *first,
                        GError **error) {
    return mtf_input_error(error,
                           "%s runs all stages alike; stage %d stands in the way: %s, but %s in "
                           "stage 0",
                           framework, stage, there, first);
}

static bool compare_parallelism(const MtfFrameworkPipeline *p, const char *framework,
                                GError **error) {
    g_autofree char *first = describe(&p->stages[0].plan.parallelism);
    for (int s = 1; s < p->n_stages; s++) {
        g_autofree char *there = describe(&p->stages[s].plan.parallelism);
        if (strcmp(first, there) != 0)
            return fail_unlike(framework, s, there, first, error);
    }
    return true;
}

static char *describe_recomputation(const MtfFrameworkStage *stage) {
    return stage->selective
               ? g_strdup("cheap results recomputed")
               : g_strdup_printf("%d of %d layers recomputed", stage->recomputed, stage->layers);
}

bool mtf_framework_pipeline_each(const MtfFrameworkPipeline *p, const char *framework,
                                 MtfFrameworkPlan *each, GError **error) {
    bool all = true, none = true, same = true, selective = false;
    int differs = 0;
    if (!compare_parallelism(p, framework, error))
        return false;
    for (int s = 0; s < p->n_stages; s++) {
        const MtfFrameworkStage *stage = &p->stages[s];
        all &= stage->recomputed == stage->layers;
        none &= stage->recomputed == 0;
        selective |= stage->selective;
        if (stage->recomputed != p->stages[0].recomputed ||
            (stage->selective != p->stages[0].selective && stage->layers > 0)) {
            same = false;
            differs = s;
        }
    }
    *each = p->stages[0].plan;
    each->recomputes =
        none ? selective ? MTF_RECOMPUTE_CHEAP : MTF_RECOMPUTE_NONE : MTF_RECOMPUTE_LAYERS;
    each->recomputed_layers = all ? 0 : p->stages[0].recomputed;
    if (all || none || same)
        return true;
    g_autofree char *first = describe_recomputation(&p->stages[0]);
    g_autofree char *there = describe_recomputation(&p->stages[differs]);
    return fail_unlike(framework, differs, there, first, error);
}

bool mtf_framework_pipeline_even(const MtfFrameworkPipeline *p, const char *who, GError **error) {
    for (int s = 1; s < p->n_stages; s++)
        if (p->stages[s].layers != p->stages[0].layers)
            return mtf_input_error(error,
                                   "%s layers evenly; stage %d stands in the way with %d of them, "
                                   "stage 0 has %d",
                                   who, s, p->stages[s].layers, p->stages[0].layers);
    return true;
}
