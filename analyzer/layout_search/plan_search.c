// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/shortest_step.h"

#include "analyzer/layout_search/merged_answer.h"
#include "analyzer/layout_search/mesh_choice.h"
#include "analyzer/layout_search/mesh_rules.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/tune/program_mapping.h"

#include <math.h>

/* Meshes on which free layouts are searched: of those whose best rules cost at most MTF_PROMISING times the best
 * MESH_OPERATIONS over the step's operations, at most MOST_MESHES. */
#define MOST_MESHES 4
#define MESH_OPERATIONS 4000

/* Mappings tried, and how often the search begins again under a better one: one that saves more
 * than the gap that free layouts are searched to. */
#define MOST_MAPPINGS 20000
#define MAPPING_ROUNDS 2

/* Of --seconds, what a search with a frontier takes until that. */
#define FRONTIER_BEGINS 0.4

/* ---- One mesh after another -------------------------------------------------------------------- */

/* Replaces `*best` by the other attempt where that is cheaper. */
static bool take_better(MtfMeshAttempt **best, MtfMeshAttempt *other) {
    bool better = *best == NULL || other->cost < (*best)->cost;
    MtfMeshAttempt *worse = better ? *best : other;
    if (better)
        *best = other;
    mtf_mesh_attempt_free(worse);
    return better;
}

/* What the best layout costs with its mesh laid in order. */
static int64_t price_in_order(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    MtfPricer pricer;
    if (best->in_order || best->cost == INT64_MAX ||
        !mtf_pricer_init(&pricer, search->options->machine, &best->mesh, NULL))
        return best->cost;
    g_autoptr(MtfLayout) layout = mtf_mesh_attempt_layout(search, best);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    return mtf_price_program(&pricer, program);
}

/* The mapping that suits the best rules, where those lie on this mesh and it saves more than the
 * gap. A large graph's free layouts are searched under it at once, since each search takes long. */
static bool mapping_of_rules(const MtfPlanSearch *search, const MtfMesh *mesh,
                             MtfMapping *mapping) {
    const MtfRuleAnswer *rules = search->in_order;
    MtfPricer pricer;
    if (!mtf_plan_search_is_large(search) || !rules->found || rules->rules == NULL ||
        !mtf_mesh_equal(&rules->mesh, mesh) ||
        !mtf_pricer_init(&pricer, search->options->machine, mesh, NULL))
        return false;
    g_autoptr(MtfLayout) layout = mtf_plan_search_rules(search, mesh, rules->rules);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    mtf_program_map(&pricer, program, MOST_MAPPINGS);
    *mapping = pricer.map.mapping;
    int64_t saved = rules->cost - mtf_price_program(&pricer, program);
    return (double)saved > mtf_plan_search_gap(search) * (double)rules->cost;
}

/* Whether time is up, or would be before another problem was posed, which takes as long as that of the best. */
static bool is_late_for_another(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    double posing = best != NULL ? best->posing_seconds : 0;
    return mtf_plan_search_is_late(search) || mtf_search_seconds_left(search->control) < posing;
}

/* Lays the mesh as suits the best program and searches again, while that pays: while it saves more
 * than the gap, or anything where the mesh would better lie in order. */
static bool improve_mapping(const MtfPlanSearch *search, MtfMeshAttempt **best, GError **error) {
    for (int round = 0; round < MAPPING_ROUNDS; round++) {
        if ((*best)->cost == INT64_MAX || (*best)->begun || is_late_for_another(search, *best))
            return true;
        g_autoptr(MtfLayout) layout = mtf_mesh_attempt_layout(search, *best);
        g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
        MtfPricer pricer = (*best)->pricer;
        mtf_program_map(&pricer, program, MOST_MAPPINGS);
        int64_t saved = (*best)->cost - mtf_price_program(&pricer, program);
        bool worse = price_in_order(search, *best) < (*best)->cost;
        if ((double)saved <= (worse ? 0 : mtf_plan_search_gap(search) * (double)(*best)->cost))
            return true;
        MtfMeshAttempt *other = mtf_mesh_attempt(search, &(*best)->mesh, &pricer.map.mapping,
                                                 layout->rules == NULL ? layout : NULL, error);
        if (other == NULL)
            return false;
        if (!take_better(best, other))
            return true;
    }
    return true;
}

/* ---- Which meshes ---------------------------------------------------------------------------- */

/* The promising meshes, those with the cheapest rules first, as indexes. Where time was up before rules were
 * known on any, one on which layouts made by hand may fit. */
static GArray *rank_meshes(const MtfPlanSearch *search) {
    const MtfRuleAnswer *rules = search->in_order;
    int operations = (int)search->graph->operations->len;
    int most = CLAMP(MESH_OPERATIONS / MAX(1, operations), 1, MOST_MESHES);
    GArray *ranked = mtf_meshes_ranked(
        rules->by_mesh, most, rules->found ? MTF_PROMISING * (double)rules->cost : INFINITY);
    bool unknown = search->options->no_rules || mtf_plan_search_is_late(search);
    if (ranked->len == 0 && unknown && !search->options->rules_only) {
        int squarest = mtf_squarest_mesh(search->meshes);
        g_array_append_val(ranked, squarest);
    }
    return ranked;
}

/* Searches one more mesh and keeps the better of the two. One whose bound says that it cannot be the
 * better is given up at once. */
static bool search_mesh(const MtfPlanSearch *search, const MtfMesh *mesh, MtfMeshAttempt **best,
                        GError **error) {
    MtfMapping mapping;
    const MtfPlanSearchOptions *options = search->options;
    bool mapped = options->known != NULL ? options->mapping != NULL
                                         : mapping_of_rules(search, mesh, &mapping);
    if (options->mapping != NULL)
        mapping = *options->mapping;
    _Atomic int64_t known = *best != NULL ? (*best)->cost : INT64_MAX;
    MtfSearchControl part; /* its bounds are of this mesh alone */
    mtf_plan_search_begin_part(search, &known, &part);
    MtfPlanSearch rest = *search;
    rest.control = *best != NULL ? &part : search->control;
    rest.known = known < INT64_MAX ? known : 0;
    GError *cause = NULL;
    MtfMeshAttempt *attempt = mtf_mesh_attempt(&rest, mesh, mapped ? &mapping : NULL, NULL, &cause);
    if (attempt != NULL) {
        take_better(best, attempt);
        mtf_search_tell_found(search->control, (*best)->cost);
        return true;
    }
    if (mtf_search_is_beaten(&part, known)) {
        g_error_free(cause);
        return true;
    }
    g_propagate_error(error, cause);
    return false;
}

/* Searches the promising meshes and keeps the best; where the one with the cheapest rules is hopeless, so are
 * the others taken to be. */
static bool search_meshes(const MtfPlanSearch *search, MtfMeshAttempt **best, int *count,
                          GError **error) {
    g_autoptr(GArray) ranked = rank_meshes(search);
    for (guint i = 0; i < ranked->len && (i == 0 || !is_late_for_another(search, *best)); i++) {
        int index = g_array_index(ranked, int, i);
        const MtfMesh *mesh = &g_array_index(search->meshes, MtfMesh, index);
        if (*best != NULL && g_array_index(search->bounds, int64_t, index) >= (*best)->cost)
            continue;
        if (!search_mesh(search, mesh, best, error))
            return false;
        ++*count;
        if ((i == 0 && (*best)->hopeless) || (*best)->lags)
            return true;
    }
    return true;
}

/* More meshes are compared by their rules before any is looked at. */
#define MOST_HOPELESS 8

/* Rounds in which a bound may show that a mesh is hopeless: the first is what it mostly takes; and at most, where more
 * are likely to show it of all. */
#define HOPELESS_WORK 2
#define LONGER_WORK 60

/* Looks at several meshes, for so many rounds. */
typedef struct {
    const MtfPlanSearch *search;
    int rounds;
    MtfMeshLook *of; /* each of the meshes */
} Looks;

static void look_at(int i, void *data) {
    const Looks *looks = data;
    const MtfMesh *mesh = &g_array_index(looks->search->meshes, MtfMesh, i);
    if (!looks->of[i].hopeless)
        looks->of[i] = mtf_mesh_look(looks->search, mesh, looks->rounds);
}

/* Whether a first bound is asked which meshes are hopeless beside the rival: of these not even the rules matter. Very
 * large graphs take long to pose, and come with the one mesh that few of their layers have chosen. */
static bool looks_first(const MtfPlanSearch *search) {
    const MtfPlanSearchOptions *options = search->options;
    return options->by_bound && options->rival_seconds > 0 && !options->rules_only &&
           search->graph->operations->len <= MTF_VERY_LARGE_OPERATIONS &&
           search->meshes->len <= MOST_HOPELESS;
}

/* Whether a longer look is likely to say that all meshes are hopeless, where a short one does not. */
static bool is_worth_longer(const MtfMeshLook *looks, guint n) {
    bool hopeless = true, nearly = true;
    for (guint i = 0; i < n; i++) {
        hopeless &= looks[i].hopeless;
        nearly &= looks[i].nearly;
    }
    return nearly && !hopeless;
}

static MtfFirstLook *look_at_meshes(const MtfPlanSearch *search) {
    guint n = search->meshes->len;
    g_autofree MtfMeshLook *of = g_new0(MtfMeshLook, n + 1);
    Looks looks = { search, HOPELESS_WORK, of };
    MtfFirstLook *look = g_new(MtfFirstLook, 1);
    *look = (MtfFirstLook){ .meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh)),
                            .bounds = g_array_new(FALSE, FALSE, sizeof(int64_t)),
                            .least = INT64_MAX };
    if (looks_first(search))
        mtf_in_parallel((int)n, look_at, &looks);
    looks.rounds = LONGER_WORK;
    if (is_worth_longer(of, n))
        mtf_in_parallel((int)n, look_at, &looks);
    for (guint i = 0; i < n; i++) {
        if (of[i].hopeless) {
            look->least = MIN(look->least, of[i].least);
            continue;
        }
        g_array_append_val(look->meshes, g_array_index(search->meshes, MtfMesh, i));
        g_array_append_val(look->bounds, of[i].least);
    }
    return look;
}

void mtf_first_look_free(MtfFirstLook *look) {
    if (look == NULL)
        return;
    g_array_unref(look->meshes);
    g_array_unref(look->bounds);
    g_free(look);
}

/* ---- Entry ----------------------------------------------------------------------------------- */

/* Measures the incumbents that will be shown, while another variant of the step may still be searched.
 */
static void measure_shown(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    if (best->incumbents != NULL && !mtf_plan_search_is_late(search))
        g_ptr_array_unref(mtf_incumbents_shown(best->incumbents, search->options->memory_limit));
}

/* Leaves the layout problem for whoever wants to see it or what is proven of it. */
static void keep_problem(const MtfPlanSearch *search, const MtfMeshAttempt *best,
                         MtfPlanAnswer *answer) {
    if (!search->options->keep_problem || best->problem == NULL)
        return;
    const MtfLayout *layout = best->free.layout;
    answer->problem = mtf_layout_problem_copy(mtf_free_problem_get(best->problem));
    mtf_layout_problem_set_limit(answer->problem, search->options->memory_limit);
    answer->choice = g_new(int, mtf_layout_problem_node_count(answer->problem) + 1);
    if (layout == NULL || !mtf_free_problem_choice(best->problem, layout, answer->choice))
        g_clear_pointer(&answer->choice, g_free);
}

/* Hands the best attempt's parts over to the answer. */
static void give_answer(const MtfPlanSearch *search, MtfMeshAttempt *best, MtfPlanAnswer *answer) {
    const MtfRuleAnswer *in_order = search->in_order;
    answer->found = best->cost < INT64_MAX;
    answer->in_order = best->in_order;
    answer->cost = best->cost;
    answer->pricer = best->pricer;
    answer->rules = best->rules;
    answer->rules.bound = MIN(best->rules.bound, in_order->bound);
    answer->rules.stopped |= in_order->stopped;
    answer->rules.tightened |= in_order->tightened;
    answer->free = best->free;
    answer->incumbents = g_steal_pointer(&best->incumbents);
    answer->settled = best->settled;
    best->rules = (MtfRuleAnswer){ 0 };
    best->free = (MtfFreeAnswer){ 0 };
    best->settled = (MtfSettledLayout){ 0 };
}

/* Whether the best layout, and the fastest that begun its search, have steps too long for what would be
 * changed after. */
static bool is_hopeless(const MtfPlanSearch *search, const MtfMeshAttempt *best) {
    double most = MTF_HOPELESS * search->options->rival_seconds;
    const MtfIncumbent *fastest = NULL;
    if (most <= 0 || best->hopeless || best->free.layout == NULL || best->free.step_seconds <= most)
        return best->hopeless;
    fastest = mtf_best_fastest(search, best);
    return fastest == NULL || fastest->step_seconds > most;
}

/* Makes the best attempt better in all ways that there are. */
static bool finish_best(const MtfPlanSearch *search, MtfMeshAttempt *best, MtfPlanAnswer *answer,
                        GError **error) {
    if (!mtf_plan_search_is_large(search))
        mtf_variant_race_await_leaders(search->options->race, search->options->runner);
    return mtf_best_find_alike(search, best, error) && mtf_best_prove(search, best, error) &&
           mtf_best_frontier(search, best, &answer->frontier, error) &&
           mtf_best_shorten(search, best, answer, error);
}

static bool search_on(const MtfPlanSearch *search, MtfPlanAnswer *answer, GError **error) {
    MtfMeshAttempt *best = NULL;
    bool done = search_meshes(search, &best, &answer->free_meshes, error);
    if (done && best != NULL) {
        answer->in_order_cost = price_in_order(search, best);
        done = improve_mapping(search, &best, error);
        answer->hopeless = done && is_hopeless(search, best);
        answer->lost = done && !answer->hopeless && (best->lags || mtf_best_loses(search, best));
        bool left = answer->hopeless || answer->lost;
        if (left)
            answer->step_seconds = best->free.step_seconds;
        done = done && (left || finish_best(search, best, answer, error));
        answer->hopeless |= best->hopeless;
        if (!answer->lost && !best->hopeless) {
            mtf_best_choose_alike(search, best, answer);
            mtf_best_choose_runnable(search, best, answer);
            measure_shown(search, best);
        }
        keep_problem(search, best, answer);
        give_answer(search, best, answer);
    } else if (done) {
        answer->rules = *search->in_order;
        *search->in_order = (MtfRuleAnswer){ 0 };
    }
    mtf_mesh_attempt_free(best);
    return done;
}

/* Meshes of many axes are searched by their merges; of rules, and of pins, which name axes, there are few
 * enough on any mesh. */
static bool may_merge(const MtfPlanSearchOptions *options) {
    return !options->rules_only && options->pins == NULL && options->forbids == NULL &&
           !options->batch_first;
}

MtfFirstLook *mtf_plan_search_look(const MtfGraph *graph, const GArray *meshes,
                                   const MtfPlanSearchOptions *options) {
    MtfPlanSearch search = {
        .graph = graph, .meshes = meshes, .options = options, .control = options->control
    };
    g_autoptr(MtfMergedMeshes) merged =
        may_merge(options) ? mtf_merged_meshes_new(graph, meshes, options->machine) : NULL;
    return merged == NULL && looks_first(&search) ? look_at_meshes(&search) : NULL;
}

bool mtf_plan_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfPlanSearchOptions *options, MtfPlanAnswer *answer, GError **error) {
    *answer = (MtfPlanAnswer){ .stage = options->stage,
                               .batch_first = options->batch_first,
                               .no_rules = options->no_rules,
                               .meshes = (int)meshes->len,
                               .in_order_cost = INT64_MAX };
    MtfRuleAnswer in_order = { 0 };
    MtfPlanSearchOptions own = *options;
    g_autoptr(MtfRulePrices) prices =
        options->prices == NULL ? mtf_rule_prices_new(graph, options->operations) : NULL;
    own.prices = prices != NULL ? prices : options->prices;
    g_autoptr(MtfMergedMeshes) merged =
        may_merge(options) ? mtf_merged_meshes_new(graph, meshes, options->machine) : NULL;
    if (merged != NULL)
        own.frontier = own.settles = own.runs =
            0; /* its bounds would be those of the merges, as its layouts are */
    MtfSearchControl begins;
    mtf_search_control_init_share(&begins, options->control, FRONTIER_BEGINS);
    begins.listener = options->control != NULL ? options->control->listener : NULL;
    bool shares = own.frontier > 0 && mtf_search_has_deadline(options->control);
    MtfPlanSearch search = { .graph = graph,
                             .meshes = merged != NULL ? merged->searched : meshes,
                             .options = &own,
                             .in_order = &in_order,
                             .control = shares ? &begins : options->control };
    g_autoptr(MtfFirstLook) first = options->look == NULL ? look_at_meshes(&search) : NULL;
    const MtfFirstLook *look = first != NULL ? first : options->look;
    answer->hopeless = look->meshes->len == 0;
    search.meshes = look->meshes;
    search.bounds = look->bounds;
    bool done = answer->hopeless ||
                (mtf_first_rules(&search, &in_order, error) && search_on(&search, answer, error));
    mtf_rule_answer_clear(&in_order);
    if (done && merged != NULL && !answer->hopeless)
        mtf_merged_answer_expand(merged, graph, options, answer);
    return done;
}
