// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/inference_stages.h"

#include "analyzer/planner/pipeline_planning.h"
#include "cost/summary/pipeline_summary.h"
#include "cost/transfer/route_price.h"
#include "layouts/base/json_writer.h"
#include "layouts/inference/generation_stages.h"

#include <math.h>

static bool search_stage(MtfInferencePipeline *p, int stage, const GArray *meshes,
                         const MtfInferencePipeline *leader, const MtfPlanSearchOptions *options,
                         int64_t cache_limit, GError **error) {
    MtfInferencePhase *phase = &p->phases[stage];
    MtfGraph *graph = mtf_graph_copy(mtf_pipeline_stage_graph(p->plan, stage));
    p->unfit = stage;
    bool done = true;
    if (leader != NULL)
        mtf_inference_follow(graph, &leader->phases[stage], options, cache_limit, phase);
    else
        done = mtf_inference_search(graph, meshes, options, cache_limit, phase, error);
    return done && (phase->plan == NULL || mtf_pipeline_plan_add(p->plan, phase->plan, error));
}

static void sum_up(MtfInferencePipeline *p, const MtfMachine *machine) {
    p->max_context = INT64_MAX;
    mtf_pipeline_choose_transfers(p->plan, machine);
    for (int s = 0; s < p->stages; s++) {
        const MtfInferencePhase *phase = &p->phases[s];
        bool caches = mtf_generation_context(phase->plan->graph) >= 0;
        p->transfer_seconds[s] =
            s + 1 < p->stages ? mtf_pipeline_transfer_seconds(p->plan, machine, s) : 0;
        p->step_seconds += phase->step_seconds + p->transfer_seconds[s];
        p->slowest_seconds =
            fmax(p->slowest_seconds, fmax(phase->step_seconds, p->transfer_seconds[s]));
        p->max_context = caches ? MIN(p->max_context, phase->max_context) : p->max_context;
        p->weight_bytes = MAX(p->weight_bytes, phase->weight_bytes);
        p->cache_bytes = MAX(p->cache_bytes, phase->cache_bytes);
    }
    if (p->max_context == INT64_MAX)
        p->max_context = 0;
}

static void predict(MtfInferencePipeline *p, const MtfPlanSearchOptions *options) {
    p->plan->predicted = cJSON_CreateObject();
    mtf_json_add_number(p->plan->predicted, "step_seconds", p->step_seconds);
    mtf_json_add_number(p->plan->predicted, "slowest_seconds", p->slowest_seconds);
    cJSON *list = cJSON_AddArrayToObject(p->plan->predicted, "stages");
    for (int s = 0; s < p->stages; s++) {
        cJSON *stage = cJSON_CreateObject();
        mtf_json_add_number(stage, "forward_seconds", p->phases[s].step_seconds);
        mtf_json_add_number(stage, "transfer_seconds", p->transfer_seconds[s]);
        cJSON_AddItemToArray(list, stage);
    }
    mtf_pipeline_summary_add(p->plan, options->machine, options->memory_limit);
}

bool mtf_inference_pipeline_search(MtfGraph *graph, const GArray *meshes,
                                   const MtfInferencePipeline *leader,
                                   const MtfPlanSearchOptions *options, int64_t cache_limit,
                                   MtfInferencePipeline *pipeline, GError **error) {
    mtf_graph_complete_stages(graph);
    *pipeline = (MtfInferencePipeline){ .plan = mtf_generation_pipeline_new(graph, error) };
    if (pipeline->plan == NULL)
        return false;
    pipeline->stages = pipeline->plan->order->stages;
    pipeline->phases = g_new0(MtfInferencePhase, pipeline->stages);
    pipeline->transfer_seconds = g_new0(double, pipeline->stages);
    for (int s = 0; s < pipeline->stages; s++) {
        if (!search_stage(pipeline, s, meshes, leader, options, cache_limit, error))
            return false;
        if (pipeline->phases[s].plan == NULL) {
            g_clear_pointer(&pipeline->plan, mtf_pipeline_plan_free);
            return true;
        }
    }
    sum_up(pipeline, options->machine);
    predict(pipeline, options);
    return true;
}

void mtf_inference_pipeline_clear(MtfInferencePipeline *pipeline) {
    for (int s = 0; pipeline->phases != NULL && s < pipeline->stages; s++) {
        pipeline->phases[s].plan = NULL; /* the pipeline's */
        mtf_inference_phase_clear(&pipeline->phases[s]);
    }
    mtf_pipeline_plan_free(pipeline->plan);
    g_free(pipeline->phases);
    g_free(pipeline->transfer_seconds);
    *pipeline = (MtfInferencePipeline){ 0 };
}

double mtf_inference_pipeline_seconds_at(const MtfInferencePipeline *pipeline, int64_t context) {
    double seconds = 0;
    for (int s = 0; s < pipeline->stages; s++)
        seconds +=
            pipeline->transfer_seconds[s] + mtf_inference_seconds_at(&pipeline->phases[s], context);
    return seconds;
}
