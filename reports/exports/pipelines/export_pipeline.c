// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/pipelines/export_pipeline.h"

#include "cost/transfer/route_price.h"
#include "layouts/base/error.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "layouts/pipeline/pipeline_text.h"
#include "reports/exports/pipelines/pipeline_forms.h"
#include "reports/exports/rank_places.h"

#include <string.h>

static char *write_order(const MtfPipelinePlan *pipeline, GError **error) {
    (void)error;
    return mtf_pipeline_format(pipeline->order);
}

static const struct {
    const char *name, *framework;
    char *(*write)(const MtfPipelinePlan *, GError **);
} forms[] = {
    { "torch-pipelining", "torch.distributed.pipelining", write_order },
    { "megatron", "Megatron-LM", mtf_export_pipeline_megatron },
    { "deepspeed", "DeepSpeed", mtf_export_pipeline_deepspeed },
    { "torchtitan", "torchtitan", mtf_export_pipeline_torchtitan },
    { "alpa", "Alpa", mtf_export_pipeline_alpa },
};

/* A stage that runs on the domain. */
static const MtfPlan *plan_on(const MtfPipelinePlan *pipeline, int domain) {
    int stage = 0;
    while (pipeline->order->rank_of_stage[stage] != domain)
        stage++;
    return mtf_pipeline_stage(pipeline, stage);
}

/* Fills in the places of all domains' ranks, which follow one another. */
static bool find_places(const MtfPipelinePlan *pipeline, MtfRankPlaces *places, GError **error) {
    for (int d = 0; d < pipeline->order->ranks; d++) {
        MtfPricer pricer;
        g_autoptr(MtfMachine) machine = mtf_plan_lay(plan_on(pipeline, d), &pricer, error);
        if (machine == NULL)
            return false;
        if (d == 0) {
            MtfNetwork network;
            mtf_pipeline_network(pipeline, machine, &network);
            mtf_rank_places_init(places, pipeline->graph->name, &network);
        }
        mtf_rank_places_add(places, &pricer.map.mapping, mtf_pipeline_first_device(pipeline, d));
    }
    return true;
}

static char *export_places(const MtfPipelinePlan *pipeline, const MtfExportRequest *request,
                           GError **error) {
    g_auto(MtfRankPlaces) places = { 0 };
    if (!find_places(pipeline, &places, error))
        return NULL;
    return strcmp(request->to, "slurm") == 0
               ? mtf_rank_places_slurm(&places)
               : mtf_rank_places_rankfile(&places, request->hosts, error);
}

char *mtf_export_pipeline(const MtfPipelinePlan *pipeline, const MtfExportRequest *request,
                          GError **error) {
    const char *form = request->to;
    if (strcmp(form, "slurm") == 0 || strcmp(form, "rankfile") == 0)
        return export_places(pipeline, request, error);
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (strcmp(forms[i].name, form) != 0)
            continue;
        if (!mtf_pipeline_is_asynchronous(pipeline->schedule))
            return forms[i].write(pipeline, error);
        mtf_input_error(error, "%s runs every step alone, and steps of %s overlap",
                        forms[i].framework, pipeline->schedule);
        return NULL;
    }
    mtf_input_error(
        error,
        "the plan of a pipeline cannot be exported to \"%s\", only to "
        "torch-pipelining, megatron, deepspeed, torchtitan, alpa, onnx, slurm or rankfile",
        form);
    return NULL;
}
