// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/best_attempt.h"

#include "analyzer/free/alternatives.h"
#include "analyzer/layout_search/accompanied_search.h"
#include "cost/summary/framework_memory.h"

#include <math.h>

/* Where the user sets no gap, what ended within this of its bound goes on to the optimum. */
#define STANDARD_GAP 0.001

/* ---- The proof ------------------------------------------------------------------------------- */

const MtfIncumbent *mtf_best_fastest(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    int64_t limit = search->options->memory_limit;
    bool measures = !mtf_plan_search_is_large(search) || search->options->frontier > 0;
    if (!measures && mtf_plan_search_is_late(search))
        mtf_incumbents_drop_unmeasured(best->incumbents);
    if (measures || best->begun)
        return mtf_incumbents_fastest(best->incumbents, limit);
    const MtfIncumbent *fastest = NULL;
    g_autoptr(GPtrArray) fitting = mtf_incumbents_fitting(best->incumbents, limit);
    for (guint i = 0; i < fitting->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(fitting, i);
        if (fastest == NULL || incumbent->step_seconds < fastest->step_seconds)
            fastest = incumbent;
    }
    return fastest;
}

/* Whether a proof would say more than is known. */
static bool may_prove(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    const MtfFreeAnswer *found = &best->free;
    return found->layout != NULL && best->problem != NULL && found->cost > found->bound &&
           !mtf_plan_search_is_late(search);
}

/* The shortest step known: where transfers can be hidden, the plan may be another layout than the cheapest. Of
 * very large graphs others take long to measure, and differ alike in all variants. */
static double known_step(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    double step = best->free.step_seconds;
    bool measures = search->options->machine->overlap &&
                    search->graph->operations->len <= MTF_VERY_LARGE_OPERATIONS;
    const MtfIncumbent *fastest = measures ? mtf_best_fastest(search, best) : NULL;
    return fastest != NULL ? fmin(step, fastest->step_seconds) : step;
}

bool mtf_best_loses(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    const MtfPlanSearchOptions *options = search->options;
    if (options->race == NULL || options->frontier > 0 || best->free.layout == NULL)
        return false;
    if (mtf_plan_search_is_large(search))
        return best->free.bound == 0 && may_prove(search, best) &&
               !mtf_variant_race_wins(options->race, options->runner, known_step(search, best));
    if (!options->by_bound)
        return false;
    mtf_variant_race_enter(options->race, options->runner, known_step(search, best));
    return mtf_variant_race_trails(options->race, options->runner);
}

/* Whether a layout's program leaves the software enough of the limit. */
static bool can_run(const MtfPlanSearch *search, const MtfLayout *layout) {
    const MtfPlanSearchOptions *options = search->options;
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    MtfFrameworkMemory memory = mtf_framework_memory(program, options->machine->software);
    return memory.given <= (double)options->memory_limit;
}

/* Whether the search goes on under a lower limit as it is: the software cannot run what was found, of whose optimum
 * nothing is asked then. */
static bool is_too_large(const MtfPlanSearch *search, const MtfFreeAnswer *found) {
    const MtfPlanSearchOptions *options = search->options;
    return options->runs && options->machine->software != NULL && !can_run(search, found->layout);
}

/* Whether the best answer is to be proven better than it is: a draft; and where the user sets no gap,
 * what ended at the standard one. */
static bool should_prove(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    const MtfFreeAnswer *found = &best->free;
    int64_t left = found->cost - found->bound;
    if (!may_prove(search, best))
        return false;
    return mtf_plan_search_is_large(search)
               ? found->bound == 0
               : !search->options->has_gap &&
                     (double)left > search->options->proof_gap * (double)found->cost &&
                     (double)left <= STANDARD_GAP * (double)found->cost &&
                     !is_too_large(search, found);
}

/* Searches for the proof, unless its bound says first that the step is hopeless beside the rival's: a draft has none. */
static bool prove(const MtfPlanSearch *search, MtfMeshAttempt *best,
                  const MtfFreeSearchOptions *options, MtfFreeAnswer *better, GError **error) {
    GError *cause = NULL;
    MtfSearchControl part;
    _Atomic int64_t hopeless = mtf_mesh_attempt_hopeless(search, best);
    mtf_plan_search_begin_part(search, &hopeless, &part);
    part.also = search->control;
    MtfFreeSearchOptions proof = *options;
    proof.control = &part;
    if (mtf_search_accompanied(search, best, &proof, true, better, &cause))
        return true;
    mtf_free_answer_clear(better);
    best->hopeless = mtf_search_is_beaten(&part, hopeless);
    if (best->hopeless)
        g_error_free(cause);
    else
        g_propagate_error(error, cause);
    return best->hopeless;
}

bool mtf_best_prove(const MtfPlanSearch *search, MtfMeshAttempt *best, GError **error) {
    MtfFreeAnswer *found = &best->free;
    if (!should_prove(search, best))
        return true;
    mtf_mesh_attempt_keep_found(best);
    MtfFreeSearchOptions options = mtf_mesh_attempt_options(search, best);
    options.prices = mtf_plan_search_is_large(search) ? found->prices : NULL;
    options.gap =
        mtf_plan_search_is_large(search) ? mtf_plan_search_gap(search) : search->options->proof_gap;
    MtfFreeAnswer better = { 0 };
    if (!prove(search, best, &options, &better, error) || best->hopeless)
        return best->hopeless;
    int64_t bound = MIN(MAX(better.bound, found->bound), better.cost);
    g_autofree char *method =
        g_strdup(better.bound >= found->bound ? better.method : found->method);
    if (better.cost < found->cost) {
        MtfFreeAnswer worse = *found;
        *found = better;
        better = worse;
        mtf_settled_layout_clear(&best->settled);
    }
    mtf_free_answer_clear(&better);
    found->bound = bound;
    g_free(found->method);
    found->method = g_steal_pointer(&method);
    best->cost = found->cost;
    return true;
}

void mtf_best_explain(MtfMeshAttempt *best, const MtfLayout *layout) {
    int nodes = mtf_layout_problem_node_count(mtf_free_problem_get(best->problem));
    g_autofree int *choice = g_new(int, nodes + 1);
    g_clear_pointer(&best->free.why, cJSON_Delete);
    if (layout->rules == NULL && mtf_free_problem_choice(best->problem, layout, choice))
        best->free.why = mtf_alternatives_that_matter(best->problem, choice, MTF_FREE_EXPLAINED);
}

/* ---- Alike layers ---------------------------------------------------------------------------- */

bool mtf_best_find_alike(const MtfPlanSearch *search, MtfMeshAttempt *best, GError **error) {
    if (best->free.layout == NULL)
        return true;
    if (!mtf_mesh_attempt_find_alike(search, best, error))
        return false;
    if (!mtf_plan_search_is_large(search)) /* whose drafts are alike, and take long to measure */
        mtf_best_take_cheaper(search, best);
    return true;
}

void mtf_best_choose_alike(const MtfPlanSearch *search, const MtfMeshAttempt *best,
                           MtfPlanAnswer *answer) {
    if (best->ties == NULL || best->free.layout == NULL)
        return;
    const MtfLayout *fastest = answer->fastest != NULL ? answer->fastest : best->free.layout;
    int64_t cost = answer->fastest != NULL ? answer->fastest_cost : best->cost;
    MtfAlikeLayers *alike = &answer->alike;
    alike->uniform = search->options->uniform;
    alike->layers = best->ties->layers;
    alike->best = (MtfAlikePrice){ cost, answer->step_seconds };
    alike->differences = mtf_alike_differences(best->problem, best->ties, fastest);
    if (alike->differences == 0 || search->options->uniform != MTF_UNIFORM_AUTO) {
        alike->alike = alike->differences == 0 ? alike->best : (MtfAlikePrice){ 0 };
        return;
    }
    MtfLayout *other = mtf_alike_fastest(best->problem, best->ties, best->incumbents, best->alike,
                                         search->options->memory_limit, &alike->alike);
    if (other == NULL || !mtf_alike_is_worth(alike)) {
        mtf_layout_free(other);
        return;
    }
    alike->differences = 0;
    mtf_layout_free(answer->fastest);
    answer->fastest = other;
    answer->fastest_cost = alike->alike.cost;
    answer->step_seconds = alike->alike.step_seconds;
}

/* ---- The frontier ---------------------------------------------------------------------------- */

void mtf_best_take_cheaper(const MtfPlanSearch *search, MtfMeshAttempt *best) {
    const MtfIncumbent *known =
        mtf_incumbents_best(best->incumbents, search->options->memory_limit);
    if (known == NULL || known->cost >= best->cost)
        return;
    mtf_settled_layout_clear(&best->settled);
    mtf_layout_free(best->free.layout);
    best->free.layout = mtf_layout_copy(known->layout);
    best->free.cost = best->cost = known->cost;
    best->free.arena_bytes = known->arena_bytes;
    best->free.step_seconds = known->step_seconds;
    mtf_best_explain(best, known->layout);
    best->free.bound = MIN(best->free.bound, known->cost);
}

/* ---- What the software can run ----------------------------------------------------------------- */

/* The first of the incumbents that the software can run, in which layers are alike where that is asked for; NULL: none. */
static const MtfIncumbent *find_runnable(const MtfPlanSearch *search, const MtfMeshAttempt *best,
                                         const GPtrArray *near, bool alike) {
    for (guint i = 0; i < near->len; i++) {
        const MtfIncumbent *known = g_ptr_array_index(near, i);
        if ((!alike || mtf_alike_differences(best->problem, best->ties, known->layout) == 0) &&
            can_run(search, known->layout))
            return known;
    }
    return NULL;
}

static MtfAlikePrice price_of(const MtfIncumbent *known) {
    return known != NULL ? (MtfAlikePrice){ known->cost, known->step_seconds }
                         : (MtfAlikePrice){ 0 };
}

/* The fastest of the incumbents that the software can run, or one whose layers are alike if that costs little. */
static const MtfIncumbent *choose_runnable(const MtfPlanSearch *search, const MtfMeshAttempt *best,
                                           const GPtrArray *near, MtfAlikeLayers *alike) {
    MtfUniform uniform = search->options->uniform;
    const MtfIncumbent *fastest = find_runnable(search, best, near, false);
    if (best->ties == NULL || fastest == NULL)
        return fastest;
    const MtfIncumbent *other = find_runnable(search, best, near, true);
    alike->best = price_of(fastest);
    alike->alike = price_of(other);
    bool takes =
        uniform == MTF_UNIFORM_ALWAYS || (uniform == MTF_UNIFORM_AUTO && mtf_alike_is_worth(alike));
    const MtfIncumbent *chosen = takes ? other : fastest;
    if (chosen != NULL)
        alike->differences = mtf_alike_differences(best->problem, best->ties, chosen->layout);
    return chosen;
}

void mtf_best_choose_runnable(const MtfPlanSearch *search, MtfMeshAttempt *best,
                              MtfPlanAnswer *answer) {
    const MtfPlanSearchOptions *options = search->options;
    const MtfLayout *plan = answer->fastest != NULL ? answer->fastest : best->free.layout;
    if (!options->runs || options->machine->software == NULL || best->problem == NULL ||
        plan == NULL || can_run(search, plan))
        return;
    MtfAlikeLayers alike = answer->alike;
    g_autoptr(GPtrArray) near = mtf_incumbents_near(best->incumbents, options->memory_limit,
                                                    MTF_NEAR_STEP * answer->step_seconds);
    const MtfIncumbent *known = choose_runnable(search, best, near, &alike);
    if (known == NULL)
        return;
    mtf_layout_free(answer->fastest);
    answer->fastest = mtf_layout_copy(known->layout);
    answer->fastest_cost = known->cost;
    answer->fastest_seconds = answer->step_seconds;
    answer->step_seconds = known->step_seconds;
    answer->runs = true;
    answer->alike = alike;
    mtf_best_explain(best, known->layout);
}

void mtf_best_add(MtfMeshAttempt *best, const MtfLayout *layout) {
    if (layout != NULL)
        mtf_incumbents_add(best->incumbents, MTF_FREE_LAYOUT, layout);
}

bool mtf_best_frontier(const MtfPlanSearch *search, MtfMeshAttempt *best, GArray **frontier,
                       GError **error) {
    if (search->options->frontier == 0 || best->problem == NULL)
        return true;
    mtf_best_add(best, best->free.layout);
    MtfFreeSearchOptions options = mtf_mesh_attempt_options(search, best);
    options.control = search->options->control; /* the search until now had a share of the time */
    *frontier =
        mtf_frontier(best->problem, &options, search->options->frontier, best->incumbents, error);
    if (*frontier == NULL)
        return false;
    mtf_best_take_cheaper(search, best);
    return true;
}
