// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/pipeline_memory.h"

#include <math.h>

/* What one micro-batch's action leaves in its stage, less what it takes. */
static double left_by(const MtfFrameworkMemory *stage, MtfPipelineWork work) {
    const double *left = stage->left;
    switch (work) {
    case MTF_WORK_FORWARD:
        return left[MTF_LEFT_BY_FORWARD] + left[MTF_LEFT_FOR_WEIGHTS];
    case MTF_WORK_INPUT_GRADIENT:
        return left[MTF_LEFT_BY_GRADIENT] - left[MTF_LEFT_BY_FORWARD];
    case MTF_WORK_WEIGHT_GRADIENT:
        return -left[MTF_LEFT_BY_GRADIENT] - left[MTF_LEFT_FOR_WEIGHTS];
    case MTF_WORK_BACKWARD:
        return -left[MTF_LEFT_BY_FORWARD] - left[MTF_LEFT_FOR_WEIGHTS];
    default:
        return 0;
    }
}

/* What stands in a domain and what is there beside it: while an action runs, what it takes and what it leaves are. */
static MtfFrameworkMemory domain_memory(const MtfPipelineOrder *order, int domain,
                                        const MtfFrameworkMemory *stages) {
    MtfFrameworkMemory memory = { 0 };
    double left = 0;
    for (int s = 0; s < order->stages; s++)
        memory.standing += order->rank_of_stage[s] == domain ? stages[s].standing : 0;
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, domain, i);
        double change = left_by(&stages[action->stage], action->work);
        memory.passing =
            fmax(memory.passing, fmax(left, left + change) + stages[action->stage].passing);
        left += change;
    }
    memory.given = memory.standing + memory.passing;
    return memory;
}

MtfFrameworkMemory mtf_pipeline_domain_memory(const MtfPipelinePlan *pipeline, int domain) {
    int n = pipeline->order->stages;
    g_autofree MtfFrameworkMemory *stages = g_new(MtfFrameworkMemory, n);
    for (int s = 0; s < n; s++)
        stages[s] = mtf_framework_memory_of(mtf_pipeline_stage(pipeline, s)->predicted);
    return domain_memory(pipeline->order, domain, stages);
}

MtfFrameworkMemory mtf_pipeline_memory(const MtfPipelinePlan *pipeline,
                                       const MtfSoftware *software) {
    MtfFrameworkMemory most = { 0 };
    for (int domain = 0; domain < pipeline->order->ranks; domain++) {
        MtfFrameworkMemory own = mtf_pipeline_domain_memory(pipeline, domain);
        if (own.given > most.given)
            most = own;
    }
    mtf_framework_memory_give(&most, most.given, software);
    return most;
}
