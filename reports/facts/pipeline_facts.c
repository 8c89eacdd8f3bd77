// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/pipeline_facts.h"

#include "cost/memory/arena.h"
#include "layouts/base/json_writer.h"
#include "layouts/plan_file/pipeline_transfers.h"

#include <math.h>

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

static bool read_machine(MtfPipelineFacts *facts, GError **error) {
    const MtfPlan *plan = mtf_pipeline_stage(facts->pipeline, 0);
    if (plan->machine == NULL)
        return true;
    MtfJson root = { .file = "the plan's machine", .node = plan->machine, .index = -1 };
    facts->machine = mtf_machine_from_json(&root, error);
    if (facts->machine == NULL)
        return false;
    mtf_pipeline_network(facts->pipeline, facts->machine, &facts->network);
    facts->prices = mtf_pipeline_transfer_prices(facts->pipeline, facts->machine);
    return true;
}

/* What a stage does once a step, and waits for of what others send it then, as the prediction has it. */
static double once_of_stage(const MtfPipelineFacts *facts, int stage) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(facts->pipeline->predicted, "stages");
    double once = mtf_json_number_of(cJSON_GetArrayItem(list, stage), "once_seconds", 0), sent = 0;
    for (int i = 0; facts->prices != NULL && i < mtf_pipeline_transfers(facts->pipeline); i++) {
        const MtfStageTransfer *t = mtf_pipeline_transfer(facts->pipeline, i);
        sent = t->once && t->to == stage ? fmax(sent, facts->prices[i].seconds) : sent;
    }
    return once + sent;
}

static MtfPipelineRun *predicted_run(const MtfPipelineFacts *facts) {
    const MtfPipelineOrder *order = facts->pipeline->order;
    if (!mtf_pipeline_steps_overlap(facts->pipeline))
        return mtf_pipeline_run_new(order, facts->times);
    g_autofree double *once = g_new(double, order->stages);
    for (int s = 0; s < order->stages; s++)
        once[s] = once_of_stage(facts, s);
    MtfSteadyTimes steady = { facts->times, once, mtf_pipeline_steps_ahead(facts->pipeline) };
    return mtf_pipeline_run_steady(order, &steady);
}

double mtf_pipeline_domain_begins_with(const MtfPipelineFacts *facts, int domain) {
    double fixed = mtf_pipeline_domain_fixed(facts, domain);
    if (!mtf_pipeline_steps_overlap(facts->pipeline))
        return fixed;
    int in_flight = mtf_pipeline_stage(facts->pipeline, domain)->layout->execution.stage.in_flight;
    return fixed + (in_flight - 1) * facts->stages[domain].per_flight;
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
    if (!read_machine(facts, error))
        return NULL;
    read_all_times(facts);
    facts->order = mtf_pipeline_steps_overlap(facts->pipeline)
                       ? mtf_pipeline_steady_order(pipeline->order)
                       : mtf_pipeline_order_copy(pipeline->order);
    facts->run = predicted_run(facts);
    return g_steal_pointer(&facts);
}

void mtf_pipeline_facts_free(MtfPipelineFacts *facts) {
    if (facts == NULL)
        return;
    mtf_pipeline_run_free(facts->run);
    mtf_pipeline_order_free(facts->order);
    mtf_machine_free(facts->machine);
    g_free(facts->prices);
    g_free(facts->times);
    g_free(facts->stages);
    g_free(facts);
}

/* ---- As it was measured -------------------------------------------------------------------- */

/* The last of the trace's passes that are an action; NULL where there is none. */
static const MtfRunPass *last_pass(const MtfRunTrace *trace, int rank,
                                   const MtfPipelineAction *action) {
    for (guint i = trace->passes->len; i > 0; i--) {
        const MtfRunPass *pass = &g_array_index(trace->passes, MtfRunPass, i - 1);
        if (pass->rank == rank && pass->stage == action->stage &&
            pass->microbatch == action->microbatch && pass->letter == "FIWB"[action->work])
            return pass;
    }
    return NULL;
}

/* Times of a domain's passes, from the trace's beginning. */
static bool note_domain(const MtfPipelineFacts *facts, const MtfRunTrace *trace, int domain,
                        MtfPipelineRun *run) {
    const MtfPipelineOrder *order = facts->order;
    int rank = mtf_pipeline_first_device(facts->pipeline, domain);
    run->first[domain] = INFINITY;
    run->last[domain] = 0;
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++) {
        const MtfRunPass *pass = last_pass(trace, rank, mtf_pipeline_action(order, domain, i));
        if (pass == NULL)
            return false;
        run->time[domain][i] = (MtfActionTime){ pass->start, pass->start + pass->seconds };
        run->first[domain] = MIN(run->first[domain], pass->start);
        run->last[domain] = MAX(run->last[domain], pass->start + pass->seconds);
    }
    return true;
}

/* Lets the run begin at 0. */
static void begin_at_zero(const MtfPipelineOrder *order, MtfPipelineRun *run) {
    double begin = INFINITY;
    run->makespan = 0;
    for (int d = 0; d < run->ranks; d++)
        begin = MIN(begin, run->first[d]);
    for (int d = 0; d < run->ranks; d++) {
        for (int i = 0; i < mtf_pipeline_length(order, d); i++) {
            run->time[d][i].begin -= begin;
            run->time[d][i].end -= begin;
        }
        run->first[d] -= begin;
        run->last[d] -= begin;
        run->makespan = MAX(run->makespan, run->last[d]);
    }
}

MtfPipelineRun *mtf_pipeline_traced(const MtfPipelineFacts *facts, const MtfRunTrace *trace) {
    const MtfPipelineOrder *order = facts->order;
    g_autoptr(MtfPipelineRun) run = predicted_run(facts);
    for (int d = 0; d < order->ranks; d++)
        if (!note_domain(facts, trace, d, run))
            return NULL;
    begin_at_zero(order, run);
    return g_steal_pointer(&run);
}

/* ---- On the machine ------------------------------------------------------------------------ */

char *mtf_pipeline_stages_on(const MtfPipelineFacts *facts, int device, int *domain) {
    const MtfPipelinePlan *pipeline = facts->pipeline;
    GString *text = g_string_new(NULL);
    *domain = 0;
    while (*domain + 1 < pipeline->order->ranks &&
           mtf_pipeline_first_device(pipeline, *domain + 1) <= device)
        ++*domain;
    for (int s = 0; s < pipeline->order->stages; s++)
        if (pipeline->order->rank_of_stage[s] == *domain)
            g_string_append_printf(text, "%s%d", text->len > 0 ? ", " : "", s);
    return g_string_free(text, FALSE);
}

/* The devices of a child of a level. */
static int64_t devices_below(const MtfNetwork *network, int level) {
    int64_t devices = 1;
    for (int d = level + 1; d < network->axes; d++)
        devices *= network->axis[d].size;
    return devices;
}

char *mtf_pipeline_bottleneck(const MtfPipelineFacts *facts, int transfer) {
    const MtfRoutePrice *price = &facts->prices[transfer];
    const MtfBusyLink *link = &price->busiest;
    const MtfNetwork *network = &facts->network;
    if (price->copied)
        return g_strdup("its receiver copies");
    if (link->seconds <= 0)
        return g_strdup(price->seconds > 0 ? "messages, as measured" : "–");
    if (!network->switched)
        return g_strdup_printf("device %" G_GINT64_FORMAT ", axis %d %s", link->rank, link->axis,
                               link->second ? "backward" : "forward");
    int64_t last = link->rank + devices_below(network, link->axis) - 1;
    const char *way = link->second ? "into" : "out of";
    return last == link->rank
               ? g_strdup_printf("%s device %" G_GINT64_FORMAT, way, last)
               : g_strdup_printf("%s devices %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, way,
                                 link->rank, last);
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
