// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/plan_search.h"

#include "analyzer/free/alternatives.h"
#include "analyzer/planner/merged_axes.h"
#include "analyzer/planner/mesh_choice.h"
#include "analyzer/planner/planning.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "cost/memory/arena.h"
#include "cost/tune/order_search.h"
#include "cost/tune/program_mapping.h"
#include "layouts/base/json_writer.h"

#include <math.h>

/* Where the user sets no gap, each search over free layouts ends within a tenth of a percent of the
 * optimum (half a percent for large graphs), and only the best answer's goes on to the optimum;
 * where no seconds, after this many rounds, so that its answer depends on no clock. */
#define FREE_GAP 0.001
#define FREE_GAP_LARGE 0.005
#define FREE_WORK 60

/* Meshes on which free layouts are searched: those whose best rules cost at most this many times
 * the best; as many as so many operations allow, at most MOST_MESHES. */
#define PROMISING 1.5
#define MOST_MESHES 4
#define MESH_OPERATIONS 4000

/* Mappings tried, and how often the search begins again under a better one: one that saves more
 * than the gap that free layouts are searched to. */
#define MOST_MAPPINGS 20000
#define MAPPING_ROUNDS 2

/* Bytes of a large graph's arena, times the limit, for which other orders are tried. */
#define MOST_REORDERED 1.25

/* Of the time that is left, for layouts in which repeated layers are alike. */
#define ALIKE_SHARE 0.3

/* Of the time that is left, for all merges of a mesh of many axes. */
#define MERGE_SHARE 0.85

/* Lower limits that are searched for layouts of shorter steps, until one leads to a step that is
 * so many times as long as the cheapest layout's: still lower ones would lead to longer ones. Each
 * gets as many rounds as look at so many entries of the problem's matrices, and at least so many:
 * what is fast is found early, and where the gap does not close, rounds of large problems are long.
 */
#define TIGHTER_LIMITS 3
#define TIGHTER_STEP 1.03
#define TIGHTER_ROUNDS 4
#define TIGHTER_ENTRIES 1e8

typedef struct {
    const MtfGraph *graph;
    const GArray *meshes;
    const MtfPlanSearchOptions *options;
    MtfRuleAnswer *in_order; /* of all meshes */
    MtfSearchControl *control;
    bool await_done; /* whoever else poses free layouts was waited for, and told */
} Search;

/* One mesh, laid one way. */
typedef struct {
    MtfMesh mesh;
    bool in_order;
    MtfPricer pricer;
    MtfRuleAnswer rules;
    MtfFreeProblem *problem; /* NULL: rules only */
    MtfLayerTies *ties;      /* NULL: no layers repeat, or they may differ as they like */
    MtfLayout *alike;        /* the best found that fits and lays them out alike; NULL: none */
    MtfIncumbents *incumbents;
    MtfFreeAnswer free;
    int64_t cost; /* of the best layout; INT64_MAX: none fits */
} Attempt;

static Attempt *attempt_new(void) {
    Attempt *attempt = g_new0(Attempt, 1);
    attempt->cost = INT64_MAX;
    return attempt;
}

static void attempt_free(Attempt *attempt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Attempt, attempt_free)

static void attempt_free(Attempt *attempt) {
    if (attempt == NULL)
        return;
    mtf_rule_answer_clear(&attempt->rules);
    mtf_layer_ties_free(attempt->ties);
    mtf_layout_free(attempt->alike);
    mtf_free_problem_free(attempt->problem);
    mtf_free_answer_clear(&attempt->free);
    mtf_incumbents_free(attempt->incumbents);
    g_free(attempt);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* Whether there is no time for more than is needed. */
static bool is_late(const Search *search) {
    return mtf_search_is_over(search->control);
}

static bool is_large(const Search *search) {
    return search->graph->operations->len > MTF_LARGE_OPERATIONS;
}

/* The gap that searches over free layouts may leave. */
static double wanted_gap(const Search *search) {
    const MtfPlanSearchOptions *options = search->options;
    return options->has_gap ? options->gap : is_large(search) ? FREE_GAP_LARGE : FREE_GAP;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* No rules fit in the order of the operations: those that need least may fit in another. */
static void try_other_order(const Search *search, const GArray *meshes, const MtfMapping *mapping,
                            MtfRuleAnswer *answer) {
    MtfPricer pricer;
    if (!mtf_pricer_init(&pricer, search->options->machine, &answer->mesh, NULL))
        return;
    if (mapping != NULL)
        pricer.map.mapping = *mapping;
    g_autoptr(MtfLayout) layout =
        mtf_layout_from_rules(search->graph, &answer->mesh, answer->rules);
    if (!mtf_layout_improve_order(search->graph, layout, &pricer, search->options->memory_limit))
        return;
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    answer->arena_bytes = arena->bytes;
    if (arena->bytes > search->options->memory_limit)
        return;
    answer->found = answer->other_order = true;
    answer->cost = mtf_price_program(&pricer, program);
    answer->bound = MIN(answer->bound, answer->cost);
    for (guint i = 0; i < meshes->len; i++)
        if (mtf_mesh_equal(&g_array_index(meshes, MtfMesh, i), &answer->mesh))
            g_array_index(answer->by_mesh, MtfRuleMesh, i) = (MtfRuleMesh){ true, answer->cost };
}

/* Whether another order may save what rules lack: of a large graph it takes long to find, and has not
 * been seen to save a fifth. */
static bool may_reorder(const Search *search, const MtfRuleAnswer *answer) {
    return !is_large(search) ||
           (double)answer->arena_bytes <= MOST_REORDERED * (double)search->options->memory_limit;
}

static bool search_rules(const Search *search, const GArray *meshes, const MtfMapping *mapping,
                         MtfRuleAnswer *answer, GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    MtfSearchControl part; /* the bound of one mesh is no news */
    mtf_search_control_init_part(&part, search->control, 0);
    mtf_search_tell_phase(search->control, "rule layouts");
    MtfRuleSearchOptions rule_options = {
        .machine = options->machine,
        .mapping = mapping,
        .memory_limit = options->memory_limit,
        .pins = options->pins,
        .forbids = options->forbids,
        .gap = options->has_gap ? options->gap : 0,
        .control = meshes == search->meshes ? search->control : &part,
    };
    if (!mtf_rule_search(search->graph, meshes, &rule_options, answer, error))
        return false;
    if (!answer->found && answer->rules != NULL && may_reorder(search, answer))
        try_other_order(search, meshes, mapping, answer);
    return true;
}

/* The best rules on the attempt's mesh as it is laid; in order they are known for the best mesh. */
static bool attempt_rules(const Search *search, Attempt *attempt, GError **error) {
    MtfRuleAnswer *known = search->in_order;
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(meshes, attempt->mesh);
    if (attempt->in_order && known->rules != NULL && mtf_mesh_equal(&known->mesh, &attempt->mesh)) {
        attempt->rules = *known;
        attempt->rules.by_mesh = NULL;
        known->rules = NULL;
    } else if (!search_rules(search, meshes, &attempt->pricer.map.mapping, &attempt->rules,
                             error)) {
        return false;
    }
    if (attempt->rules.found)
        attempt->cost = attempt->rules.cost;
    return true;
}

/* ---- Meshes of many axes ----------------------------------------------------------------------- */

/* Of rules, and of pins, which name axes, there are few enough on any mesh. */
static bool should_merge(const Search *search, const MtfMesh *mesh) {
    const MtfPlanSearchOptions *options = search->options;
    return !options->rules_only && options->pins == NULL && options->forbids == NULL &&
           mtf_axes_should_merge(search->graph, mesh);
}

/* The meshes whose rules are searched at first. */
static GArray *unmerged_meshes(const Search *search) {
    GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (guint i = 0; i < search->meshes->len; i++)
        if (!should_merge(search, &g_array_index(search->meshes, MtfMesh, i)))
            g_array_append_val(meshes, g_array_index(search->meshes, MtfMesh, i));
    return meshes;
}

/* Notes what rules were found on some meshes. */
static void note_rules(const Search *search, const GArray *meshes, const GArray *by_mesh,
                       GArray *all) {
    for (guint i = 0; i < meshes->len; i++)
        for (guint k = 0; k < search->meshes->len; k++)
            if (mtf_mesh_equal(&g_array_index(meshes, MtfMesh, i),
                               &g_array_index(search->meshes, MtfMesh, k)))
                g_array_index(all, MtfRuleMesh, k) = g_array_index(by_mesh, MtfRuleMesh, i);
}

/* Searches rules on some more meshes, of which there may be none. */
static bool search_more_rules(const Search *search, const GArray *meshes, GArray *all,
                              MtfRuleAnswer *answer, GError **error) {
    MtfRuleAnswer more = { 0 };
    if (meshes->len == 0)
        return true;
    if (!search_rules(search, meshes, NULL, &more, error))
        return false;
    note_rules(search, meshes, more.by_mesh, all);
    if (answer->by_mesh == NULL)
        *answer = more;
    else
        mtf_rule_answer_take(answer, &more);
    if (answer->by_mesh != more.by_mesh)
        mtf_rule_answer_clear(&more);
    return true;
}

/* Of meshes with many axes, which are merged, nothing is known but that they are to be tried. */
static GArray *unknown_rules(const Search *search) {
    GArray *all = g_array_new(FALSE, TRUE, sizeof(MtfRuleMesh));
    for (guint i = 0; i < search->meshes->len; i++) {
        bool merges = should_merge(search, &g_array_index(search->meshes, MtfMesh, i));
        MtfRuleMesh none = { merges, INT64_MAX };
        g_array_append_val(all, none);
    }
    return all;
}

/* Where no rules fit, free layouts may: notes what rules cost if memory were no matter. `*best` is the mesh of
 * the cheapest then. */
static bool note_unlimited_rules(const Search *search, const GArray *meshes, GArray *all,
                                 MtfMesh *best, GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    MtfSearchControl part;
    mtf_search_control_init_part(&part, search->control, 0);
    MtfRuleSearchOptions rule_options = { .machine = options->machine,
                                          .memory_limit = INT64_MAX,
                                          .modelled = true,
                                          .pins = options->pins,
                                          .forbids = options->forbids,
                                          .control = &part };
    MtfRuleAnswer answer = { 0 };
    if (meshes->len == 0)
        return true;
    if (!mtf_rule_search(search->graph, meshes, &rule_options, &answer, error))
        return false;
    note_rules(search, meshes, answer.by_mesh, all);
    *best = answer.found ? answer.mesh : *best;
    mtf_rule_answer_clear(&answer);
    return true;
}

/* Searches the rules of some of the meshes, and says which is the most promising. */
static bool search_rules_of(const Search *search, const GArray *meshes, GArray *all,
                            MtfRuleAnswer *answer, MtfMesh *best, GError **error) {
    if (!search_more_rules(search, meshes, all, answer, error))
        return false;
    if (answer->found || search->options->rules_only) {
        *best = answer->mesh;
        return true;
    }
    return meshes->len < 2 || note_unlimited_rules(search, meshes, all, best, error);
}

/* Searches the rules of all meshes; where there are many and free layouts follow, of those that
 * mesh_choice.h names: their bound is not that of all then. */
static bool search_first_rules(const Search *search, MtfRuleAnswer *answer, GError **error) {
    g_autoptr(GArray) meshes = unmerged_meshes(search);
    g_autoptr(GArray) first =
        search->options->rules_only ? g_array_ref(meshes) : mtf_meshes_at_first(meshes);
    GArray *all = unknown_rules(search);
    MtfMesh best = { 0 };
    bool done = search_rules_of(search, first, all, answer, &best, error);
    if (done && first->len < meshes->len) {
        g_autoptr(GArray) finer = mtf_meshes_refining(meshes, &best);
        done = search_rules_of(search, finer, all, answer, &best, error);
        answer->bound = 0;
    }
    g_clear_pointer(&answer->by_mesh, g_array_unref);
    answer->by_mesh = all;
    return done;
}

static bool attempt_free_layouts(const Search *search, Attempt *attempt, const MtfLayout *known,
                                 GError **error);

/* The best free layout of one merged mesh becomes an incumbent of the mesh itself. `share` is that of
 * the time that is left. A machine need not have room for a merged mesh. */
static bool search_merged(const Search *search, Attempt *attempt, const MtfAxisMerge *merge,
                          double share, GError **error) {
    Search part = *search;
    MtfSearchControl control;
    mtf_search_control_init_share(&control, search->control, share);
    control.listener = search->control != NULL ? search->control->listener : NULL;
    part.control = &control;
    part.await_done = true;
    g_autoptr(Attempt) merged = attempt_new();
    merged->mesh = merge->mesh;
    if (!mtf_pricer_init(&merged->pricer, search->options->machine, &merge->mesh, NULL))
        return true;
    if (!attempt_free_layouts(&part, merged, NULL, error))
        return false;
    if (merged->free.layout == NULL)
        return true;
    g_autoptr(MtfLayout) layout =
        mtf_axis_merge_expand(search->graph, &attempt->mesh, merge, merged->free.layout);
    mtf_incumbents_add(attempt->incumbents, MTF_FREE_LAYOUT, layout);
    return true;
}

static void take_incumbent(const Search *search, Attempt *attempt) {
    const MtfIncumbent *best =
        mtf_incumbents_best(attempt->incumbents, search->options->memory_limit);
    if (best == NULL)
        return;
    attempt->free.layout = mtf_layout_copy(best->layout);
    attempt->free.arena_bytes = best->arena_bytes;
    attempt->free.step_seconds = best->step_seconds;
    attempt->free.method = g_strdup("axes merged to three; the work alone is the bound");
    attempt->free.cost = attempt->cost = best->cost;
    attempt->free.bound = mtf_price_floor(&attempt->pricer, search->graph, &attempt->mesh);
}

/* Searches a mesh of many axes by its merges, in turn while there is time. */
static bool attempt_merges(const Search *search, Attempt *attempt, GError **error) {
    g_autoptr(GArray) merges = mtf_axis_merges(&attempt->mesh, MTF_UNMERGED_AXES);
    attempt->incumbents = mtf_incumbents_new(search->graph, &attempt->pricer);
    for (guint i = 0; i < merges->len && (i == 0 || !is_late(search)); i++) {
        double share = MERGE_SHARE / (double)(merges->len - i);
        if (!search_merged(search, attempt, &g_array_index(merges, MtfAxisMerge, i), share, error))
            return false;
    }
    take_incumbent(search, attempt);
    return true;
}

/* ---- Free layouts ---------------------------------------------------------------------------- */

/* Reads "d_ff:cols" for the mesh. The rule search has checked the names. */
static void append_pins(const MtfGraph *graph, const MtfMesh *mesh, const char *const *texts,
                        bool forbidden, GArray *pins) {
    for (const char *const *text = texts; text != NULL && *text != NULL; text++) {
        g_auto(GStrv) pair = g_strsplit(*text, ":", 2);
        MtfPin pin = { .dim = mtf_graph_find_dimension(graph, pair[0]),
                       .axis = mtf_mesh_axis(mesh, pair[1]),
                       .forbidden = forbidden };
        if (pin.dim >= 0 && pin.axis >= 0)
            g_array_append_val(pins, pin);
    }
}

static bool pose_problem(const Search *search, Attempt *attempt, GError **error) {
    g_autoptr(GArray) pins = g_array_new(FALSE, FALSE, sizeof(MtfPin));
    append_pins(search->graph, &attempt->mesh, search->options->pins, false, pins);
    append_pins(search->graph, &attempt->mesh, search->options->forbids, true, pins);
    attempt->problem =
        mtf_free_problem_new(search->graph, &attempt->mesh, &attempt->pricer,
                             (const MtfPin *)(void *)pins->data, (int)pins->len, error);
    if (attempt->problem != NULL && search->options->uniform != MTF_UNIFORM_NEVER)
        attempt->ties = mtf_layer_ties_new(attempt->problem);
    return attempt->problem != NULL;
}

static void gather_incumbents(const Search *search, Attempt *attempt, const MtfLayout *known) {
    const MtfRuleAnswer *rules = &attempt->rules;
    attempt->incumbents = mtf_incumbents_new(search->graph, &attempt->pricer);
    if (rules->found) {
        g_autoptr(MtfLayout) layout =
            mtf_layout_from_rules(search->graph, &attempt->mesh, rules->rules);
        if (rules->other_order)
            mtf_layout_improve_order(search->graph, layout, &attempt->pricer,
                                     search->options->memory_limit);
        mtf_incumbents_add(attempt->incumbents, MTF_RULE_LAYOUT, layout);
    }
    if (known != NULL)
        mtf_incumbents_add(attempt->incumbents, MTF_FREE_LAYOUT, known);
    mtf_incumbents_add_standards(attempt->incumbents, attempt->problem);
}

static MtfFreeSearchOptions free_options(const Search *search, const Attempt *attempt) {
    const MtfPlanSearchOptions *options = search->options;
    bool alike = options->uniform == MTF_UNIFORM_ALWAYS && attempt->ties != NULL;
    return (MtfFreeSearchOptions){
        .memory_limit = options->memory_limit,
        .incumbents = attempt->incumbents,
        .leader = alike ? attempt->ties->leader : NULL,
        .work = mtf_search_has_deadline(search->control) ? 0 : FREE_WORK,
        .gap = wanted_gap(search),
        .seed = options->seed,
        .control = search->control,
    };
}

/* Of variants that are searched at once one after the other poses its problem. */
static void await_posing(const Search *search) {
    if (search->await_done)
        return;
    mtf_search_tell_phase(search->control, "posing free layouts");
    mtf_variant_race_await(search->options->race, search->options->runner);
}

static void tell_posed(const Search *search) {
    if (search->await_done)
        return;
    mtf_search_tell_phase(search->control, "free layouts");
    mtf_variant_race_posed(search->options->race, search->options->runner);
}

/* Searches the free layouts beside the rules; `known` is a layout found before, or NULL. */
static bool attempt_free_layouts(const Search *search, Attempt *attempt, const MtfLayout *known,
                                 GError **error) {
    if (search->options->rules_only) {
        tell_posed(search);
        return true;
    }
    await_posing(search);
    if (should_merge(search, &attempt->mesh)) {
        tell_posed(search);
        return attempt_merges(search, attempt, error);
    }
    if (!pose_problem(search, attempt, error))
        return false;
    gather_incumbents(search, attempt, known);
    tell_posed(search);
    MtfFreeSearchOptions options = free_options(search, attempt);
    options.draft = is_large(search);
    if (!mtf_free_search(attempt->problem, &options, &attempt->free, error))
        return false;
    if (attempt->free.layout != NULL)
        attempt->cost = attempt->free.cost;
    else if (attempt->rules.rules != NULL && attempt->free.limit_enough > 0)
        attempt->free.limit_enough = MIN(attempt->free.limit_enough, attempt->rules.arena_bytes);
    return true;
}

/* ---- One mesh -------------------------------------------------------------------------------- */

/* Searches one mesh laid as `mapping` says, or in order for NULL. */
static Attempt *attempt_mesh(const Search *search, const MtfMesh *mesh, const MtfMapping *mapping,
                             const MtfLayout *known, GError **error) {
    Attempt *attempt = attempt_new();
    attempt->mesh = *mesh;
    attempt->in_order = mapping == NULL;
    bool done = mtf_pricer_init(&attempt->pricer, search->options->machine, mesh, error);
    if (done && mapping != NULL)
        attempt->pricer.map.mapping = *mapping;
    if (done && (should_merge(search, mesh) || attempt_rules(search, attempt, error)) &&
        attempt_free_layouts(search, attempt, known, error))
        return attempt;
    attempt_free(attempt);
    return NULL;
}

static MtfLayout *attempt_layout(const Search *search, const Attempt *attempt) {
    if (attempt->free.layout != NULL)
        return mtf_layout_copy(attempt->free.layout);
    return mtf_layout_from_rules(search->graph, &attempt->mesh, attempt->rules.rules);
}

/* Replaces `*best` by the other attempt where that is cheaper. */
static bool take_better(Attempt **best, Attempt *other) {
    bool better = *best == NULL || other->cost < (*best)->cost;
    Attempt *worse = better ? *best : other;
    if (better)
        *best = other;
    attempt_free(worse);
    return better;
}

/* What the best layout costs with its mesh laid in order. */
static int64_t price_in_order(const Search *search, const Attempt *best) {
    MtfPricer pricer;
    if (best->in_order || best->cost == INT64_MAX ||
        !mtf_pricer_init(&pricer, search->options->machine, &best->mesh, NULL))
        return best->cost;
    g_autoptr(MtfLayout) layout = attempt_layout(search, best);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    return mtf_price_program(&pricer, program);
}

/* The mapping that suits the best rules, where those lie on this mesh and it saves more than the
 * gap. A large graph's free layouts are searched under it at once, since each search takes long. */
static bool mapping_of_rules(const Search *search, const MtfMesh *mesh, MtfMapping *mapping) {
    const MtfRuleAnswer *rules = search->in_order;
    MtfPricer pricer;
    if (!is_large(search) || !rules->found || rules->rules == NULL ||
        !mtf_mesh_equal(&rules->mesh, mesh) ||
        !mtf_pricer_init(&pricer, search->options->machine, mesh, NULL))
        return false;
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(search->graph, mesh, rules->rules);
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    mtf_program_map(&pricer, program, MOST_MAPPINGS);
    *mapping = pricer.map.mapping;
    int64_t saved = rules->cost - mtf_price_program(&pricer, program);
    return (double)saved > wanted_gap(search) * (double)rules->cost;
}

/* Lays the mesh as suits the best program and searches again, while that pays: while it saves more
 * than the gap, or anything where the mesh would better lie in order. */
static bool improve_mapping(const Search *search, Attempt **best, int *mappings, GError **error) {
    for (int round = 0; round < MAPPING_ROUNDS; round++) {
        if ((*best)->cost == INT64_MAX || is_late(search))
            return true;
        g_autoptr(MtfLayout) layout = attempt_layout(search, *best);
        g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
        MtfPricer pricer = (*best)->pricer;
        *mappings += (int)mtf_program_map(&pricer, program, MOST_MAPPINGS).candidates;
        int64_t saved = (*best)->cost - mtf_price_program(&pricer, program);
        bool worse = price_in_order(search, *best) < (*best)->cost;
        if ((double)saved <= (worse ? 0 : wanted_gap(search) * (double)(*best)->cost))
            return true;
        Attempt *other = attempt_mesh(search, &(*best)->mesh, &pricer.map.mapping,
                                      layout->rules == NULL ? layout : NULL, error);
        if (other == NULL)
            return false;
        if (!take_better(best, other))
            return true;
    }
    return true;
}

/* ---- Which meshes ---------------------------------------------------------------------------- */

/* The promising meshes, those with the cheapest rules first, as indexes. */
static GArray *rank_meshes(const Search *search) {
    const MtfRuleAnswer *rules = search->in_order;
    int operations = (int)search->graph->operations->len;
    int most = CLAMP(MESH_OPERATIONS / MAX(1, operations), 1, MOST_MESHES);
    return mtf_meshes_ranked(rules->by_mesh, most,
                             rules->found ? PROMISING * (double)rules->cost : INFINITY);
}

/* Searches the promising meshes and keeps the best. */
static bool search_meshes(const Search *search, Attempt **best, int *count, GError **error) {
    g_autoptr(GArray) ranked = rank_meshes(search);
    for (guint i = 0; i < ranked->len && (i == 0 || !is_late(search)); i++) {
        int index = g_array_index(ranked, int, i);
        const MtfMesh *mesh = &g_array_index(search->meshes, MtfMesh, index);
        MtfMapping mapping;
        bool mapped = mapping_of_rules(search, mesh, &mapping);
        Attempt *attempt = attempt_mesh(search, mesh, mapped ? &mapping : NULL, NULL, error);
        if (attempt == NULL)
            return false;
        ++*count;
        take_better(best, attempt);
    }
    return true;
}

/* ---- The proof ------------------------------------------------------------------------------- */

/* The fastest that is known; of large graphs among the cheapest of each name. */
static const MtfIncumbent *fastest_of(const Search *search, const Attempt *best) {
    int64_t limit = search->options->memory_limit;
    if (!is_large(search) || search->options->frontier > 0)
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

/* Where transfers can be hidden, the plan may be another layout than the cheapest. */
static bool is_worth_proof(const Search *search, const Attempt *best) {
    const MtfPlanSearchOptions *options = search->options;
    const MtfIncumbent *fastest = options->machine->overlap ? fastest_of(search, best) : NULL;
    double step = best->free.step_seconds;
    return mtf_variant_race_wins(options->race, options->runner,
                                 fastest != NULL ? fmin(step, fastest->step_seconds) : step);
}

/* Whether the best answer is to be proven better than it is: a draft; and where the user sets no gap,
 * what ended at the standard one. */
static bool should_prove(const Search *search, const Attempt *best) {
    const MtfFreeAnswer *found = &best->free;
    int64_t left = found->cost - found->bound;
    if (found->layout == NULL || best->problem == NULL || left == 0 || is_late(search))
        return false;
    return is_large(search)
               ? found->bound == 0 && is_worth_proof(search, best)
               : !search->options->has_gap && (double)left <= FREE_GAP * (double)found->cost;
}

/* Goes on where the search of the best answer ended. */
static bool prove_best(const Search *search, Attempt *best, GError **error) {
    MtfFreeAnswer *found = &best->free;
    if (!should_prove(search, best))
        return true;
    mtf_incumbents_add(best->incumbents, MTF_FREE_LAYOUT, found->layout);
    MtfFreeSearchOptions options = free_options(search, best);
    options.gap = is_large(search) ? wanted_gap(search) : 0;
    MtfFreeAnswer better = { 0 };
    if (!mtf_free_search(best->problem, &options, &better, error))
        return false;
    int64_t bound = MIN(MAX(better.bound, found->bound), better.cost);
    if (better.cost < found->cost) {
        MtfFreeAnswer worse = *found;
        *found = better;
        better = worse;
    }
    mtf_free_answer_clear(&better);
    found->bound = bound;
    best->cost = found->cost;
    return true;
}

/* Says anew what the choices of another layout are worth. */
static void explain_layout(Attempt *best, const MtfLayout *layout) {
    int nodes = mtf_layout_problem_node_count(mtf_free_problem_get(best->problem));
    g_autofree int *choice = g_new(int, nodes + 1);
    g_clear_pointer(&best->free.why, cJSON_Delete);
    if (layout->rules == NULL && mtf_free_problem_choice(best->problem, layout, choice))
        best->free.why = mtf_alternatives_that_matter(best->problem, choice, MTF_FREE_EXPLAINED);
}

/* ---- Alike layers ---------------------------------------------------------------------------- */

/* Before the proof, so that the best layout whose repeated layers are alike is known when time is up. */
static bool find_alike(const Search *search, Attempt *best, GError **error) {
    if (search->options->uniform != MTF_UNIFORM_AUTO || best->ties == NULL ||
        best->free.layout == NULL)
        return true;
    MtfSearchControl part; /* bounds are of alike layers alone */
    MtfFreeSearchOptions options = free_options(search, best);
    mtf_search_control_init_share(&part, search->control, ALIKE_SHARE);
    options.control = &part;
    options.incumbents = NULL;
    if (!mtf_alike_find(best->problem, best->ties, best->free.layout, &options, &best->alike,
                        error))
        return false;
    if (best->alike != NULL)
        mtf_incumbents_add(best->incumbents, MTF_FREE_LAYOUT, best->alike);
    return true;
}

/* Makes the plan the fastest layout whose layers are alike, unless one in which they differ is clearly
 * faster. */
static void choose_alike(const Search *search, const Attempt *best, MtfPlanAnswer *answer) {
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

/* What searches under other limits found replaces the answer where it is cheaper. */
static void take_cheaper(const Search *search, Attempt *best) {
    const MtfIncumbent *known =
        mtf_incumbents_best(best->incumbents, search->options->memory_limit);
    if (known == NULL || known->cost >= best->cost)
        return;
    mtf_layout_free(best->free.layout);
    best->free.layout = mtf_layout_copy(known->layout);
    best->free.cost = best->cost = known->cost;
    best->free.arena_bytes = known->arena_bytes;
    best->free.step_seconds = known->step_seconds;
    explain_layout(best, known->layout);
    best->free.bound = MIN(best->free.bound, known->cost);
}

static void add_free_layout(Attempt *best, const MtfLayout *layout) {
    if (layout != NULL)
        mtf_incumbents_add(best->incumbents, MTF_FREE_LAYOUT, layout);
}

static bool search_frontier(const Search *search, Attempt *best, GArray **frontier,
                            GError **error) {
    if (search->options->frontier == 0 || best->problem == NULL)
        return true;
    add_free_layout(best, best->free.layout);
    MtfFreeSearchOptions options = free_options(search, best);
    *frontier =
        mtf_frontier(best->problem, &options, search->options->frontier, best->incumbents, error);
    if (*frontier == NULL)
        return false;
    take_cheaper(search, best);
    return true;
}

/* ---- The shortest step ----------------------------------------------------------------------- */

/* The largest limit below `bytes` of a row that is the same for all searches, eight to each power
 * of two, so that searches under near limits look at the same layouts. */
static int64_t limit_below(int64_t bytes) {
    int64_t power = 1;
    while (power < bytes / 2)
        power *= 2;
    int64_t unit = MAX(1, power / 8);
    return (bytes - 1) / unit * unit;
}

/* The search under one of the lower limits. */
typedef struct {
    MtfSearchControl control; /* of bounds that are not of the user's limit */
    MtfFreeSearchOptions options;
    MtfFreeAnswer answer;
    GError *error;
} LimitedSearch;

/* All of them, two at once. What one finds does not depend on the others; where it ends the row,
 * those behind it need not end theirs. */
typedef struct {
    const MtfFreeProblem *problem;
    LimitedSearch searches[TIGHTER_LIMITS];
    gint last; /* none behind it counts; atomic */
} Row;

static void end_row(Row *row, int last) {
    int known = g_atomic_int_get(&row->last);
    while (last < known && !g_atomic_int_compare_and_exchange(&row->last, known, last))
        known = g_atomic_int_get(&row->last);
    for (int i = last + 1; i < TIGHTER_LIMITS; i++)
        mtf_search_cancel(&row->searches[i].control);
}

static void search_limit(int i, void *data) {
    Row *row = data;
    LimitedSearch *limited = &row->searches[i];
    if (mtf_search_is_over(&limited->control))
        return;
    bool done = mtf_free_search(row->problem, &limited->options, &limited->answer, &limited->error);
    if (!done || limited->answer.layout == NULL || limited->answer.too_slow)
        end_row(row, i);
}

/* Rounds of a search under a lower limit. */
static int64_t tighter_work(const Attempt *best) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(best->problem);
    double entries = 1;
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        entries += (double)mtf_layout_problem_node(problem, edge->from)->strategies *
                   mtf_layout_problem_node(problem, edge->to)->strategies;
    }
    return (int64_t)CLAMP(TIGHTER_ENTRIES / entries, TIGHTER_ROUNDS, FREE_WORK);
}

/* Each search knows what a search under that limit alone would know, so that it finds the same. */
static void row_init(Row *row, const Search *search, const Attempt *best) {
    *row = (Row){ .problem = best->problem, .last = TIGHTER_LIMITS - 1 };
    int64_t limit = best->free.arena_bytes, work = tighter_work(best);
    for (int i = 0; i < TIGHTER_LIMITS; i++) {
        LimitedSearch *limited = &row->searches[i];
        *limited = (LimitedSearch){ .options = free_options(search, best) };
        mtf_search_control_init_part(&limited->control, search->control, 0);
        MtfFreeSearchOptions *options = &limited->options;
        options->memory_limit = limit = limit_below(limit);
        options->most_seconds = TIGHTER_STEP * best->free.step_seconds;
        options->work = work;
        options->no_misfit = true;
        options->control = &limited->control;
        mtf_incumbents_best(best->incumbents, limit); /* measured now: the threads only read */
    }
}

/* Searches under lower limits and adds what is found to the incumbents. */
static bool search_tighter(const Search *search, Attempt *best, GError **error) {
    Row row;
    row_init(&row, search, best);
    mtf_in_parallel(TIGHTER_LIMITS, search_limit, &row);
    GError *cause = NULL;
    for (int i = 0; i < TIGHTER_LIMITS; i++) {
        LimitedSearch *limited = &row.searches[i];
        if (i <= row.last && limited->error == NULL)
            add_free_layout(best, limited->answer.layout);
        else if (i <= row.last)
            cause = g_steal_pointer(&limited->error);
        g_clear_error(&limited->error);
        mtf_free_answer_clear(&limited->answer);
    }
    take_cheaper(search, best);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return cause == NULL;
}

/* Where transfers can be hidden, looks for a layout of a shorter step than the cheapest. */
static bool search_fastest(const Search *search, Attempt *best, MtfPlanAnswer *answer,
                           GError **error) {
    const MtfPlanSearchOptions *options = search->options;
    if (best->problem == NULL || best->free.layout == NULL)
        return true;
    bool tightens = options->machine->overlap && !is_large(search) && options->frontier == 0;
    if (tightens && !search_tighter(search, best, error))
        return false;
    answer->step_seconds = best->free.step_seconds;
    if (!options->machine->overlap)
        return true;
    const MtfIncumbent *fastest = fastest_of(search, best);
    if (fastest == NULL || fastest->step_seconds >= best->free.step_seconds)
        return true;
    answer->fastest = mtf_layout_copy(fastest->layout);
    answer->fastest_cost = fastest->cost;
    answer->step_seconds = fastest->step_seconds;
    explain_layout(best, fastest->layout);
    return true;
}

/* ---- Entry ----------------------------------------------------------------------------------- */

/* Measures the incumbents that will be shown, while another form of the step may still be searched.
 */
static void measure_shown(const Search *search, const Attempt *best) {
    if (best->incumbents != NULL && !is_late(search))
        g_ptr_array_unref(mtf_incumbents_shown(best->incumbents, search->options->memory_limit));
}

static bool dump_problem(const Search *search, const Attempt *best, GError **error) {
    if (search->options->dump == NULL || best->problem == NULL)
        return true;
    g_autoptr(MtfLayoutProblem) problem =
        mtf_layout_problem_copy(mtf_free_problem_get(best->problem));
    mtf_layout_problem_set_limit(problem, search->options->memory_limit);
    return mtf_layout_problem_save(problem, search->options->dump, error);
}

/* Hands the best attempt's parts over to the answer. */
static void give_answer(const Search *search, Attempt *best, MtfPlanAnswer *answer) {
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
    best->rules = (MtfRuleAnswer){ 0 };
    best->free = (MtfFreeAnswer){ 0 };
}

static bool search_on(const Search *search, MtfPlanAnswer *answer, GError **error) {
    Attempt *best = NULL;
    bool done = search_meshes(search, &best, &answer->free_meshes, error);
    if (done && best != NULL) {
        answer->in_order_cost = price_in_order(search, best);
        done = improve_mapping(search, &best, &answer->mappings, error) &&
               find_alike(search, best, error) && prove_best(search, best, error) &&
               search_frontier(search, best, &answer->frontier, error) &&
               search_fastest(search, best, answer, error) && dump_problem(search, best, error);
        choose_alike(search, best, answer);
        measure_shown(search, best);
        give_answer(search, best, answer);
    } else if (done) {
        answer->rules = *search->in_order;
        *search->in_order = (MtfRuleAnswer){ 0 };
    }
    attempt_free(best);
    return done;
}

bool mtf_plan_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfPlanSearchOptions *options, MtfPlanAnswer *answer, GError **error) {
    *answer = (MtfPlanAnswer){ .meshes = (int)meshes->len, .in_order_cost = INT64_MAX };
    MtfRuleAnswer in_order = { 0 };
    Search search = { graph, meshes, options, &in_order, options->control, false };
    bool done = search_first_rules(&search, &in_order, error) && search_on(&search, answer, error);
    mtf_rule_answer_clear(&in_order);
    return done;
}

void mtf_plan_answer_clear(MtfPlanAnswer *answer) {
    mtf_rule_answer_clear(&answer->rules);
    mtf_free_answer_clear(&answer->free);
    g_clear_pointer(&answer->fastest, mtf_layout_free);
    g_clear_pointer(&answer->frontier, g_array_unref);
    g_clear_pointer(&answer->incumbents, mtf_incumbents_free);
}

bool mtf_plan_answer_is_free(const MtfPlanAnswer *answer) {
    return answer->free.layout != NULL && answer->free.layout->rules == NULL;
}

MtfLayout *mtf_plan_answer_layout(const MtfPlanAnswer *answer, const MtfGraph *graph) {
    if (answer->fastest != NULL)
        return mtf_layout_copy(answer->fastest);
    if (answer->free.layout != NULL)
        return mtf_layout_copy(answer->free.layout);
    return mtf_layout_from_rules(graph, &answer->rules.mesh, answer->rules.rules);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static double relative_gap(int64_t cost, int64_t bound) {
    return cost > 0 ? (double)(cost - bound) / (double)cost : 0;
}

static void add_rule_answer(cJSON *object, const MtfRuleAnswer *rules) {
    mtf_json_add_integer(object, "cost", rules->cost);
    mtf_json_add_integer(object, "bound", rules->bound);
    mtf_json_add_number(object, "gap", relative_gap(rules->cost, rules->bound));
    cJSON_AddStringToObject(object, "method",
                            rules->tightened
                                ? "integer program over rule layouts, memory limit tightened"
                                : "integer program over rule layouts");
    cJSON_AddStringToObject(object, "layouts", "rule");
    mtf_json_add_integer(object, "excluded", rules->excluded);
    cJSON_AddBoolToObject(object, "stopped", rules->stopped);
}

static void add_free_answer(cJSON *object, const MtfPlanAnswer *answer) {
    const MtfFreeAnswer *free = &answer->free;
    mtf_json_add_integer(object, "cost", free->cost);
    mtf_json_add_integer(object, "bound", free->bound);
    mtf_json_add_number(object, "gap", relative_gap(free->cost, free->bound));
    cJSON_AddStringToObject(object, "method", free->method);
    cJSON_AddStringToObject(object, "layouts", "free");
    if (answer->rules.found)
        mtf_json_add_integer(object, "rule_cost", answer->rules.cost);
    mtf_json_add_integer(object, "free_meshes", answer->free_meshes);
    mtf_json_add_integer(object, "tightenings", free->tightenings);
    if (free->why != NULL)
        cJSON_AddItemToObject(object, "why", cJSON_Duplicate(free->why, true));
}

cJSON *mtf_plan_answer_to_json(const MtfPlanAnswer *answer, int64_t memory_limit) {
    cJSON *object = cJSON_CreateObject();
    if (mtf_plan_answer_is_free(answer))
        add_free_answer(object, answer);
    else
        add_rule_answer(object, &answer->rules);
    if (answer->fastest != NULL)
        mtf_json_add_integer(object, "plan_cost", answer->fastest_cost);
    mtf_json_add_integer(object, "meshes", answer->meshes);
    mtf_json_add_integer(object, "memory_limit", memory_limit);
    mtf_json_add_integer(object, "in_order_cost", answer->in_order_cost);
    if (answer->incumbents != NULL)
        cJSON_AddItemToObject(object, "incumbents",
                              mtf_incumbents_to_json(answer->incumbents, memory_limit));
    cJSON *alike = mtf_alike_to_json(&answer->alike);
    if (alike != NULL)
        cJSON_AddItemToObject(object, "alike_layers", alike);
    if (answer->frontier != NULL)
        cJSON_AddItemToObject(object, "frontier", mtf_frontier_to_json(answer->frontier));
    return object;
}
