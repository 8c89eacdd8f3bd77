// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/pipeline_planning.h"

#include "analyzer/training/stage_cut.h"
#include "cost/machine/machine.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>

/* ---- Times --------------------------------------------------------------------------------- */

static bool is_done(double end) {
    return !isnan(end);
}

typedef struct {
    const MtfPipelinePlan *pipeline;
    const MtfStageSeconds *stages;
    const double *transfer;
    int n, microbatches;
    int *next;       /* action of each stage */
    double *free_at; /* of each stage */
    double *ends;    /* [(stage * 2 + backward) * microbatches + m], NAN: not yet */
} Playing;

static double *end_of(const Playing *p, int stage, bool backward, int microbatch) {
    return &p->ends[(stage * 2 + backward) * p->microbatches + microbatch];
}

/* When what the pass receives is there; NAN: not yet known. */
static double arrival(const Playing *p, int stage, const MtfStageAction *action) {
    bool backward = action->kind == MTF_STAGE_BACKWARD;
    if (!backward)
        return stage == 0
                   ? 0
                   : *end_of(p, stage - 1, false, action->microbatch) + p->transfer[stage - 1];
    return stage == p->n - 1 ? *end_of(p, stage, false, action->microbatch)
                             : *end_of(p, stage + 1, true, action->microbatch) + p->transfer[stage];
}

/* Does as much of a stage's order as can be done; whether that is anything. */
static bool advance(Playing *p, int stage) {
    const MtfStageOrder *order = mtf_pipeline_stage(p->pipeline, stage)->order;
    int first = p->next[stage];
    for (; p->next[stage] < order->n; p->next[stage]++) {
        const MtfStageAction *action = &order->actions[p->next[stage]];
        bool backward = action->kind == MTF_STAGE_BACKWARD;
        double there = arrival(p, stage, action);
        if (!is_done(there))
            break;
        p->free_at[stage] = fmax(p->free_at[stage], there) +
                            (backward ? p->stages[stage].backward : p->stages[stage].forward);
        *end_of(p, stage, backward, action->microbatch) = p->free_at[stage];
    }
    return p->next[stage] > first;
}

static bool play(Playing *p, double *seconds, GError **error) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (int s = 0; s < p->n; s++)
            moved |= advance(p, s);
    }
    *seconds = 0;
    for (int s = 0; s < p->n; s++) {
        if (p->next[s] < mtf_pipeline_stage(p->pipeline, s)->order->n)
            return mtf_input_error(error,
                                   "the stages' orders wait for each other: stage %d never "
                                   "gets to its action %d",
                                   s, p->next[s]);
        *seconds = fmax(*seconds, p->free_at[s] + p->stages[s].once);
    }
    return true;
}

bool mtf_pipeline_seconds(const MtfPipelinePlan *pipeline, const MtfStageSeconds *stages,
                          const double *transfer, double *seconds, GError **error) {
    int n = (int)pipeline->stages->len, m = pipeline->graph->microbatches;
    g_autofree int *next = g_new0(int, n);
    g_autofree double *free_at = g_new0(double, n);
    g_autofree double *ends = g_new(double, 2 * n * m);
    for (int i = 0; i < 2 * n * m; i++)
        ends[i] = NAN;
    Playing p = { pipeline, stages, transfer, n, m, next, free_at, ends };
    return play(&p, seconds, error);
}

static double last_end(const MtfSchedule *schedule, int from, int to) {
    int64_t end = 0;
    for (int i = from; i < to; i++)
        end = MAX(end, schedule->ends[i]);
    return (double)end / 1e9;
}

static MtfStageSeconds stage_seconds(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    int forward = MIN(mtf_program_forward(program), program->n_repeated);
    double f = last_end(schedule, 0, forward);
    double b = fmax(f, last_end(schedule, 0, program->n_repeated));
    return (MtfStageSeconds){ .forward = f / program->microbatches,
                              .backward = (b - f) / program->microbatches,
                              .once = fmax(0, (double)schedule->nanoseconds / 1e9 - b) };
}

/* What goes from one stage to the next for one micro-batch, over the link between their devices:
 * the outermost, where stages lie behind one another. Each device sends its share. */
static double transfer_seconds(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                               int stage) {
    const MtfNetworkAxis *link = &machine->network.axis[0];
    double bytes = 0;
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        if (t->from == stage && t->to > stage && !t->once)
            bytes += (double)mtf_graph_tensor_bytes(pipeline->split->graphs->pdata[stage], t->sent);
    }
    int senders = mtf_mesh_size(&mtf_pipeline_stage(pipeline, stage)->plan->layout->mesh);
    return link->latency + bytes / senders / link->bandwidth;
}

/* ---- Search -------------------------------------------------------------------------------- */

static bool fail_unfit(int stage, int64_t limit, GError **error) {
    g_autofree char *text = mtf_bytes_format((double)limit);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no layout of stage %d fits in %s a device: more stages, smaller micro-batches or "
                "--recompute layers need less",
                stage, text);
    return false;
}

/* The plan of one stage, and the times of its passes. */
static MtfPlan *plan_stage(const MtfPipelineRequest *request, MtfGraph *graph, int stage,
                           MtfStageSeconds *seconds, GError **error) {
    MtfPlanAnswer answer = { 0 };
    MtfPlan *plan = NULL;
    if (!mtf_plan_search(graph, request->meshes, &request->search, &answer, error)) {
        mtf_plan_answer_clear(&answer);
        mtf_graph_free(graph);
        return NULL;
    }
    if (answer.found) {
        MtfLayout *layout = mtf_plan_answer_layout(&answer, graph);
        mtf_planning_settle(graph, layout, &answer.pricer, request->search.memory_limit);
        plan =
            mtf_planning_plan_new(graph, layout, &answer.pricer,
                                  mtf_plan_answer_to_json(&answer, request->search.memory_limit));
        g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
        *seconds = stage_seconds(&answer.pricer, program);
    } else {
        fail_unfit(stage, request->search.memory_limit, error);
        mtf_graph_free(graph);
    }
    mtf_plan_answer_clear(&answer);
    return plan;
}

static bool plan_stages(MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                        MtfStageSeconds *seconds, GError **error) {
    int n = (int)pipeline->split->graphs->len;
    for (int s = 0; s < n; s++) {
        MtfStageOrder *order =
            mtf_stage_order_new(pipeline->schedule, n, s, pipeline->graph->microbatches);
        if (order == NULL)
            return mtf_input_error(error, "--schedule \"%s\" must be 1f1b or gpipe",
                                   pipeline->schedule);
        MtfPlan *plan = plan_stage(request, mtf_pipeline_stage_graph(pipeline, s, order), s,
                                   &seconds[s], error);
        if (plan == NULL) {
            mtf_stage_order_free(order);
            return false;
        }
        mtf_pipeline_plan_add(pipeline, plan, order);
    }
    return true;
}

/* ---- Predictions --------------------------------------------------------------------------- */

static cJSON *stage_prediction(const MtfPipelinePlan *pipeline, int stage,
                               const MtfStageSeconds *seconds) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage)->plan;
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, "forward_seconds", seconds->forward);
    mtf_json_add_number(object, "backward_seconds", seconds->backward);
    mtf_json_add_number(object, "once_seconds", seconds->once);
    mtf_json_add_integer(object, "in_flight", plan->graph->in_flight);
    mtf_json_add_number(object, "peak_memory_bytes",
                        mtf_json_number_of(plan->predicted, "peak_memory_bytes", 0));
    return object;
}

static bool predict(MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                    const MtfStageSeconds *seconds, GError **error) {
    int n = (int)pipeline->stages->len, m = pipeline->graph->microbatches;
    double step = 0, busiest = 0;
    g_autofree double *transfer = g_new0(double, n);
    for (int s = 0; s < n; s++) {
        transfer[s] = transfer_seconds(pipeline, request->search.machine, s);
        busiest = fmax(busiest, m * (seconds[s].forward + seconds[s].backward) + seconds[s].once);
    }
    if (!mtf_pipeline_seconds(pipeline, seconds, transfer, &step, error))
        return false;
    pipeline->predicted = cJSON_CreateObject();
    mtf_json_add_number(pipeline->predicted, "step_seconds", step);
    mtf_json_add_number(pipeline->predicted, "busiest_stage_seconds", busiest);
    mtf_json_add_number(pipeline->predicted, "bubble", step > 0 ? 1 - busiest / step : 0);
    cJSON *list = cJSON_AddArrayToObject(pipeline->predicted, "stages");
    for (int s = 0; s < n; s++)
        cJSON_AddItemToArray(list, stage_prediction(pipeline, s, &seconds[s]));
    return true;
}

MtfPipelinePlan *mtf_pipeline_search(const MtfPipelineRequest *request, GError **error) {
    g_autoptr(MtfGraph) cut = mtf_graph_copy(request->written);
    if (mtf_graph_stages(cut) == 0 && !mtf_cut_stages(cut, request->stages, error))
        return NULL;
    MtfGraph *training = mtf_planning_training_graph(cut, &request->form, error);
    g_autoptr(MtfPipelinePlan) pipeline =
        training == NULL ? NULL : mtf_pipeline_plan_new(training, request->schedule, error);
    if (pipeline == NULL)
        return NULL;
    g_autofree MtfStageSeconds *seconds = g_new0(MtfStageSeconds, pipeline->split->graphs->len);
    if (!plan_stages(pipeline, request, seconds, error) ||
        !predict(pipeline, request, seconds, error))
        return NULL;
    return g_steal_pointer(&pipeline);
}
