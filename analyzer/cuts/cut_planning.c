// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/cut_planning.h"

#include "analyzer/training/stage_cut.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Cuts whose model promises no more than this times the best one's step are planned, too. */
#define PROMISING 1.2
/* Of graphs with no more operations, and no more of them times devices, all cuts that may win are planned. */
#define SMALL_OPERATIONS 500
#define SMALL_PLACES 5000
/* Cuts are made for these shares of a device's memory: amounts of a scale, this many of them in an octave. */
#define LEAST_SHARE 0.4
#define MOST_SHARE 3.0
#define AMOUNTS_AN_OCTAVE 3
/* What would do is looked for in so many steps of twice the memory, and then of half the way back. */
#define DOUBLINGS 5
#define HALVINGS 2

typedef struct {
    const MtfCutPlanning *asked;
    MtfCutSearch *search;
    GPtrArray *planned; /* MtfCutPlan: all that were */
    bool small;
    bool one_mesh; /* is what the model finds best */
    const MtfCutPlan *chosen;
    MtfCutAnswer *answer;
    GError *cause; /* the first error */
} Trials;

static double step_of(const MtfPipelinePlan *pipeline) {
    return mtf_json_number_of(pipeline->predicted, "step_seconds", INFINITY);
}

static double best_step(const Trials *trials) {
    return trials->answer->plan != NULL ? step_of(trials->answer->plan) : INFINITY;
}

/* ---- One cut --------------------------------------------------------------------------------- */

static bool is_same_stage(const MtfCutStage *a, const MtfCutStage *b) {
    return a->first == b->first && a->end == b->end && mtf_mesh_equal(&a->mesh, &b->mesh) &&
           a->recompute == b->recompute;
}

static bool is_same_cut(const MtfCutPlan *a, const MtfCutPlan *b) {
    bool same = a->chunks == b->chunks && a->stages->len == b->stages->len &&
                a->variant.microbatches == b->variant.microbatches;
    for (guint s = 0; same && s < a->stages->len; s++)
        same = is_same_stage(&g_array_index(a->stages, MtfCutStage, s),
                             &g_array_index(b->stages, MtfCutStage, s));
    return same;
}

static bool is_planned(const Trials *trials, const MtfCutPlan *cut) {
    for (guint i = 0; i < trials->planned->len; i++)
        if (is_same_cut(cut, g_ptr_array_index(trials->planned, i)))
            return true;
    return false;
}

/* Whether the cut may win, by the model: those that promise more than the best step found, however much
 * that one's cut has promised; and of the device's own memory those that promise little less than it. */
static bool may_win(const Trials *trials, const MtfCutPlan *cut, bool natural) {
    if (trials->answer->plan == NULL)
        return true;
    double promised = trials->chosen->seconds * (natural ? PROMISING : 1);
    return cut->seconds <= promised || cut->seconds < best_step(trials);
}

static void keep_recomputation(MtfCutAnswer *answer, guint stages) {
    const MtfRecompute *each = answer->variant.recompute_of_stage;
    g_free(answer->recompute);
    answer->recompute = each != NULL ? g_memdup2(each, sizeof *each * stages) : NULL;
    answer->variant.recompute_of_stage = answer->recompute;
}

/* Plans the request; keeps what it finds where that is faster than all before. */
static bool plan_request(Trials *trials, MtfPipelineRequest *request) {
    GError *cause = NULL;
    request->rival_seconds = isfinite(best_step(trials)) ? best_step(trials) : 0;
    MtfPipelinePlan *plan = mtf_pipeline_search(request, &cause);
    if (cause != NULL && trials->cause == NULL)
        trials->cause = g_steal_pointer(&cause);
    g_clear_error(&cause);
    if (plan == NULL || step_of(plan) >= best_step(trials)) {
        mtf_pipeline_plan_free(plan);
        return false;
    }
    mtf_pipeline_plan_free(trials->answer->plan);
    trials->answer->plan = plan;
    trials->answer->variant = request->form;
    keep_recomputation(trials->answer, plan->stages->len);
    return true;
}

/* The mesh of each stage alone, that the cut was priced on. */
static GPtrArray *list_stage_meshes(const MtfCutPlan *cut) {
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (guint s = 0; s < cut->stages->len; s++) {
        GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
        g_array_append_val(meshes, g_array_index(cut->stages, MtfCutStage, s).mesh);
        g_ptr_array_add(list, meshes);
    }
    return list;
}

/* The request for a cut, which begins with what was asked. */
static void fill_request(const Trials *trials, const MtfCutPlan *cut, MtfPipelineRequest *request) {
    *request = trials->asked->pipeline;
    request->chunks = cut->chunks;
    request->stages = (int)cut->stages->len / cut->chunks;
    request->form = cut->variant;
    request->form.recomputed_layers = trials->asked->pipeline.form.recomputed_layers;
    if (trials->asked->cut.megatron) {
        request->style = &g_array_index(cut->stages, MtfCutStage, 0).style;
        request->schedule = cut->chunks > 1 ? "interleaved" : "1f1b";
    }
}

static void plan_cut(Trials *trials, const MtfCutPlan *cut) {
    MtfPipelineRequest request;
    fill_request(trials, cut, &request);
    g_autoptr(MtfGraph) graph = mtf_graph_copy(trials->asked->cut.forward);
    g_autoptr(GPtrArray) meshes = list_stage_meshes(cut);
    mtf_cut_plan_apply(cut, graph);
    request.written = graph;
    request.stage_meshes = meshes;
    if (plan_request(trials, &request))
        trials->chosen = cut;
}

/* ---- Amounts of memory ----------------------------------------------------------------------- */

static bool is_unfit(const GError *cause) {
    return cause == NULL || g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT) ||
           g_error_matches(cause, MTF_ERROR, MTF_ERROR_FAILED);
}

/* Plans those of the cuts that may win. */
static void plan_cuts(Trials *trials, GPtrArray *cuts, bool natural) {
    while (cuts->len > 0) {
        MtfCutPlan *cut = g_ptr_array_steal_index(cuts, 0);
        bool wanted =
            cut->stages->len > 1 && !is_planned(trials, cut) && may_win(trials, cut, natural);
        if (!wanted) {
            mtf_cut_plan_free(cut);
            continue;
        }
        g_ptr_array_add(trials->planned, cut);
        plan_cut(trials, cut);
    }
}

/* Plans the cuts for so much memory; false where the model has none. */
static bool try_amount(Trials *trials, int64_t memory) {
    GError *cause = NULL;
    bool natural = memory == trials->asked->cut.memory;
    g_autoptr(GPtrArray) cuts = mtf_cut_search_within(trials->search, memory, &cause);
    if (cause != NULL && trials->cause == NULL)
        trials->cause = g_steal_pointer(&cause);
    g_clear_error(&cause);
    if (cuts == NULL)
        return false;
    const MtfCutPlan *first = g_ptr_array_index(cuts, 0);
    trials->answer->tried = MAX(trials->answer->tried, first->tried);
    trials->one_mesh |= natural && first->stages->len == 1;
    if (trials->one_mesh)
        return true;
    plan_cuts(trials, cuts, natural);
    if (!trials->small)
        return true;
    /* Those within layers, and those of stages of different size, promise more, by little, and keep it no better. */
    g_autoptr(GPtrArray) between = mtf_cut_search_between_layers(trials->search, memory, NULL);
    g_autoptr(GPtrArray) equal = mtf_cut_search_equal(trials->search, memory, NULL);
    if (between != NULL)
        plan_cuts(trials, between, natural);
    if (equal != NULL)
        plan_cuts(trials, equal, natural);
    return true;
}

/* Amounts of the scale from the device's memory on, up or down, until a pipeline fits; of a small graph to
 * the end. */
static void try_amounts(Trials *trials, int step) {
    double memory = (double)trials->asked->cut.memory;
    double at = log2(memory) * AMOUNTS_AN_OCTAVE;
    for (double k = step > 0 ? floor(at) + 1 : ceil(at) - 1; is_unfit(trials->cause); k += step) {
        double amount = exp2(k / AMOUNTS_AN_OCTAVE);
        bool enough = trials->answer->plan != NULL && !trials->small;
        if (enough || amount > MOST_SHARE * memory || amount < LEAST_SHARE * memory)
            return;
        try_amount(trials, (int64_t)amount);
    }
}

/* Stages of equal work, in the numbers of a cut. */
static void plan_equal_work(Trials *trials, const MtfCutPlan *cut) {
    const MtfCutRequest *asked = &trials->asked->cut;
    MtfPipelineRequest request;
    fill_request(trials, cut, &request);
    if (asked->devices % request.stages != 0)
        return;
    g_autoptr(MtfGraph) graph = mtf_graph_copy(asked->forward);
    g_autoptr(GArray) meshes = mtf_cut_meshes(asked, asked->devices / request.stages, NULL);
    if (meshes == NULL || !mtf_cut_stages(graph, request.stages * request.chunks, NULL))
        return;
    request.written = graph;
    request.meshes = meshes;
    plan_request(trials, &request);
}

/* Whether an earlier cut has these numbers. */
static bool is_first_of_numbers(const Trials *trials, guint i) {
    const MtfCutPlan *cut = g_ptr_array_index(trials->planned, i);
    for (guint k = 0; k < i; k++) {
        const MtfCutPlan *other = g_ptr_array_index(trials->planned, k);
        bool alike = cut->recompute == NULL && other->recompute == NULL &&
                     cut->variant.recompute == other->variant.recompute;
        if (alike && cut->chunks == other->chunks && cut->stages->len == other->stages->len &&
            cut->variant.microbatches == other->variant.microbatches)
            return false;
    }
    return true;
}

/* In the numbers of all cuts that promise no less than what leads, nearly. */
static void try_equal_work(Trials *trials) {
    for (guint i = 0; i < trials->planned->len; i++) {
        const MtfCutPlan *cut = g_ptr_array_index(trials->planned, i);
        if (is_first_of_numbers(trials, i) && cut->seconds <= PROMISING * trials->chosen->seconds)
            plan_equal_work(trials, cut);
    }
}

static void try_all(Trials *trials) {
    bool found = trials->answer->modelled = try_amount(trials, trials->asked->cut.memory);
    if (trials->one_mesh || !is_unfit(trials->cause))
        return;
    if (trials->small || !found)
        try_amounts(trials, 1);
    if (trials->small || found)
        try_amounts(trials, -1);
    const MtfCutRequest *cut = &trials->asked->cut;
    if (trials->small && trials->chosen != NULL && !cut->megatron && !cut->between_layers)
        try_equal_work(trials);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static MtfCutPlan *take_chosen(Trials *trials) {
    guint index;
    bool found =
        trials->chosen != NULL && g_ptr_array_find(trials->planned, trials->chosen, &index);
    return found ? g_ptr_array_steal_index(trials->planned, index) : NULL;
}

static bool is_small(const MtfCutRequest *cut) {
    int64_t operations = cut->forward->operations->len;
    return operations <= SMALL_OPERATIONS && operations * cut->devices <= SMALL_PLACES;
}

bool mtf_cut_planning_search(const MtfCutPlanning *planning, MtfCutAnswer *answer, GError **error) {
    *answer = (MtfCutAnswer){ 0 };
    MtfCutRequest wanted = planning->cut;
    bool small = is_small(&wanted);
    wanted.each_number = small && !wanted.megatron;
    Trials trials = { .asked = planning,
                      .search = mtf_cut_search_new(&wanted),
                      .planned = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_cut_plan_free),
                      .small = small,
                      .answer = answer };
    try_all(&trials);
    answer->cut = take_chosen(&trials);
    bool good = trials.one_mesh || answer->plan != NULL;
    if (good)
        g_clear_error(&trials.cause);
    else
        g_propagate_error(error, g_steal_pointer(&trials.cause));
    g_ptr_array_unref(trials.planned);
    mtf_cut_search_free(trials.search);
    return good;
}

/* The bytes a device that stages need which are found within so many; 0: there are none. */
static int64_t needed_within(const MtfCutPlanning *planning, int64_t memory) {
    MtfCutPlanning other = *planning;
    MtfCutAnswer answer;
    double bytes = 0;
    other.cut.memory = other.pipeline.search.memory_limit = memory;
    if (mtf_cut_planning_search(&other, &answer, NULL) && answer.plan != NULL)
        bytes = fmax(mtf_pipeline_peak_bytes(answer.plan),
                     mtf_json_number_of(answer.plan->predicted, "given_bytes", 0));
    mtf_cut_answer_clear(&answer);
    return (int64_t)ceil(bytes);
}

/* The smallest limit found within which stages are found, first within twice the memory, or four times, …; then
 * halfway to what did not do. 0: none. */
static int64_t find_enough(const MtfCutPlanning *planning) {
    int64_t low = planning->cut.memory, limit = low, needed = 0;
    for (int k = 0; k < DOUBLINGS && needed == 0 && limit <= INT64_MAX / 2; k++) {
        low = limit;
        limit *= 2;
        needed = needed_within(planning, limit);
    }
    for (int k = 0; k < HALVINGS && needed > low; k++) {
        int64_t middle = low + (needed - low) / 2, less = needed_within(planning, middle);
        low = less > 0 ? low : middle;
        limit = less > 0 ? middle : limit;
        needed = less > 0 ? less : needed;
    }
    /* Who is given no more than a plan needs may be given another cut. */
    return needed > 0 && needed_within(planning, needed) == 0 ? limit : needed;
}

void mtf_cut_planning_say_enough(const MtfCutPlanning *planning, GError **cause) {
    int64_t found = find_enough(planning);
    g_autofree char *limit = mtf_bytes_format((double)planning->cut.memory);
    g_autofree char *enough = mtf_bytes_format((double)found);
    g_autofree char *would =
        found > 0
            ? g_strdup_printf("the smallest limit found that would do is %s (--memory %" PRId64 ")",
                              enough, found)
            : g_strdup_printf("%d times as much is not enough", 1 << DOUBLINGS);
    g_clear_error(cause);
    g_set_error(cause, MTF_ERROR, MTF_ERROR_FIT,
                "no cut into stages fits in %s a device under the layouts tried: %s; more devices, "
                "smaller micro-batches or --recompute layers need less",
                limit, would);
}

void mtf_cut_answer_clear(MtfCutAnswer *answer) {
    mtf_pipeline_plan_free(answer->plan);
    mtf_cut_plan_free(answer->cut);
    g_free(answer->recompute);
    *answer = (MtfCutAnswer){ 0 };
}
