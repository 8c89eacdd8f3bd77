// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/pipeline_planning.h"

#include "analyzer/planner/stage_planning.h"
#include "analyzer/training/stage_cut.h"
#include "cost/machine/machine.h"
#include "cost/pipeline/pipeline_schedule.h"
#include "cost/summary/pipeline_memory.h"
#include "cost/summary/pipeline_summary.h"
#include "cost/transfer/route_price.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/kernel_work/fusable.h"
#include "layouts/pipeline/pipeline_delay.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- Times --------------------------------------------------------------------------------- */

double mtf_pipeline_transfer_seconds(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                                     int stage) {
    g_autofree MtfRoutePrice *prices = mtf_pipeline_transfer_prices(pipeline, machine);
    double seconds = 0;
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++) {
        const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, i);
        if (t->from == stage && t->to > stage && !t->once)
            seconds += prices[i].seconds;
    }
    return seconds;
}

/* ---- Search -------------------------------------------------------------------------------- */

/* "the smallest limit found that would do for it is 197 MiB, … "; nothing where that is not known. */
static char *format_needed(const MtfStagePlanner *planner) {
    if (planner->enough <= 0)
        return g_strdup("");
    g_autofree char *enough = mtf_bytes_format((double)planner->enough);
    g_autofree char *least = mtf_bytes_format((double)planner->least);
    return g_strdup_printf(
        "the smallest limit found that would do for it is %s, and in the written order of "
        "operations none below %s does; ",
        enough, least);
}

static bool fail_unfit(const MtfStagePlanner *planner, int stage, int64_t limit, GError **error) {
    g_autofree char *text = mtf_bytes_format((double)limit);
    g_autofree char *needed = format_needed(planner);
    g_set_error(
        error, MTF_ERROR, MTF_ERROR_FIT,
        "no layout of stage %d fits in %s a device: %smore stages, smaller micro-batches or "
        "--recompute layers need less",
        stage, text, needed);
    return false;
}

static const GArray *meshes_of(const MtfPipelineRequest *request, int stage) {
    return request->stage_meshes != NULL ? g_ptr_array_index(request->stage_meshes, stage)
                                         : request->meshes;
}

/* A stage's share of a device's memory, and when it was planned the times of its passes. */
typedef struct {
    int64_t limit;
    MtfStageSeconds seconds;
} Planned;

/* What the plan that is to be beaten takes; INFINITY: there is none. */
static double rival_of(const MtfPipelineRequest *request) {
    return request->rival_seconds > 0 ? request->rival_seconds : INFINITY;
}

/* What a domain does in a step, without any wait, in the stages that are planned. */
static double domain_work(const MtfPipelinePlan *pipeline, const Planned *planned, int domain) {
    double once = 0, passes = 0;
    for (int s = 0; s < (int)pipeline->stages->len; s++) {
        const MtfStageSeconds *own = &planned[s].seconds;
        if (pipeline->order->rank_of_stage[s] != domain)
            continue;
        passes += own->forward + own->input_gradient + own->weight_gradient;
        once += own->once;
    }
    return passes * pipeline->order->microbatches + once;
}

/* Whether no schedule of the stages planned so far, the last of them `stage`, is shorter than the rival's step. */
static bool is_beaten(const MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                      const Planned *planned, int stage) {
    double work = domain_work(pipeline, planned, pipeline->order->rank_of_stage[stage]);
    return work + mtf_machine_step_seconds(request->search.machine) >= rival_of(request);
}

static MtfStageTask *list_tasks(const MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                                const Planned *planned, int n) {
    MtfStageTask *tasks = g_new(MtfStageTask, n);
    for (int s = 0; s < n; s++)
        tasks[s] = (MtfStageTask){ mtf_pipeline_stage_graph(pipeline, s),
                                   mtf_pipeline_stage_execution(pipeline, s), meshes_of(request, s),
                                   planned[s].limit };
    return tasks;
}

static MtfPlan *plan_stage(MtfStagePlanner *planner, int stage, Planned *planned, GError **error) {
    GError *cause = NULL;
    MtfPlan *plan = mtf_stage_planner_plan(planner, stage, &planned[stage].seconds, &cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    else if (plan == NULL)
        fail_unfit(planner, stage, planned[stage].limit, error);
    return plan;
}

static bool plan_all(MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                     MtfStagePlanner *planner, Planned *planned, GError **error) {
    int n = (int)pipeline->split->graphs->len;
    g_autofree MtfStageTask *tasks = list_tasks(pipeline, request, planned, n);
    mtf_stage_planner_next_row(planner, tasks, n);
    g_ptr_array_set_size(pipeline->stages, 0);
    for (int s = 0; s < n; s++) {
        MtfPlan *plan = plan_stage(planner, s, planned, error);
        if (plan == NULL || !mtf_pipeline_plan_add(pipeline, plan, error))
            return false;
        if (is_beaten(pipeline, request, planned, s))
            return mtf_failure(error, "stage %d alone takes longer than another plan's step", s);
    }
    return true;
}

static double peak_of(const MtfPipelinePlan *pipeline, int stage) {
    return mtf_json_number_of(mtf_pipeline_stage(pipeline, stage)->predicted, "peak_memory_bytes",
                              0);
}

/* What the stages of a domain need together. */
static double domain_peak(const MtfPipelinePlan *pipeline, int domain) {
    double bytes = 0;
    for (int s = 0; s < pipeline->order->stages; s++)
        if (pipeline->order->rank_of_stage[s] == domain)
            bytes += peak_of(pipeline, s);
    return bytes;
}

/* Shares each domain's memory among its stages as they need it now; false where all fit already. */
static bool share_memory(const MtfPipelinePlan *pipeline, int64_t limit, Planned *planned) {
    bool shared = false;
    for (int s = 0; s < pipeline->order->stages; s++) {
        double all = domain_peak(pipeline, pipeline->order->rank_of_stage[s]);
        if (all <= (double)limit)
            continue;
        planned[s].limit = (int64_t)((double)limit * peak_of(pipeline, s) / all);
        shared = true;
    }
    return shared;
}

/* ---- What the software can run ----------------------------------------------------------------- */

/* How often the stages of domains that the software has no memory for are planned with less, at most. */
#define SOFTWARE_ROUNDS 3

/* Gives the stages of a domain for which the software gives out too much as much less than they take; false where it
 * can run all domains. */
static bool share_less(const MtfPipelinePlan *pipeline, int64_t limit, Planned *planned) {
    bool shared = false;
    for (int s = 0; s < pipeline->order->stages; s++) {
        int domain = pipeline->order->rank_of_stage[s];
        double over = mtf_pipeline_domain_memory(pipeline, domain).given - (double)limit;
        if (over <= 0)
            continue;
        double share = fmax(0, 1 - over / domain_peak(pipeline, domain));
        planned[s].limit = (int64_t)(share * peak_of(pipeline, s));
        shared = true;
    }
    return shared;
}

static bool fail_software(const MtfPipelineRequest *request, double bytes, GError **error) {
    g_autofree char *needs = mtf_bytes_format(bytes);
    g_autofree char *limit = mtf_bytes_format((double)request->search.memory_limit);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no stages were found that %s can run in %s a device: those that promised most "
                "need %s (--memory %" PRId64 "); use more devices or micro-batches, or other "
                "--software",
                request->search.machine->software->name, limit, needs, (int64_t)ceil(bytes));
    return false;
}

/* Plans stages again, within less, until the software has memory for them. */
static bool plan_for_software(MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                              MtfStagePlanner *planner, Planned *planned, GError **error) {
    const MtfSoftware *software = request->search.machine->software;
    int64_t limit = request->search.memory_limit;
    GError *cause = NULL;
    if (software == NULL || request->prices_only)
        return true;
    double needed = mtf_pipeline_memory(pipeline, software).given;
    for (int round = 0; round < SOFTWARE_ROUNDS && share_less(pipeline, limit, planned); round++)
        if (!plan_all(pipeline, request, planner, planned, &cause))
            break;
    if (cause != NULL && !g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT)) {
        g_propagate_error(error, cause);
        return false;
    }
    bool fits = cause == NULL && mtf_pipeline_memory(pipeline, software).given <= (double)limit;
    g_clear_error(&cause);
    return fits || fail_software(request, needed, error);
}

/* Stages have a device's memory to themselves at first; where those of one domain then need more than
 * there is together, or the software more than it can give out, they are planned again, each within its share. */
static bool plan_stages(MtfPipelinePlan *pipeline, const MtfPipelineRequest *request,
                        MtfStagePlanner *planner, MtfStageSeconds *seconds, GError **error) {
    int n = (int)pipeline->split->graphs->len;
    int64_t limit = request->search.memory_limit;
    g_autofree Planned *planned = g_new0(Planned, n);
    for (int s = 0; s < n; s++)
        planned[s].limit = limit;
    if (!plan_all(pipeline, request, planner, planned, error) ||
        (share_memory(pipeline, limit, planned) &&
         !plan_all(pipeline, request, planner, planned, error)) ||
        !plan_for_software(pipeline, request, planner, planned, error))
        return false;
    for (int s = 0; s < n; s++)
        seconds[s] = planned[s].seconds;
    return true;
}

/* ---- Predictions --------------------------------------------------------------------------- */

static cJSON *stage_prediction(const MtfPipelinePlan *pipeline, int stage,
                               const MtfStageSeconds *seconds, const MtfStageTimes *times) {
    const MtfPlan *plan = mtf_pipeline_stage(pipeline, stage);
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, "forward_seconds", times->forward);
    mtf_json_add_number(object, "backward_seconds", times->input_gradient + times->weight_gradient);
    mtf_json_add_number(object, "weight_gradient_seconds", times->weight_gradient);
    mtf_json_add_number(object, "once_seconds", seconds->once);
    mtf_json_add_number(object, "transfer_seconds", times->transfer_forward);
    mtf_json_add_number(object, "transfer_backward_seconds", times->transfer_backward);
    mtf_json_add_integer(object, "in_flight", plan->layout->execution.stage.in_flight);
    mtf_json_add_integer(object, "weight_versions", plan->layout->execution.stage.weight_versions);
    mtf_json_add_number(object, "bytes_a_microbatch_in_flight", seconds->held_bytes);
    mtf_json_add_number(object, "peak_memory_bytes",
                        mtf_json_number_of(plan->predicted, "peak_memory_bytes", 0));
    return object;
}

/* Adds a tensor that goes once a micro-batch: what is not hidden to the pass of its receiver, the rest to
 * what is under way. */
static void add_transfer(MtfStageTimes *times, const MtfStageTransfer *transfer,
                         const MtfRoutePrice *price, double hidden) {
    bool forward = transfer->to > transfer->from;
    MtfStageTimes *from = &times[transfer->from], *to = &times[transfer->to];
    double *blocked = forward ? &to->forward : &to->input_gradient;
    double *under_way = forward ? &from->transfer_forward : &from->transfer_backward;
    double beside = price->copied ? 0 : hidden;
    *blocked += (1 - beside) * price->seconds;
    *under_way += beside * price->seconds;
}

/* The share of transfers that goes on beside kernels. */
static double hidden_share(const MtfMachine *machine) {
    const MtfSoftware *software = machine->software;
    return software != NULL ? fmin(software->hidden[MTF_HIDDEN_PIPELINE], 1) : 1;
}

/* What the schedules weigh: the times of each stage's passes over a micro-batch. Free with g_free. */
static MtfStageTimes *stage_times(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                                  const MtfStageSeconds *seconds, const MtfRoutePrice *prices) {
    double hidden = hidden_share(machine);
    int n = (int)pipeline->stages->len;
    MtfStageTimes *times = g_new0(MtfStageTimes, n);
    for (int s = 0; s < n; s++) {
        times[s].forward = seconds[s].forward;
        times[s].input_gradient = seconds[s].input_gradient;
        times[s].weight_gradient = seconds[s].weight_gradient;
    }
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++)
        if (!mtf_pipeline_transfer(pipeline, i)->once)
            add_transfer(times, mtf_pipeline_transfer(pipeline, i), &prices[i], hidden);
    return times;
}

/* When a rank may begin what it does once a step: after its last pass, and when what others send it once,
 * behind theirs, has come. Variables are sent before the first pass, which the way of the first micro-batch
 * gives time for. */
static double once_begin(const MtfPipelinePlan *pipeline, const MtfRoutePrice *prices,
                         const MtfPipelineRun *run, int rank) {
    const int *rank_of = pipeline->order->rank_of_stage;
    double begin = run->last[rank];
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++) {
        const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, i);
        const MtfGraph *graph = pipeline->split->graphs->pdata[t->from];
        bool variable = mtf_graph_tensor(graph, t->sent)->source == MTF_SOURCE_VARIABLE;
        if (!t->once || rank_of[t->to] != rank || rank_of[t->from] == rank)
            continue;
        begin = variable ? begin + fmax(0, prices[i].seconds - run->first[rank])
                         : fmax(begin, run->last[rank_of[t->from]] + prices[i].seconds);
    }
    return begin;
}

/* The end of the last rank, which does after its passes what it does once a step. */
static double end_of_step(const MtfPipelinePlan *pipeline, const MtfStageSeconds *seconds,
                          const MtfRoutePrice *prices, const MtfPipelineRun *run) {
    double step = 0;
    g_autofree double *once = g_new0(double, pipeline->order->ranks);
    for (int s = 0; s < (int)pipeline->stages->len; s++)
        once[pipeline->order->rank_of_stage[s]] += seconds[s].once;
    for (int rank = 0; rank < pipeline->order->ranks; rank++)
        step = fmax(step, once_begin(pipeline, prices, run, rank) + once[rank]);
    return step;
}

/* What a stage of an asynchronous pipeline does once a step, and waits for of what others send it then. */
static double once_of_stage(const MtfPipelinePlan *pipeline, const MtfStageSeconds *seconds,
                            const MtfRoutePrice *prices, int stage) {
    double sent = 0;
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++) {
        const MtfStageTransfer *t = mtf_pipeline_transfer(pipeline, i);
        sent = t->once && t->to == stage ? fmax(sent, prices[i].seconds) : sent;
    }
    return sent + seconds[stage].once;
}

static MtfPipelineRun *run_steady(const MtfPipelinePlan *pipeline, const MtfStageSeconds *seconds,
                                  const MtfRoutePrice *prices, const MtfStageTimes *times) {
    int n = (int)pipeline->stages->len;
    g_autofree double *once = g_new(double, n);
    for (int s = 0; s < n; s++)
        once[s] = once_of_stage(pipeline, seconds, prices, s);
    MtfSteadyTimes steady = { times, once, mtf_pipeline_steps_ahead(pipeline) };
    return mtf_pipeline_run_steady(pipeline->order, &steady);
}

static void predict(MtfPipelinePlan *pipeline, const MtfMachine *machine,
                    const MtfStageSeconds *seconds, int64_t memory_limit) {
    mtf_pipeline_choose_transfers(pipeline, machine);
    g_autofree MtfRoutePrice *prices = mtf_pipeline_transfer_prices(pipeline, machine);
    g_autofree MtfStageTimes *times = stage_times(pipeline, machine, seconds, prices);
    bool steady = mtf_pipeline_is_asynchronous(pipeline->schedule);
    g_autoptr(MtfPipelineRun) run = steady ? run_steady(pipeline, seconds, prices, times)
                                           : mtf_pipeline_run_new(pipeline->order, times);
    pipeline->predicted = cJSON_CreateObject();
    /* What the host adds to a step comes once. */
    mtf_json_add_number(pipeline->predicted, "step_seconds",
                        (steady ? run->period : end_of_step(pipeline, seconds, prices, run)) +
                            mtf_machine_step_seconds(machine));
    mtf_json_add_number(pipeline->predicted, "makespan_seconds", run->makespan);
    mtf_json_add_number(pipeline->predicted, "span_seconds", run->span);
    mtf_json_add_number(pipeline->predicted, "bubble", run->bubble);
    cJSON *list = cJSON_AddArrayToObject(pipeline->predicted, "stages");
    for (int s = 0; s < (int)pipeline->stages->len; s++)
        cJSON_AddItemToArray(list, stage_prediction(pipeline, s, &seconds[s], &times[s]));
    mtf_pipeline_summary_add(pipeline, machine, memory_limit);
}

/* What all stages divide, what each of them recomputes, and of what graph they were made. */
static bool set_execution(MtfPipelinePlan *pipeline, const MtfGraph *cut,
                          const MtfStepVariant *form, GError **error) {
    for (int s = 0; s < (int)pipeline->stages->len; s++)
        mtf_pipeline_stage(pipeline, s)->layout->execution.kept = mtf_step_variant_kept(form, s);
    pipeline->training = mtf_planning_training_graph(cut, form, &pipeline->division, error);
    return pipeline->training != NULL;
}

/* ---- One schedule -------------------------------------------------------------------------- */

static MtfPipelinePlan *search_with(const MtfPipelineRequest *request, MtfStagePlanner *planner,
                                    GError **error) {
    g_autoptr(MtfGraph) cut = mtf_graph_copy(request->written);
    MtfStepVariant form = request->form;
    form.own_pass = request->stages > 1;
    if (mtf_graph_stages(cut) == 0 &&
        !mtf_cut_stages(cut, request->stages * request->chunks, error))
        return NULL;
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_schedule_order(
        request->schedule, request->stages, form.microbatches, request->chunks, error);
    MtfGraph *executed = order == NULL ? NULL : mtf_planning_executed_graph(cut, &form, error);
    if (executed == NULL)
        return NULL;
    g_autoptr(MtfPipelinePlan) pipeline =
        mtf_pipeline_plan_new(executed, request->schedule, g_steal_pointer(&order), error);
    if (pipeline == NULL)
        return NULL;
    for (guint s = 0; form.fuses && s < pipeline->split->graphs->len; s++)
        mtf_graph_mark_near(pipeline->split->graphs->pdata[s], form.framework);
    g_autofree MtfStageSeconds *seconds = g_new0(MtfStageSeconds, pipeline->split->graphs->len);
    if (!plan_stages(pipeline, request, planner, seconds, error))
        return NULL;
    predict(pipeline, request->search.machine, seconds, request->search.memory_limit);
    bool done = request->prices_only || set_execution(pipeline, cut, &form, error);
    return done ? g_steal_pointer(&pipeline) : NULL;
}

/* ---- The fastest schedule ------------------------------------------------------------------ */

/* So many schedules are planned to the end beside the first; fewer where a search for cuts leaves that
 * to be done for each number of chunks. */
#define SCHEDULES_TRIED 5
#define SCHEDULES_TRIED_OF_A_CUT 2

/* A schedule, and the step that it promises by the times of another plan. */
typedef struct {
    const MtfPipelineSchedule *row;
    double seconds;
} Promise;

static double step_of(const MtfPipelinePlan *pipeline) {
    return mtf_json_number_of(pipeline->predicted, "step_seconds", INFINITY);
}

/* The least that any of the stages but one end's sends to the next. */
static double least_transfer(const cJSON *stages, const char *key, int first, int end) {
    double least = INFINITY;
    for (int s = first; s < end; s++)
        least = fmin(least, mtf_json_number_of(cJSON_GetArrayItem(stages, s), key, 0));
    return isfinite(least) ? least : 0;
}

/* The times of `wanted` stages that the graph of a planned pipeline is cut into evenly, as its own are,
 * the two halves of a backward pass taken to be equal. Free with g_free. */
static MtfStageTimes *divided_times(const MtfPipelinePlan *pipeline, int wanted) {
    int n = (int)pipeline->stages->len;
    double share = (double)n / wanted;
    const cJSON *stages = cJSON_GetObjectItem(pipeline->predicted, "stages");
    double forward_way = least_transfer(stages, "transfer_seconds", 0, n - 1);
    double backward_way = least_transfer(stages, "transfer_backward_seconds", 1, n);
    MtfStageTimes *times = g_new0(MtfStageTimes, wanted);
    for (int s = 0; s < wanted; s++) {
        const cJSON *stage = cJSON_GetArrayItem(stages, s * n / wanted);
        double backward = mtf_json_number_of(stage, "backward_seconds", 0) * share;
        times[s] = (MtfStageTimes){
            .forward = mtf_json_number_of(stage, "forward_seconds", 0) * share,
            .input_gradient = backward / 2,
            .weight_gradient = backward / 2,
            .transfer_forward = forward_way,
            .transfer_backward = backward_way,
        };
    }
    return times;
}

/* The chunks a domain that a schedule is given: those of a graph that is cut already, where they suit
 * it, else as many as it needs; 0 where it does not suit. */
static int chunks_for(const MtfPipelineSchedule *row, const MtfPipelineRequest *request) {
    bool cut = request->stage_meshes != NULL || mtf_graph_stages(request->written) > 0;
    bool suits = row->chunks == request->chunks || (row->chunks == 0 && request->chunks > 1);
    return !cut ? mtf_pipeline_schedule_chunks(row) : suits ? request->chunks : 0;
}

/* The order of a schedule for the request's numbers; NULL where it does not suit them, or trains with
 * weights that lag, which nobody gets who does not ask for it. */
static MtfPipelineOrder *order_of(const MtfPipelineSchedule *row,
                                  const MtfPipelineRequest *request) {
    int chunks = mtf_pipeline_is_asynchronous(row->name) ? 0 : chunks_for(row, request);
    return chunks == 0 ? NULL
                       : mtf_pipeline_schedule_order(row->name, request->stages,
                                                     request->form.microbatches, chunks, NULL);
}

/* Whether the order's domains may hold as many micro-batches as it has in flight, by the memory of a
 * planned pipeline, whose domains have the same parts of the graph in other chunks. */
static bool may_fit(const MtfPipelineOrder *order, const MtfPipelinePlan *known, int64_t limit) {
    const cJSON *stages = cJSON_GetObjectItem(known->predicted, "stages");
    double chunks = (double)order->stages / order->ranks;
    for (int rank = 0; rank < order->ranks; rank++) {
        double flight = 0, bytes = 0;
        for (int s = 0; s < (int)known->stages->len; s++) {
            const cJSON *stage = cJSON_GetArrayItem(stages, s);
            double held = mtf_json_number_of(stage, "bytes_a_microbatch_in_flight", 0);
            if (known->order->rank_of_stage[s] != rank)
                continue;
            flight += held;
            bytes += mtf_json_number_of(stage, "peak_memory_bytes", 0) -
                     held * mtf_json_number_of(stage, "in_flight", 0);
        }
        if (bytes + flight * mtf_pipeline_in_flight(order, rank) / chunks > (double)limit)
            return false;
    }
    return true;
}

/* INFINITY where the schedule does not suit, or would not fit. */
static double promise_of(const MtfPipelineSchedule *row, const MtfPipelineRequest *request,
                         const MtfPipelinePlan *known) {
    g_autoptr(MtfPipelineOrder) order = order_of(row, request);
    if (order == NULL || !may_fit(order, known, request->search.memory_limit))
        return INFINITY;
    g_autofree MtfStageTimes *times = divided_times(known, order->stages);
    g_autoptr(MtfPipelineRun) run = mtf_pipeline_run_new(order, times);
    return run->makespan;
}

/* Whether every domain holds fewer micro-batches, of whole stages, than 1F1B's first. */
static bool holds_less(const MtfPipelineSchedule *row, const MtfPipelineRequest *request) {
    g_autoptr(MtfPipelineOrder) order = order_of(row, request);
    int most = MIN(request->form.microbatches, request->stages);
    for (int rank = 0; order != NULL && rank < order->ranks; rank++)
        if (mtf_pipeline_in_flight(order, rank) >= most * chunks_for(row, request))
            return false;
    return order != NULL;
}

static gint compare_promises(gconstpointer a, gconstpointer b) {
    double x = ((const Promise *)a)->seconds, y = ((const Promise *)b)->seconds;
    return x < y ? -1 : x > y;
}

/* All other schedules, those that promise most first. */
static GArray *find_promises(const MtfPipelineRequest *request, const MtfPipelinePlan *known) {
    GArray *promises = g_array_new(FALSE, FALSE, sizeof(Promise));
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++) {
        Promise promise = { row, promise_of(row, request, known) };
        if (isfinite(promise.seconds) && strcmp(row->name, known->schedule) != 0)
            g_array_append_val(promises, promise);
    }
    g_array_sort(promises, compare_promises);
    return promises;
}

/* Keeps the faster of two plans, and what both take. */
static void keep_faster(MtfPipelinePlan **best, MtfPipelinePlan *other, cJSON *tried) {
    mtf_json_add_number(tried, other->schedule, step_of(other));
    bool faster = step_of(other) < step_of(*best);
    mtf_pipeline_plan_free(faster ? *best : other);
    if (faster)
        *best = other;
}

static MtfPipelinePlan *search_row(const MtfPipelineRequest *request, MtfStagePlanner *planner,
                                   const MtfPipelineSchedule *row, GError **error) {
    MtfPipelineRequest own = *request;
    own.schedule = row->name;
    own.chunks = chunks_for(row, request);
    return search_with(&own, planner, error);
}

/* Where 1F1B fits nowhere: the first of the schedules that hold less, with `*error` as it was told of
 * 1F1B when these do not fit either. */
static MtfPipelinePlan *search_smaller(const MtfPipelineRequest *request, MtfStagePlanner *planner,
                                       GError **error) {
    for (const MtfPipelineSchedule *row = mtf_pipeline_schedules(); row->name != NULL; row++) {
        MtfPipelinePlan *plan =
            holds_less(row, request) ? search_row(request, planner, row, NULL) : NULL;
        if (plan != NULL) {
            g_clear_error(error);
            return plan;
        }
    }
    return NULL;
}

/* 1F1B, or its kin where domains have several chunks, whose plan gives the times, then the schedules that promise most; those that fit nowhere are
 * passed over. */
static MtfPipelinePlan *search_fastest(const MtfPipelineRequest *request, MtfStagePlanner *planner,
                                       GError **error) {
    GError *cause = NULL;
    const char *first = request->chunks > 1 ? "interleaved" : "1f1b";
    MtfPipelinePlan *best =
        search_row(request, planner, mtf_pipeline_schedule(first, NULL), &cause);
    if (best == NULL && g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT))
        best = search_smaller(request, planner, &cause);
    if (best == NULL) {
        g_propagate_error(error, cause);
        return NULL;
    }
    cJSON *tried = cJSON_CreateObject();
    mtf_json_add_number(tried, best->schedule, step_of(best));
    g_autoptr(GArray) promises = find_promises(request, best);
    guint most = request->stage_meshes != NULL ? SCHEDULES_TRIED_OF_A_CUT : SCHEDULES_TRIED;
    for (guint i = 0; i < promises->len && i < most; i++) {
        if (g_array_index(promises, Promise, i).seconds >= fmin(step_of(best), rival_of(request)))
            break;
        MtfPipelinePlan *other =
            search_row(request, planner, g_array_index(promises, Promise, i).row, NULL);
        if (other != NULL)
            keep_faster(&best, other, tried);
    }
    cJSON_AddItemToObject(best->predicted, "schedules", tried);
    return best;
}

int mtf_pipeline_chunks(const char *name, GError **error) {
    const MtfPipelineSchedule *schedule = mtf_pipeline_schedule(name, error);
    return schedule == NULL ? 0 : mtf_pipeline_schedule_chunks(schedule);
}

MtfPipelinePlan *mtf_pipeline_search(const MtfPipelineRequest *request, GError **error) {
    bool any = strcmp(request->schedule, MTF_ANY_SCHEDULE) == 0;
    MtfStagePlanner planner;
    mtf_stage_planner_init(&planner, &request->search, request->stage_seconds);
    planner.style = request->style;
    planner.prices_only = request->prices_only;
    MtfPipelinePlan *plan =
        any ? search_fastest(request, &planner, error) : search_with(request, &planner, error);
    mtf_stage_planner_clear(&planner);
    return plan;
}
