// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/mesh_attempt.h"

#include "analyzer/layout_search/accompanied_search.h"
#include "analyzer/layout_search/mesh_rules.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/tune/order_search.h"
#include "layouts/graph/microbatches.h"

#include <math.h>

/* Where the user sets no gap, each search over free layouts ends within a tenth of a percent of the
 * optimum (half a percent for large graphs), and only the best answer's goes on to the optimum;
 * where no seconds, after this many rounds, so that its answer depends on no clock. */
#define FREE_GAP 0.001
#define FREE_GAP_LARGE 0.005
#define FREE_WORK 60

/* The same with memory that the problem leaves out (left_out.h), of wide problems, whose rounds are long. */
#define TIGHTENED_WORK 12

/* Of the time that is left, for layouts in which repeated layers are alike. */
#define ALIKE_SHARE 0.3

static MtfMeshAttempt *attempt_new(void) {
    MtfMeshAttempt *attempt = g_new0(MtfMeshAttempt, 1);
    attempt->cost = INT64_MAX;
    return attempt;
}

void mtf_mesh_attempt_free(MtfMeshAttempt *attempt) {
    if (attempt == NULL)
        return;
    mtf_rule_answer_clear(&attempt->rules);
    mtf_layer_ties_free(attempt->ties);
    mtf_layout_free(attempt->alike);
    mtf_free_problem_free(attempt->problem);
    mtf_free_answer_clear(&attempt->free);
    mtf_settled_layout_clear(&attempt->settled);
    mtf_incumbents_free(attempt->incumbents);
    g_free(attempt);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

bool mtf_plan_search_is_late(const MtfPlanSearch *search) {
    return mtf_search_is_over(search->control);
}

bool mtf_plan_search_is_large(const MtfPlanSearch *search) {
    return search->graph->operations->len > MTF_LARGE_OPERATIONS;
}

double mtf_plan_search_gap(const MtfPlanSearch *search) {
    const MtfPlanSearchOptions *options = search->options;
    return options->has_gap                   ? options->gap
           : mtf_plan_search_is_large(search) ? FREE_GAP_LARGE
                                              : FREE_GAP;
}

void mtf_plan_search_begin_part(const MtfPlanSearch *search, _Atomic int64_t *rival,
                                MtfSearchControl *part) {
    mtf_search_control_init_part(part, search->control, 0);
    part->listener = search->control != NULL ? search->control->listener : NULL;
    part->rival = rival;
    part->slack = 1;
}

MtfLayout *mtf_plan_search_rules(const MtfPlanSearch *search, const MtfMesh *mesh,
                                 const MtfRules *rules) {
    MtfLayout *layout = mtf_layout_from_rules(search->graph, mesh, rules);
    layout->execution.stage = search->options->stage;
    return layout;
}

/* ---- Rules of one mesh ------------------------------------------------------------------------ */

/* Whether rules of all meshes were searched, laid in order, and none was found to fit: on what the mesh lies changes what
 * they cost, not what they need. */
static bool no_rules_fit(const MtfPlanSearch *search, const MtfMesh *mesh) {
    const MtfRuleAnswer *known = search->in_order;
    if (known->found || search->options->rules_only || known->by_mesh == NULL)
        return false;
    for (guint i = 0; i < search->meshes->len; i++)
        if (mtf_mesh_equal(&g_array_index(search->meshes, MtfMesh, i), mesh))
            return g_array_index(known->by_mesh, MtfRuleMesh, i).searched;
    return false;
}

/* What is known of rules that do not fit. */
static MtfRuleAnswer copy_unfit(const MtfRuleAnswer *known) {
    MtfRuleAnswer copy = *known;
    copy.by_mesh = NULL;
    copy.rules = known->rules != NULL ? mtf_rules_copy(known->rules) : NULL;
    return copy;
}

/* The best rules on the attempt's mesh as it is laid; in order they are known for the best mesh. */
static bool attempt_rules(const MtfPlanSearch *search, MtfMeshAttempt *attempt, GError **error) {
    MtfRuleAnswer *known = search->in_order;
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(meshes, attempt->mesh);
    if (no_rules_fit(search, &attempt->mesh)) {
        attempt->rules = copy_unfit(known);
    } else if (attempt->in_order && known->rules != NULL &&
               mtf_mesh_equal(&known->mesh, &attempt->mesh)) {
        attempt->rules = *known;
        attempt->rules.by_mesh = NULL;
        known->rules = NULL;
    } else if (search->options->no_rules || search->options->mapping != NULL) {
        attempt->rules = (MtfRuleAnswer){ 0 };
    } else if (mtf_plan_search_is_late(search) && !search->options->rules_only) {
        attempt->rules = (MtfRuleAnswer){ .stopped = true };
    } else if (!mtf_mesh_rules(search, meshes,
                               attempt->in_order ? NULL : &attempt->pricer.map.mapping,
                               &attempt->rules, error)) {
        return false;
    }
    if (attempt->rules.found)
        attempt->cost = attempt->rules.cost;
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

static void pin_batch(const MtfGraph *graph, GArray *pins) {
    MtfPin pin = { .dim = mtf_graph_find_batch(graph), .axis = 0 };
    g_array_append_val(pins, pin);
}

static bool pose_problem(const MtfPlanSearch *search, MtfMeshAttempt *attempt, GError **error) {
    g_autoptr(GArray) pins = g_array_new(FALSE, FALSE, sizeof(MtfPin));
    append_pins(search->graph, &attempt->mesh, search->options->pins, false, pins);
    append_pins(search->graph, &attempt->mesh, search->options->forbids, true, pins);
    if (search->options->batch_first)
        pin_batch(search->graph, pins);
    attempt->problem =
        mtf_free_problem_new(search->graph, &attempt->mesh, &attempt->pricer,
                             (const MtfPin *)(void *)pins->data, (int)pins->len, error);
    if (attempt->problem == NULL)
        return false;
    mtf_free_problem_set_stage(attempt->problem, &search->options->stage);
    if (search->options->uniform != MTF_UNIFORM_NEVER)
        attempt->ties = mtf_layer_ties_new(attempt->problem);
    return true;
}

/* Gives the best rules the order in which they fit. */
static void order_rules(const MtfPlanSearch *search, const MtfMeshAttempt *attempt,
                        MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(search->graph, layout);
    mtf_layout_improve_order(search->graph, layout, &program, &attempt->pricer,
                             search->options->memory_limit);
}

typedef struct {
    const MtfPlanSearch *search;
    MtfMeshAttempt *attempt;
    MtfLayoutMeasures *values; /* of each layout that is known */
    bool posed;
    GError **error;
} Beginning;

static const MtfKnownLayout *known_layout(const MtfPlanSearch *search, int i) {
    return &g_array_index(search->options->known, MtfKnownLayout, i);
}

static void pose_or_measure_known(int i, void *data) {
    Beginning *all = data;
    gint64 begun = g_get_monotonic_time();
    if (i == 0) {
        all->posed = pose_problem(all->search, all->attempt, all->error);
        all->attempt->posing_seconds = (double)(g_get_monotonic_time() - begun) / 1e6;
    } else {
        all->values[i - 1] = mtf_layout_measure(all->search->graph, &all->attempt->pricer,
                                                known_layout(all->search, i - 1)->layout);
    }
}

/* Poses the problem and, beside that, measures what is known, which of a thousand layers takes longer. Begins with what
 * fits of it. */
static bool begin(const MtfPlanSearch *search, MtfMeshAttempt *attempt, GError **error) {
    int n = search->options->known != NULL ? (int)search->options->known->len : 0;
    g_autofree MtfLayoutMeasures *values = g_new(MtfLayoutMeasures, n + 1);
    Beginning all = { .search = search, .attempt = attempt, .values = values, .error = error };
    attempt->incumbents = mtf_incumbents_new(search->graph, &attempt->pricer);
    mtf_in_parallel(n + 1, pose_or_measure_known, &all);
    for (int i = 0; i < n; i++) {
        const MtfKnownLayout *known = known_layout(search, i);
        mtf_incumbents_add_measured(attempt->incumbents, known->name, known->layout, &values[i]);
    }
    attempt->begun =
        n > 0 && mtf_incumbents_best(attempt->incumbents, search->options->memory_limit) != NULL;
    return all.posed;
}

static void gather_incumbents(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                              const MtfLayout *known) {
    const MtfRuleAnswer *rules = &attempt->rules;
    if (rules->found) {
        g_autoptr(MtfLayout) layout = mtf_plan_search_rules(search, &attempt->mesh, rules->rules);
        if (rules->other_order)
            order_rules(search, attempt, layout);
        mtf_incumbents_add(attempt->incumbents, MTF_RULE_LAYOUT, layout);
    }
    if (known != NULL)
        mtf_incumbents_add(attempt->incumbents, MTF_FREE_LAYOUT, known);
    if (!attempt->begun || search->options->by_hand)
        mtf_incumbents_add_standards(attempt->incumbents, attempt->problem);
}

MtfFreeSearchOptions mtf_mesh_attempt_options(const MtfPlanSearch *search,
                                              const MtfMeshAttempt *attempt) {
    const MtfPlanSearchOptions *options = search->options;
    bool alike = options->uniform == MTF_UNIFORM_ALWAYS && attempt->ties != NULL;
    bool counts = !mtf_search_has_deadline(search->control);
    bool wide = mtf_mesh_attempt_entries(attempt) >= MTF_WIDE_ENTRIES;
    return (MtfFreeSearchOptions){
        .memory_limit = options->memory_limit,
        .incumbents = attempt->incumbents,
        .leader = alike ? attempt->ties->leader : NULL,
        .work = counts ? FREE_WORK : 0,
        .tightened_work = counts && wide ? TIGHTENED_WORK : 0,
        .near = wide,
        .gap = mtf_plan_search_gap(search),
        .seed = options->seed,
        .control = search->control,
    };
}

double mtf_mesh_attempt_entries(const MtfMeshAttempt *attempt) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(attempt->problem);
    double entries = 1;
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        entries += (double)mtf_layout_problem_node(problem, edge->from)->strategies *
                   mtf_layout_problem_node(problem, edge->to)->strategies;
    }
    return entries;
}

void mtf_mesh_attempt_keep_found(MtfMeshAttempt *attempt) {
    const MtfFreeAnswer *found = &attempt->free;
    MtfLayoutMeasures value = { found->cost, found->arena_bytes, found->step_seconds };
    mtf_incumbents_add_measured(attempt->incumbents, MTF_FREE_LAYOUT, found->layout, &value);
}

/* Steps longer than `lost_from` seconds are not worth finding out whether they fit; 0: all are. */
static bool find_alike(const MtfPlanSearch *search, MtfMeshAttempt *attempt, double lost_from,
                       MtfSearchControl *control, GError **error) {
    if (search->options->uniform != MTF_UNIFORM_AUTO || attempt->ties == NULL ||
        attempt->alike != NULL)
        return true;
    const MtfFreeAnswer *found = &attempt->free;
    if (found->layout != NULL &&
        mtf_alike_differences(attempt->problem, attempt->ties, found->layout) == 0) {
        attempt->alike = mtf_layout_copy(found->layout);
        mtf_mesh_attempt_keep_found(attempt);
        return true;
    }
    MtfFreeSearchOptions options = mtf_mesh_attempt_options(search, attempt);
    options.control = control;
    options.incumbents = NULL;
    options.hopeless_seconds = lost_from;
    MtfFreeAnswer answer;
    bool done = mtf_alike_find(attempt->problem, attempt->ties, &options, &answer, error);
    attempt->alike = g_steal_pointer(&answer.layout);
    attempt->lost_start = answer.hopeless ? answer.step_seconds : 0;
    mtf_free_answer_clear(&answer);
    if (attempt->alike != NULL)
        mtf_incumbents_add(attempt->incumbents, MTF_FREE_LAYOUT, attempt->alike);
    return done;
}

bool mtf_mesh_attempt_find_alike(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                                 GError **error) {
    MtfSearchControl part; /* bounds are of alike layers alone */
    mtf_search_control_init_share(&part, search->control, ALIKE_SHARE);
    return find_alike(search, attempt, 0, &part, error);
}

/* Of what is hopeless, the share that a first look's bound comes to where more rounds are likely to say that it is. */
#define NEARLY_HOPELESS 0.9

/* … and where sixty rounds are; from farther off they do not come so far. */
#define ALL_BUT_HOPELESS 0.97

static bool is_nearly_hopeless(int64_t least, int64_t hopeless) {
    return (double)least > NEARLY_HOPELESS * (double)hopeless;
}

/* What a first look has said that layouts of this mesh cost at least. */
static int64_t first_bound(const MtfPlanSearch *search, const MtfMesh *mesh) {
    for (guint i = 0; search->bounds != NULL && i < search->bounds->len; i++)
        if (mtf_mesh_equal(&g_array_index(search->meshes, MtfMesh, i), mesh))
            return g_array_index(search->bounds, int64_t, i);
    return 0;
}

/* What layouts with alike layers may cost, of the best layout of other meshes, for others to be cheaper than that. */
#define DIFFER_SAVES 1.05

/* Layouts with alike layers that cost no less are not worth a search for others. */
static int64_t alike_hopeless(const MtfPlanSearch *search, int64_t hopeless) {
    return search->known > 0 ? MIN(hopeless, (int64_t)(DIFFER_SAVES * (double)search->known))
                             : hopeless;
}

/* Of a wide problem repeated layers laid out alike are searched for first, in the time of one layer: what is
 * found is a good layout to begin with. Where all such are hopeless, so are those that differ, which save little more.
 * Of large graphs the draft does so; and where a bound is likely to say that all is hopeless, it does in less time
 * without. */
static bool attempt_alike(const MtfPlanSearch *search, MtfMeshAttempt *attempt, int64_t hopeless,
                          GError **error) {
    int64_t least = attempt->in_order ? first_bound(search, &attempt->mesh) : 0;
    if (mtf_plan_search_is_large(search) || is_nearly_hopeless(least, hopeless) ||
        mtf_mesh_attempt_entries(attempt) < MTF_WIDE_ENTRIES)
        return true;
    GError *cause = NULL;
    MtfSearchControl part;
    _Atomic int64_t rival = alike_hopeless(search, hopeless);
    mtf_search_control_init_share(&part, search->control, ALIKE_SHARE);
    part.rival = &rival;
    part.slack = 1;
    if (find_alike(search, attempt, mtf_variant_race_lost_from(search->options->race), &part,
                   &cause))
        return true;
    attempt->hopeless = mtf_search_is_beaten(&part, rival);
    if (attempt->hopeless)
        g_error_free(cause);
    else
        g_propagate_error(error, cause);
    return attempt->hopeless;
}

/* Of variants that are searched at once one after the other poses its problem. */
static void await_posing(const MtfPlanSearch *search) {
    mtf_search_tell_phase(search->control, "posing free layouts");
    mtf_variant_race_await(search->options->race, search->options->runner);
}

static void tell_posed(const MtfPlanSearch *search) {
    mtf_search_tell_phase(search->control, "free layouts");
    mtf_variant_race_posed(search->options->race, search->options->runner);
}

/* Tells where the search of a wide problem begins, whose repeated layers were laid out alike; whether that lags behind
 * another variant. */
static bool lags(const MtfPlanSearch *search, MtfMeshAttempt *attempt) {
    const MtfPlanSearchOptions *options = search->options;
    const MtfIncumbent *known =
        attempt->alike != NULL || attempt->lost_start > 0
            ? mtf_incumbents_best(attempt->incumbents, options->memory_limit)
            : NULL;
    double start = attempt->lost_start > 0 ? attempt->lost_start : INFINITY;
    mtf_variant_race_start(options->race, options->runner,
                           known != NULL ? fmin(start, known->step_seconds) : start);
    return mtf_variant_race_lags(options->race, options->runner);
}

/* Whether free layouts are left alone: they are not wanted, or rules are known when time is up. */
static bool rules_are_enough(const MtfPlanSearch *search, const MtfMeshAttempt *attempt) {
    return search->options->rules_only || (attempt->rules.found && mtf_plan_search_is_late(search));
}

/* How much longer than the rival's step the cheapest layout's is to be, to be left: layouts may hide more than
 * those made by hand. */
#define HIDES_MORE 1.05

/* Known layouts that cost more than this many times the cheapest do not tell what overlap others gain. */
#define CHEAP 1.2

/* A layout's cost over the length of its step. */
static double hidden_by(const MtfPlanSearch *search, const MtfIncumbent *known) {
    double host = mtf_machine_step_seconds(search->options->machine);
    return (double)known->cost / 1e9 / (known->step_seconds - host);
}

/* The most of that among known layouts which fit, or where none does among all, and are cheap; 0: none is known. */
static double most_hidden(const MtfPlanSearch *search, const MtfMeshAttempt *attempt) {
    int64_t limit = search->options->memory_limit;
    const MtfIncumbent *cheapest = mtf_incumbents_best(attempt->incumbents, limit);
    if (cheapest == NULL) {
        limit = INT64_MAX;
        cheapest = mtf_incumbents_best(attempt->incumbents, limit);
    }
    double most = cheapest != NULL ? hidden_by(search, cheapest) : 0;
    g_autoptr(GPtrArray) known = mtf_incumbents_fitting(attempt->incumbents, limit);
    for (guint i = 0; i < known->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(known, i);
        if ((double)incumbent->cost <= CHEAP * (double)cheapest->cost)
            most = fmax(most, hidden_by(search, incumbent));
    }
    return most;
}

int64_t mtf_mesh_attempt_hopeless(const MtfPlanSearch *search, const MtfMeshAttempt *attempt) {
    double rival = search->options->by_bound ? search->options->rival_seconds : 0;
    double hidden = rival > 0 ? most_hidden(search, attempt) : 0;
    double seconds = rival - mtf_machine_step_seconds(search->options->machine);
    double cost = 1e9 * HIDES_MORE * hidden * seconds;
    return cost > 0 && cost < (double)(INT64_MAX / 2) ? (int64_t)cost : INT64_MAX;
}

/* The step of a draft that is not worth finding out whether it fits, where no layout is known that does; 0: none. */
static double hopeless_seconds(const MtfPlanSearch *search, const MtfMeshAttempt *attempt) {
    const MtfPlanSearchOptions *options = search->options;
    bool wanted = options->by_bound && options->rival_seconds > 0 &&
                  mtf_plan_search_is_large(search) &&
                  mtf_incumbents_best(attempt->incumbents, options->memory_limit) == NULL;
    return wanted ? MTF_HOPELESS * options->rival_seconds : 0;
}

/* Searches the problem, or in `work` rounds (0: as the search says) for its bound alone, unless that turns out to be
 * hopeless: costing no less than `hopeless`. Other rivals hear of its bounds as well, but for those of
 * a first look, since another mesh may do better. */
static bool search_problem(const MtfPlanSearch *search, MtfMeshAttempt *attempt, int64_t hopeless,
                           int work, GError **error) {
    GError *cause = NULL;
    MtfSearchControl part;
    _Atomic int64_t rival = hopeless;
    MtfFreeSearchOptions options = mtf_mesh_attempt_options(search, attempt);
    options.begun = attempt->begun;
    options.prices = attempt->begun ? search->options->row_prices : NULL;
    options.draft = mtf_plan_search_is_large(search) && !attempt->begun && work == 0;
    options.hopeless_seconds = hopeless_seconds(search, attempt);
    options.bound_only = work > 0;
    options.work = work > 0 ? work : options.work;
    if (hopeless < INT64_MAX) {
        mtf_plan_search_begin_part(search, &rival, &part);
        part.also = work == 0 ? search->control : NULL;
        options.control = &part;
    }
    if (mtf_search_accompanied(search, attempt, &options, attempt->begun, &attempt->free, &cause)) {
        attempt->hopeless = attempt->free.hopeless;
        return true;
    }
    attempt->hopeless = hopeless < INT64_MAX && mtf_search_is_beaten(&part, hopeless);
    if (attempt->hopeless)
        g_error_free(cause);
    else
        g_propagate_error(error, cause);
    return attempt->hopeless;
}

/* Searches the free layouts beside the rules; `known` is a layout found before, or NULL. */
static bool attempt_free_layouts(const MtfPlanSearch *search, MtfMeshAttempt *attempt,
                                 const MtfLayout *known, GError **error) {
    if (rules_are_enough(search, attempt)) {
        tell_posed(search);
        return true;
    }
    await_posing(search);
    if (!begin(search, attempt, error))
        return false;
    gather_incumbents(search, attempt, known);
    tell_posed(search);
    int64_t hopeless = mtf_mesh_attempt_hopeless(search, attempt);
    if (!attempt_alike(search, attempt, hopeless, error))
        return false;
    attempt->lags = lags(search, attempt);
    if (!attempt->hopeless && !attempt->lags &&
        !search_problem(search, attempt, hopeless, 0, error))
        return false;
    if (attempt->hopeless || attempt->lags)
        attempt->cost = INT64_MAX;
    else if (attempt->free.layout != NULL)
        attempt->cost = attempt->free.cost;
    else if (attempt->rules.rules != NULL && attempt->free.limit_enough > 0)
        attempt->free.limit_enough = MIN(attempt->free.limit_enough, attempt->rules.arena_bytes);
    return true;
}

/* ---- One mesh -------------------------------------------------------------------------------- */

MtfMeshAttempt *mtf_mesh_attempt(const MtfPlanSearch *search, const MtfMesh *mesh,
                                 const MtfMapping *mapping, const MtfLayout *known,
                                 GError **error) {
    MtfMeshAttempt *attempt = attempt_new();
    attempt->mesh = *mesh;
    attempt->in_order = mapping == NULL;
    bool done = mtf_pricer_init(&attempt->pricer, search->options->machine, mesh, error);
    if (done && mapping != NULL)
        attempt->pricer.map.mapping = *mapping;
    if (done && attempt_rules(search, attempt, error) &&
        attempt_free_layouts(search, attempt, known, error))
        return attempt;
    mtf_mesh_attempt_free(attempt);
    return NULL;
}

MtfMeshLook mtf_mesh_look(const MtfPlanSearch *search, const MtfMesh *mesh, int rounds) {
    g_autoptr(MtfMeshAttempt) attempt = attempt_new();
    MtfMeshLook look = { 0 };
    attempt->mesh = *mesh;
    if (!mtf_pricer_init(&attempt->pricer, search->options->machine, mesh, NULL) ||
        !begin(search, attempt, NULL))
        return look;
    gather_incumbents(search, attempt, NULL);
    int64_t hopeless = mtf_mesh_attempt_hopeless(search, attempt);
    look.hopeless = hopeless < INT64_MAX &&
                    search_problem(search, attempt, hopeless, rounds, NULL) && attempt->hopeless;
    look.least = look.hopeless ? hopeless : attempt->free.bound;
    look.nearly = (double)look.least > ALL_BUT_HOPELESS * (double)hopeless;
    return look;
}

MtfLayout *mtf_mesh_attempt_layout(const MtfPlanSearch *search, const MtfMeshAttempt *attempt) {
    if (attempt->free.layout != NULL)
        return mtf_layout_copy(attempt->free.layout);
    return mtf_plan_search_rules(search, &attempt->mesh, attempt->rules.rules);
}
