// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/stage_planning.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/planner/graph_likeness.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/summary/framework_memory.h"
#include "cost/tune/order_search.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <math.h>

/* A layout that takes no more than this share of the memory was not chosen for what it takes. */
#define SHORT_OF_MEMORY 0.5

/* A stage that was searched. */
typedef struct {
    int row;
    int64_t limit;
    double peak_bytes;
    MtfGraph *graph;
    MtfLayout *layout;
    MtfPricer pricer;
    cJSON *search; /* the plan's; NULL: it was priced only */
    MtfStageSeconds seconds;
    MtfFrameworkMemory memory; /* of one that was priced only */
} Known;

static void known_free(void *data) {
    Known *known = data;
    mtf_graph_free(known->graph);
    mtf_layout_free(known->layout);
    cJSON_Delete(known->search);
    g_free(known);
}

/* What a search has found for a task of the row. */
typedef struct {
    const MtfStagePlanner *planner;
    int task;
    MtfPlan *plan;         /* NULL: none fits, and then */
    int64_t enough, least; /* as of MtfStagePlanner */
    MtfPricer pricer;
    MtfStageSeconds seconds;
    MtfFrameworkMemory memory;
    GError *error;
} Search;

static void search_free(void *data) {
    Search *search = data;
    mtf_plan_free(search->plan);
    g_clear_error(&search->error);
    g_free(search);
}

void mtf_stage_planner_init(MtfStagePlanner *planner, const MtfPlanSearchOptions *search,
                            double seconds) {
    *planner = (MtfStagePlanner){ .search = *search,
                                  .seconds = seconds,
                                  .paths = mtf_known_paths_new(),
                                  .known = g_ptr_array_new_with_free_func(known_free),
                                  .ahead = g_ptr_array_new_with_free_func(search_free) };
}

void mtf_stage_planner_clear(MtfStagePlanner *planner) {
    g_ptr_array_unref(planner->known);
    g_ptr_array_unref(planner->ahead);
    mtf_known_paths_unref(planner->paths);
}

void mtf_stage_planner_next_row(MtfStagePlanner *planner, const MtfStageTask *tasks, int n) {
    planner->row++;
    planner->tasks = tasks;
    planner->n_tasks = n;
    g_ptr_array_set_size(planner->ahead, 0);
}

/* ---- Times --------------------------------------------------------------------------------- */

static double last_end(const MtfSchedule *schedule, int from, int to) {
    int64_t end = 0;
    for (int i = from; i < to; i++)
        end = MAX(end, schedule->ends[i]);
    return (double)end / 1e9;
}

static double held_bytes(const MtfProgram *program) {
    double bytes = 0;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage == b && buffer->slots > 1)
            bytes += (double)mtf_buffer_stride(buffer);
    }
    return bytes;
}

static MtfStageSeconds stage_seconds(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    int forward = MIN(mtf_program_forward(program), program->n_repeated);
    double f = last_end(schedule, 0, forward);
    double i = fmax(f, last_end(schedule, 0, program->weight_gradients));
    double b = fmax(i, last_end(schedule, 0, program->n_repeated));
    double once =
        (double)schedule->nanoseconds / 1e9 - b - mtf_machine_step_seconds(pricer->machine);
    return (MtfStageSeconds){ .forward = f / program->microbatches,
                              .input_gradient = (i - f) / program->microbatches,
                              .weight_gradient = (b - i) / program->microbatches,
                              .once = fmax(0, once),
                              .held_bytes = held_bytes(program) };
}

static int devices_of(const MtfStageTask *task) {
    return mtf_mesh_size(&g_array_index(task->meshes, MtfMesh, 0));
}

/* What the pipeline's schedule, transfers and memory are priced by, and nothing else. Takes over the layout. */
static MtfPlan *bare_plan(const MtfGraph *graph, MtfLayout *layout,
                          const MtfFrameworkMemory *memory) {
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->graph = mtf_graph_copy(graph);
    plan->layout = layout;
    plan->predicted = cJSON_CreateObject();
    mtf_framework_memory_add(plan->predicted, memory);
    return plan;
}

/* ---- Plans that do again ------------------------------------------------------------------- */

/* Whether a plan as it was searched for then does for a task, whose graph is alike and has as many devices, where it
 * fits: of the same row with no fewer micro-batches in flight. */
static bool holds_more(const MtfStageExecution *then, const MtfStageTask *task) {
    return then->splits_backward == task->execution.splits_backward &&
           task->execution.in_flight <= then->in_flight;
}

/* Whether the plan of one stage is as good for another, where it fits. */
static bool does_again(const MtfStagePlanner *planner, const Known *known,
                       const MtfStageTask *task) {
    const MtfStageExecution *then = &known->layout->execution.stage;
    bool same_row = known->row == planner->row && holds_more(then, task);
    bool had_no_less = known->limit >= task->limit && then->in_flight <= task->execution.in_flight;
    bool had_enough = known->peak_bytes <= SHORT_OF_MEMORY * (double)task->limit;
    return mtf_mesh_size(&known->layout->mesh) == devices_of(task) &&
           (same_row || had_no_less || had_enough) &&
           mtf_graphs_are_alike(task->graph, known->graph);
}

/* The known layout for a graph like its own; in a program whose backward pass is split as the known one
 * was not, or the other way round, instructions stand in another order. NULL where it does not fit. */
static MtfPlan *plan_again(const Known *known, const MtfStageTask *task, MtfStageSeconds *seconds) {
    const MtfGraph *graph = task->graph;
    g_autoptr(MtfLayout) layout = mtf_layout_copy(known->layout);
    bool same_order = layout->execution.stage.splits_backward == task->execution.splits_backward;
    layout->execution.stage = task->execution;
    if (known->search == NULL) {
        *seconds = known->seconds;
        return same_order ? bare_plan(graph, g_steal_pointer(&layout), &known->memory) : NULL;
    }
    if (!same_order) {
        mtf_layout_set_order(layout, NULL, 0);
        layout->execution.bucket_bytes = 0;
    }
    g_autoptr(MtfProgram) program =
        same_order ? mtf_lower(graph, layout)
                   : mtf_layout_settle(graph, layout, &known->pricer,
                                       &(MtfSettling){ .memory_limit = task->limit });
    if (!mtf_arena_fits(program, task->limit))
        return NULL;
    *seconds = same_order ? known->seconds : stage_seconds(&known->pricer, program);
    return mtf_planning_plan_new(mtf_graph_copy(graph), g_steal_pointer(&layout), program,
                                 &known->pricer, cJSON_Duplicate(known->search, true));
}

static MtfPlan *plan_alike(const MtfStagePlanner *planner, const MtfStageTask *task,
                           MtfStageSeconds *seconds) {
    for (guint k = 0; k < planner->known->len; k++) {
        const Known *known = g_ptr_array_index(planner->known, k);
        MtfPlan *plan = does_again(planner, known, task) ? plan_again(known, task, seconds) : NULL;
        if (plan != NULL)
            return plan;
    }
    return NULL;
}

/* ---- Search -------------------------------------------------------------------------------- */

/* What other stages read is kept without pending reductions, which no transfer makes. The search
 * offers nothing else; layouts that begin it (standard ones, rules) may. Instructions that reduce are
 * new to an order that was found without them, which goes then. */
static void reduce_before_sending(const MtfGraph *graph, MtfLayout *layout) {
    bool reduced = false;
    for (int t = 0; t < layout->n_tensors; t++) {
        unsigned partial = mtf_placement_partial_axes(&layout->tensors[t]);
        for (int a = 0; a < layout->mesh.n_axes; a++)
            if (mtf_graph_tensor(graph, t)->is_sent && (partial >> a & 1) != 0) {
                layout->tensors[t].axis[a] = MTF_REPLICATED;
                reduced = true;
            }
    }
    if (reduced)
        mtf_layout_set_order(layout, NULL, 0);
}

static void keep(MtfStagePlanner *planner, const MtfPlan *plan, const Search *search,
                 int64_t limit) {
    Known *known = g_new0(Known, 1);
    *known = (Known){ .row = planner->row,
                      .limit = limit,
                      .peak_bytes = mtf_json_number_of(plan->predicted, "peak_memory_bytes", 0),
                      .graph = mtf_graph_copy(plan->graph),
                      .layout = mtf_layout_copy(plan->layout),
                      .pricer = search->pricer,
                      .search = cJSON_Duplicate(plan->search, true),
                      .seconds = search->seconds,
                      .memory = search->memory };
    g_ptr_array_add(planner->known, known);
}

static MtfPlan *plan_of(const MtfPlanAnswer *answer, const MtfGraph *stage, int64_t limit,
                        MtfStageSeconds *seconds) {
    MtfGraph *graph = mtf_graph_copy(stage);
    MtfLayout *layout = mtf_plan_answer_layout(answer, graph);
    reduce_before_sending(graph, layout);
    g_autoptr(MtfProgram) program =
        mtf_layout_settle(graph, layout, &answer->pricer, &(MtfSettling){ .memory_limit = limit });
    *seconds = stage_seconds(&answer->pricer, program);
    return mtf_planning_plan_new(graph, layout, program, &answer->pricer,
                                 mtf_plan_answer_to_json(answer, limit));
}

/* Gives the answer the standard layout; it has none where the problem lacks one of its strategies. */
static void take_standard(MtfPlanAnswer *answer, MtfFreeProblem *problem, int style,
                          int64_t limit) {
    const MtfGraph *graph = mtf_free_problem_graph(problem);
    g_autoptr(MtfStandardLayout) standard = mtf_standard_layout(problem, style);
    if (standard == NULL)
        return;
    MtfFreeAnswer *free = &answer->free;
    free->layout = mtf_free_problem_layout(problem, standard->choice);
    free->method = g_strdup_printf("made by hand: %s", standard->name);
    g_autoptr(MtfProgram) program = mtf_lower(graph, free->layout);
    free->cost = answer->cost = answer->in_order_cost = mtf_price_program(&answer->pricer, program);
    free->arena_bytes =
        mtf_layout_arena_bytes(graph, free->layout, program, &answer->pricer, limit);
    answer->found = free->arena_bytes <= limit;
}

/* The standard layout instead of a search. */
static bool lay_out(const MtfGraph *graph, const MtfMesh *mesh, const MtfPlanSearchOptions *search,
                    int style, MtfPlanAnswer *answer, GError **error) {
    *answer = (MtfPlanAnswer){ .meshes = 1, .in_order = true };
    if (!mtf_pricer_init(&answer->pricer, search->machine, mesh, error))
        return false;
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new(graph, mesh, &answer->pricer, NULL, 0, error);
    if (problem == NULL)
        return false;
    mtf_free_problem_set_stage(problem, &search->stage);
    take_standard(answer, problem, style, search->memory_limit);
    return true;
}

/* PyTorch's DistributedDataParallel sums gradients in messages of this many bytes (bucket_cap_mb). */
#define FRAMEWORK_BUCKET (25 << 20)

/* The standard layout as it stands, run in the order of the graph. */
static void price_task(Search *own) {
    const MtfStagePlanner *planner = own->planner;
    const MtfStageTask *task = &planner->tasks[own->task];
    const MtfMesh *mesh = &g_array_index(task->meshes, MtfMesh, 0);
    if (!mtf_pricer_init(&own->pricer, planner->search.machine, mesh, &own->error))
        return;
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new_sharing(task->graph, mesh, &own->pricer, planner->paths);
    if (problem != NULL)
        mtf_free_problem_set_stage(problem, &task->execution);
    g_autoptr(MtfStandardLayout) standard =
        problem != NULL ? mtf_standard_layout(problem, *planner->style) : NULL;
    if (standard == NULL) {
        mtf_failure(&own->error, "stage %d has no layout of that kind", own->task);
        return;
    }
    MtfLayout *layout = mtf_free_problem_layout(problem, standard->choice);
    reduce_before_sending(task->graph, layout);
    layout->execution.bucket_bytes = FRAMEWORK_BUCKET;
    g_autoptr(MtfProgram) program = mtf_lower(task->graph, layout);
    own->seconds = stage_seconds(&own->pricer, program);
    const MtfSoftware *software = planner->search.machine->software;
    if (software != NULL)
        own->memory = mtf_framework_memory(program, software);
    own->plan = bare_plan(task->graph, layout, &own->memory);
}

static void search_task(int i, void *data) {
    Search *own = g_ptr_array_index((GPtrArray *)data, i);
    const MtfStagePlanner *planner = own->planner;
    const MtfStageTask *task = &planner->tasks[own->task];
    if (planner->prices_only) {
        price_task(own);
        return;
    }
    MtfPlanSearchOptions search = planner->search;
    MtfSearchControl control;
    MtfPlanAnswer answer = { 0 };
    mtf_search_control_init(&control, planner->seconds);
    search.control = &control;
    search.memory_limit = task->limit;
    search.stage = task->execution;
    bool done = planner->style != NULL
                    ? lay_out(task->graph, &g_array_index(task->meshes, MtfMesh, 0), &search,
                              *planner->style, &answer, &own->error)
                    : mtf_plan_search(task->graph, task->meshes, &search, &answer, &own->error);
    if (done && answer.found) {
        own->plan = plan_of(&answer, task->graph, task->limit, &own->seconds);
        own->pricer = answer.pricer;
    }
    own->enough = answer.free.limit_enough;
    own->least = answer.free.limit_bound;
    mtf_plan_answer_clear(&answer);
}

/* ---- Two at once --------------------------------------------------------------------------- */

/* Whether a plan that is known, or that of an earlier task once it is found, is likely to do for another. */
static bool is_spared(const MtfStagePlanner *planner, int earlier, int other) {
    const MtfStageTask *first = &planner->tasks[earlier], *task = &planner->tasks[other];
    for (guint k = 0; k < planner->known->len; k++)
        if (does_again(planner, g_ptr_array_index(planner->known, k), task))
            return true;
    return devices_of(first) == devices_of(task) && holds_more(&first->execution, task) &&
           mtf_graphs_are_alike(first->graph, task->graph);
}

static Search *search_new(const MtfStagePlanner *planner, int task) {
    Search *search = g_new0(Search, 1);
    search->planner = planner;
    search->task = task;
    return search;
}

/* Searches a task, and beside it the next that will have to be searched; but where seconds are given those that each
 * has are its own. */
static void search_two(MtfStagePlanner *planner, int task) {
    int next = task + 1;
    while (next < planner->n_tasks && (planner->seconds > 0 || is_spared(planner, task, next)))
        next++;
    g_ptr_array_add(planner->ahead, search_new(planner, task));
    if (next < planner->n_tasks)
        g_ptr_array_add(planner->ahead, search_new(planner, next));
    mtf_in_parallel((int)planner->ahead->len, search_task, planner->ahead);
}

/* What the search of a task has found. */
static Search *take_search(MtfStagePlanner *planner, int task) {
    for (guint i = 0; i < planner->ahead->len; i++)
        if (((Search *)g_ptr_array_index(planner->ahead, i))->task == task)
            return g_ptr_array_steal_index(planner->ahead, i);
    g_ptr_array_set_size(planner->ahead, 0); /* that stage had another's plan in the end */
    search_two(planner, task);
    return g_ptr_array_steal_index(planner->ahead, 0);
}

MtfPlan *mtf_stage_planner_plan(MtfStagePlanner *planner, int task, MtfStageSeconds *seconds,
                                GError **error) {
    const MtfStageTask *own = &planner->tasks[task];
    MtfPlan *plan = plan_alike(planner, own, seconds);
    if (plan != NULL)
        return plan;
    Search *search = take_search(planner, task);
    plan = g_steal_pointer(&search->plan);
    if (search->error != NULL)
        g_propagate_error(error, g_steal_pointer(&search->error));
    if (plan != NULL) {
        *seconds = search->seconds;
        keep(planner, plan, search, own->limit);
    }
    planner->enough = search->enough;
    planner->least = search->least;
    search_free(search);
    return plan;
}
