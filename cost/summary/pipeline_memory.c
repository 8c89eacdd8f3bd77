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

/* While an action runs, what it takes and what it leaves are both there. */
static double most_given(const MtfPipelineOrder *order, int domain,
                         const MtfFrameworkMemory *stages) {
    double standing = 0, left = 0, most = 0;
    for (int s = 0; s < order->stages; s++)
        standing += order->rank_of_stage[s] == domain ? stages[s].standing : 0;
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, domain, i);
        double change = left_by(&stages[action->stage], action->work);
        most = fmax(most, fmax(left, left + change) + stages[action->stage].passing);
        left += change;
    }
    return standing + most;
}

MtfFrameworkMemory mtf_pipeline_memory(const MtfPipelinePlan *pipeline,
                                       const MtfSoftware *software) {
    const MtfPipelineOrder *order = pipeline->order;
    g_autofree MtfFrameworkMemory *stages = g_new(MtfFrameworkMemory, order->stages);
    MtfFrameworkMemory memory = { 0 };
    for (int s = 0; s < order->stages; s++)
        stages[s] = mtf_framework_memory_of(mtf_pipeline_stage(pipeline, s)->predicted);
    for (int domain = 0; domain < order->ranks; domain++)
        memory.given = fmax(memory.given, most_given(order, domain, stages));
    mtf_framework_memory_give(&memory, memory.given, software);
    return memory;
}
