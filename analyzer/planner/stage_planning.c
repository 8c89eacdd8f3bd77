// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/stage_planning.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/planner/graph_likeness.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/order_search.h"
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
    cJSON *search; /* the plan's */
    MtfStageSeconds seconds;
} Known;

static void known_free(void *data) {
    Known *known = data;
    mtf_graph_free(known->graph);
    mtf_layout_free(known->layout);
    cJSON_Delete(known->search);
    g_free(known);
}

void mtf_stage_planner_init(MtfStagePlanner *planner, const MtfPlanSearchOptions *search,
                            double seconds) {
    *planner = (MtfStagePlanner){ .search = *search,
                                  .seconds = seconds,
                                  .known = g_ptr_array_new_with_free_func(known_free) };
}

void mtf_stage_planner_clear(MtfStagePlanner *planner) {
    g_ptr_array_unref(planner->known);
}

void mtf_stage_planner_next_row(MtfStagePlanner *planner) {
    planner->row++;
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
    return (MtfStageSeconds){ .forward = f / program->microbatches,
                              .input_gradient = (i - f) / program->microbatches,
                              .weight_gradient = (b - i) / program->microbatches,
                              .once = fmax(0, (double)schedule->nanoseconds / 1e9 - b -
                                                  mtf_machine_step_seconds(pricer->machine)),
                              .held_bytes = held_bytes(program) };
}

/* ---- Plans that do again ------------------------------------------------------------------- */

/* Whether the plan of one stage is as good for another, whose graph is alike, where it fits. */
static bool does_again(const MtfStagePlanner *planner, const Known *known,
                       const MtfStageExecution *stage, int64_t limit) {
    const MtfStageExecution *then = &known->layout->execution.stage;
    bool same_row = known->row == planner->row && then->splits_backward == stage->splits_backward &&
                    stage->in_flight <= then->in_flight;
    bool had_no_less = known->limit >= limit && then->in_flight <= stage->in_flight;
    bool had_enough = known->peak_bytes <= SHORT_OF_MEMORY * (double)limit;
    return same_row || had_no_less || had_enough;
}

/* The known layout for a graph like its own; in a program whose backward pass is split as the known one
 * was not, or the other way round, instructions stand in another order. NULL where it does not fit. */
static MtfPlan *plan_again(const Known *known, const MtfGraph *graph,
                           const MtfStageExecution *stage, int64_t limit,
                           MtfStageSeconds *seconds) {
    g_autoptr(MtfLayout) layout = mtf_layout_copy(known->layout);
    bool same_order = layout->execution.stage.splits_backward == stage->splits_backward;
    layout->execution.stage = *stage;
    if (!same_order) {
        mtf_layout_set_order(layout, NULL, 0);
        layout->execution.bucket_bytes = 0;
    }
    g_autoptr(MtfProgram) program =
        same_order ? mtf_lower(graph, layout)
                   : mtf_layout_settle(graph, layout, &known->pricer, limit, NULL, NULL);
    if (!mtf_arena_fits(program, limit))
        return NULL;
    *seconds = same_order ? known->seconds : stage_seconds(&known->pricer, program);
    return mtf_planning_plan_new(mtf_graph_copy(graph), g_steal_pointer(&layout), program,
                                 &known->pricer, cJSON_Duplicate(known->search, true));
}

static MtfPlan *plan_alike(const MtfStagePlanner *planner, const MtfGraph *graph,
                           const MtfStageExecution *stage, const GArray *meshes, int64_t limit,
                           MtfStageSeconds *seconds) {
    int devices = mtf_mesh_size(&g_array_index(meshes, MtfMesh, 0));
    for (guint k = 0; k < planner->known->len; k++) {
        const Known *known = g_ptr_array_index(planner->known, k);
        if (mtf_mesh_size(&known->layout->mesh) != devices ||
            !does_again(planner, known, stage, limit) || !mtf_graphs_are_alike(graph, known->graph))
            continue;
        MtfPlan *plan = plan_again(known, graph, stage, limit, seconds);
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

static void keep(MtfStagePlanner *planner, const MtfPlan *plan, const MtfPricer *pricer,
                 int64_t limit, const MtfStageSeconds *seconds) {
    Known *known = g_new0(Known, 1);
    *known = (Known){ .row = planner->row,
                      .limit = limit,
                      .peak_bytes = mtf_json_number_of(plan->predicted, "peak_memory_bytes", 0),
                      .graph = mtf_graph_copy(plan->graph),
                      .layout = mtf_layout_copy(plan->layout),
                      .pricer = *pricer,
                      .search = cJSON_Duplicate(plan->search, true),
                      .seconds = *seconds };
    g_ptr_array_add(planner->known, known);
}

static MtfPlan *plan_of(const MtfPlanAnswer *answer, const MtfGraph *stage, int64_t limit,
                        MtfStageSeconds *seconds) {
    MtfGraph *graph = mtf_graph_copy(stage);
    MtfLayout *layout = mtf_plan_answer_layout(answer, graph);
    reduce_before_sending(graph, layout);
    g_autoptr(MtfProgram) program =
        mtf_layout_settle(graph, layout, &answer->pricer, limit, NULL, NULL);
    *seconds = stage_seconds(&answer->pricer, program);
    return mtf_planning_plan_new(graph, layout, program, &answer->pricer,
                                 mtf_plan_answer_to_json(answer, limit));
}

/* Gives the answer the standard layout; it has none where the problem lacks one of its strategies. */
static void take_standard(MtfPlanAnswer *answer, MtfFreeProblem *problem, int style,
                          int64_t limit) {
    const MtfGraph *graph = mtf_free_problem_graph(problem);
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(problem);
    for (guint i = 0; i < standards->len && !answer->found; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        if (standard->style != style)
            continue;
        MtfFreeAnswer *free = &answer->free;
        free->layout = mtf_free_problem_layout(problem, standard->choice);
        free->method = g_strdup_printf("made by hand: %s", standard->name);
        g_autoptr(MtfProgram) program = mtf_lower(graph, free->layout);
        free->cost = answer->cost = answer->in_order_cost =
            mtf_price_program(&answer->pricer, program);
        free->arena_bytes =
            mtf_layout_arena_bytes(graph, free->layout, program, &answer->pricer, limit);
        answer->found = free->arena_bytes <= limit;
    }
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

MtfPlan *mtf_stage_planner_plan(MtfStagePlanner *planner, const MtfGraph *graph,
                                const MtfStageExecution *stage, const GArray *meshes, int64_t limit,
                                MtfStageSeconds *seconds, GError **error) {
    MtfPlan *plan = plan_alike(planner, graph, stage, meshes, limit, seconds);
    if (plan != NULL)
        return plan;
    MtfPlanSearchOptions search = planner->search;
    MtfSearchControl control;
    MtfPlanAnswer answer = { 0 };
    mtf_search_control_init(&control, planner->seconds);
    search.control = &control;
    search.memory_limit = limit;
    search.stage = *stage;
    bool done = planner->style != NULL ? lay_out(graph, &g_array_index(meshes, MtfMesh, 0), &search,
                                                 *planner->style, &answer, error)
                                       : mtf_plan_search(graph, meshes, &search, &answer, error);
    if (done && answer.found) {
        plan = plan_of(&answer, graph, limit, seconds);
        keep(planner, plan, &answer.pricer, limit, seconds);
    }
    mtf_plan_answer_clear(&answer);
    return plan;
}
