// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/pipeline_facts.h"

#include "cost/memory/arena.h"
#include "layouts/base/json_writer.h"

/* ---- Stages -------------------------------------------------------------------------------- */

static bool read_program(const MtfPlan *plan, MtfStageFacts *stage, GError **error) {
    g_autoptr(MtfProgram) program = mtf_plan_lower(plan, error);
    if (program == NULL)
        return false;
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    stage->instructions = mtf_program_length(program);
    for (int i = 0; i < stage->instructions; i++)
        stage->collectives += mtf_instruction_is_collective(mtf_program_instruction(program, i));
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->slots > 1)
            stage->per_flight += (double)mtf_buffer_stride(buffer);
    }
    stage->peak = (double)arena->bytes;
    stage->fixed = stage->peak - plan->layout->execution.stage.in_flight * stage->per_flight;
    return true;
}

/* Plans that are older do not say what gradients take on their way: as much as what came along it. */
static MtfStageTimes read_times(const cJSON *predicted, int stage, double backward_transfer) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(predicted, "stages");
    const cJSON *own = cJSON_GetArrayItem(list, stage);
    double weight = mtf_json_number_of(own, "weight_gradient_seconds", 0);
    return (MtfStageTimes){
        .forward = mtf_json_number_of(own, "forward_seconds", 0),
        .input_gradient = mtf_json_number_of(own, "backward_seconds", 0) - weight,
        .weight_gradient = weight,
        .transfer_forward = mtf_json_number_of(own, "transfer_seconds", 0),
        .transfer_backward =
            mtf_json_number_of(own, "transfer_backward_seconds", backward_transfer),
    };
}

static void read_all_times(MtfPipelineFacts *facts) {
    const cJSON *predicted = facts->pipeline->predicted;
    int n = facts->pipeline->order->stages;
    for (int s = 0; s < n; s++)
        facts->times[s] =
            read_times(predicted, s, s > 0 ? facts->times[s - 1].transfer_forward : 0);
    facts->step_seconds = mtf_json_number_of(predicted, "step_seconds", 0);
    facts->limit =
        mtf_json_number_of(mtf_pipeline_stage(facts->pipeline, 0)->search, "memory_limit", 0);
}

MtfPipelineFacts *mtf_pipeline_facts_new(const MtfPipelinePlan *pipeline, GError **error) {
    g_autoptr(MtfPipelineFacts) facts = g_new0(MtfPipelineFacts, 1);
    int n = pipeline->order->stages;
    facts->pipeline = pipeline;
    facts->times = g_new0(MtfStageTimes, n);
    facts->stages = g_new0(MtfStageFacts, n);
    for (int s = 0; s < n; s++)
        if (!read_program(mtf_pipeline_stage(pipeline, s), &facts->stages[s], error))
            return NULL;
    read_all_times(facts);
    facts->run = mtf_pipeline_run_new(pipeline->order, facts->times);
    return g_steal_pointer(&facts);
}

void mtf_pipeline_facts_free(MtfPipelineFacts *facts) {
    if (facts == NULL)
        return;
    mtf_pipeline_run_free(facts->run);
    g_free(facts->times);
    g_free(facts->stages);
    g_free(facts);
}

/* ---- Memory -------------------------------------------------------------------------------- */

static double domain_sum(const MtfPipelineFacts *facts, int domain, bool peak) {
    double bytes = 0;
    for (int s = 0; s < facts->pipeline->order->stages; s++)
        if (facts->pipeline->order->rank_of_stage[s] == domain)
            bytes += peak ? facts->stages[s].peak : facts->stages[s].fixed;
    return bytes;
}

double mtf_pipeline_domain_bytes(const MtfPipelineFacts *facts, int domain) {
    return domain_sum(facts, domain, true);
}

double mtf_pipeline_domain_fixed(const MtfPipelineFacts *facts, int domain) {
    return domain_sum(facts, domain, false);
}

double mtf_pipeline_action_adds(const MtfPipelineFacts *facts, const MtfPipelineAction *action) {
    return action->work == MTF_WORK_FORWARD ? facts->stages[action->stage].per_flight : 0;
}

double mtf_pipeline_action_frees(const MtfPipelineFacts *facts, const MtfPipelineAction *action) {
    return mtf_work_ends_microbatch(action->work) ? facts->stages[action->stage].per_flight : 0;
}
