// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/variant_trial.h"

#include "analyzer/planner/planning.h"
#include "analyzer/rewriting/deep_layout.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"

#include <math.h>

/* What is done with a layout when the search is over (it is lowered, priced, packed, compared and written, two
 * things at a time): its time in multiples of the time that making the step's graph took, the largest share of
 * --seconds that is kept for it, and the share of it that settling the layout takes. Measured on Transformers
 * of 250 to 1,000 layers. */
#define ENDING_GRAPHS 4.7
#define ENDING_SHARE 0.6
#define SETTLING_SHARE 0.2

/* The share by which a bound may exceed another variant's cost before this variant is given up: what
 * another mesh or mapping might save. */
#define PRUNING_SLACK 1.1

/* Of very large graphs each search takes long: where a variant that fits is known, others are given up
 * whose best rules, memory apart, cost more than this times the rules of that variant. */
#define OUTCLASSED 1.05

/* The search of one variant, which may run beside that of the variant before it. */
typedef struct Trial {
    const MtfVariantSearchOptions *options;
    MtfSearchControl control;
    MtfVariantAnswer found;
    MtfVariantRace *race; /* with the variants that are searched beside it; or NULL */
    int runner;           /* its number there */
    int64_t known;        /* what the variant beside it starts from; INT64_MAX: nothing */
    bool trails;          /* what it found before its end trailed what another did, */
    bool loses;           /* or its start a plan that was known */
    bool done;
    GError *error;
} Trial;

bool mtf_variants_stopped(const MtfVariantSearchOptions *options) {
    return mtf_search_is_stopped(options->control);
}

int64_t mtf_variant_cost(const MtfVariantAnswer *found) {
    return found->answer.found ? found->answer.cost : INT64_MAX;
}

/* Of the seconds for a search, those that the ending takes. */
static double ending_seconds(const GArray *variants, double seconds) {
    double graph = 0;
    for (guint i = 0; i < variants->len; i++)
        graph = fmax(graph, g_array_index(variants, MtfStepCandidate, i).seconds);
    return fmin(ENDING_SHARE * seconds, ENDING_GRAPHS * graph);
}

bool mtf_variants_late(const MtfVariantSearchOptions *options, const GArray *variants) {
    return mtf_search_has_deadline(options->control) &&
           mtf_search_seconds_left(options->control) <=
               ending_seconds(variants, options->control->seconds);
}

bool mtf_variants_enough(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    return mtf_variants_stopped(options) ||
           (mtf_variant_cost(best) < INT64_MAX && mtf_variants_late(options, best->variants));
}

int64_t mtf_variants_rival_cost(const MtfVariantSearchOptions *options) {
    double seconds = options->rival_seconds - mtf_machine_step_seconds(options->machine);
    double cost = 1e9 * seconds * mtf_schedule_most_hidden(options->machine);
    return options->rival_seconds > 0 && cost < (double)(INT64_MAX / 2) ? (int64_t)fmax(cost, 0)
                                                                        : INT64_MAX;
}

/* ---- One variant ---------------------------------------------------------------------------------- */

static MtfPlanSearchOptions plan_options(const MtfVariantSearchOptions *options,
                                         const MtfGraph *graph) {
    return (MtfPlanSearchOptions){
        .machine = options->machine,
        .memory_limit = options->memory_limit,
        .pins = options->pins,
        .forbids = options->forbids,
        .rules_only = options->rules_only,
        .no_rules = options->no_rules,
        .batch_first = options->batch_first,
        .uniform = options->uniform,
        .has_gap = !isnan(options->gap),
        .gap = options->gap,
        .proof_gap = options->proof_gap,
        .seed = options->seed,
        .keep_problem = options->keep_problem,
        .control = options->control,
        .rival_seconds = options->rival_seconds,
        .by_bound = graph->operations->len > MTF_QUICK_OPERATIONS,
        .settles = true,
        .runs = graph->operations->len > MTF_QUICK_OPERATIONS,
        .collectives = options->collectives,
        .bucket_bytes = options->bucket_bytes,
        .operations = options->operations,
    };
}

MtfFirstLook *mtf_variant_look(const MtfStepCandidate *candidate, void *data) {
    const MtfVariantSearchOptions *options = data;
    MtfPlanSearchOptions search = plan_options(options, candidate->graph);
    return mtf_plan_search_look(candidate->graph, options->meshes, &search);
}

double mtf_variant_bytes_to_host(const MtfVariantSearchOptions *options, const MtfGraph *graph,
                                 bool whole_step) {
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    double bytes = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        int result = mtf_graph_operation(graph, i)->outputs[0];
        if (mtf_tensor_is_on_host(graph, result))
            bytes += (whole_step ? mtf_operation_times(graph, i) : 1) *
                     (double)mtf_graph_tensor_bytes(graph, result);
    }
    return bytes / devices;
}

bool mtf_variant_host_holds(const MtfMachine *machine, double bytes_on_host) {
    return machine->host_memory_bytes == 0 || bytes_on_host <= (double)machine->host_memory_bytes;
}

/* Fails where what waits with the host cannot fit there under any layout. */
static bool check_host(const MtfVariantSearchOptions *options, const MtfGraph *graph,
                       GError **error) {
    double bytes = mtf_variant_bytes_to_host(options, graph, false);
    if (mtf_variant_host_holds(options->machine, bytes))
        return true;
    g_autofree char *needed = mtf_bytes_format(bytes);
    g_autofree char *there = mtf_bytes_format((double)options->machine->host_memory_bytes);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "what waits with the host needs %s for each device, whose share of the host's "
                "memory is %s (\"host_memory_bytes\" of the machine \"%s\"): leave fewer layers "
                "there (--offload), or use smaller micro-batches or more devices",
                needed, there, options->machine->name);
    return false;
}

static void known_clear(gpointer data) {
    g_clear_pointer(&((MtfKnownLayout *)data)->layout, mtf_layout_free);
}

/* What few of the layers were laid out in, as layouts (MtfKnownLayout) of all; NULL: nothing. */
static GArray *known_layouts(const MtfFewLayers *few, const MtfDeepening *deepening) {
    g_autoptr(GArray) known = g_array_new(FALSE, FALSE, sizeof(MtfKnownLayout));
    g_array_set_clear_func(known, known_clear);
    for (guint i = 0; i < few->layouts->len; i++) {
        const MtfKnownLayout *one = &g_array_index(few->layouts, MtfKnownLayout, i);
        MtfKnownLayout deep = { one->name, mtf_deepening_layout(deepening, one->layout) };
        if (deep.layout != NULL)
            g_array_append_val(known, deep);
    }
    return known->len > 0 ? g_steal_pointer(&known) : NULL;
}

/* What memory is worth to few of the layers, at the same places of all. */
static MtfRowPrices *known_prices(const MtfFewLayers *few, const MtfDeepening *deepening) {
    if (few->prices == NULL)
        return NULL;
    MtfRowPrices *prices = mtf_row_prices_copy(few->prices);
    for (int i = 0; i < prices->count; i++)
        prices->times[i] = mtf_deepening_operation(deepening, (int)prices->times[i]);
    return prices;
}

/* Searches the graph of the trial's variant, with `frontier` points of time against memory. */
static bool search_variant(Trial *trial, int frontier, GError **error) {
    MtfVariantAnswer *found = &trial->found;
    MtfStepCandidate *candidate = &g_array_index(found->variants, MtfStepCandidate, found->variant);
    found->graph =
        candidate->graph != NULL
            ? g_steal_pointer(&candidate->graph)
            : mtf_planning_executed_graph(trial->options->written, &candidate->variant, error);
    if (found->graph == NULL || !check_host(trial->options, found->graph, error))
        return false;
    g_autoptr(MtfRulePrices) prices = g_steal_pointer(&candidate->prices);
    g_autoptr(MtfFirstLook) look = g_steal_pointer(&candidate->look);
    MtfPlanSearchOptions options = plan_options(trial->options, found->graph);
    options.frontier = frontier;
    options.control = &trial->control;
    options.race = trial->race;
    options.runner = trial->runner;
    options.look = look;
    const MtfFewLayers *few = trial->options->few;
    g_autoptr(MtfDeepening) deepening =
        few != NULL ? mtf_deepening_new(found->graph, few->graph, few->layers) : NULL;
    g_autoptr(GArray) known = deepening != NULL ? known_layouts(few, deepening) : NULL;
    g_autoptr(MtfRowPrices) row_prices = known != NULL ? known_prices(few, deepening) : NULL;
    options.known = known;
    options.mapping = known != NULL ? few->mapping : NULL;
    options.row_prices = row_prices;
    options.by_hand = trial->options->framework != NULL;
    options.prices = prices;
    return mtf_plan_search(found->graph, trial->options->meshes, &options, &found->answer, error);
}

/* The layout, where it was settled while it was proven. */
static bool take_settled(MtfVariantAnswer *answer) {
    MtfSettledLayout *settled = &answer->answer.settled;
    if (settled->layout == NULL || answer->answer.fastest != NULL)
        return false;
    answer->layout = g_steal_pointer(&settled->layout);
    answer->program = g_steal_pointer(&settled->program);
    return true;
}

void mtf_variant_answer_tune(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer) {
    if (answer->layout != NULL || take_settled(answer))
        return;
    double left = mtf_search_seconds_left(options->control);
    double ending = (1 - SETTLING_SHARE) * ending_seconds(answer->variants, left);
    MtfSearchControl part;
    mtf_search_control_init_part(&part, options->control,
                                 isfinite(left) ? fmax(1e-3, left - ending) : 0);
    mtf_program_free(answer->program); /* of a layout that was dropped */
    answer->layout = mtf_plan_answer_layout(&answer->answer, answer->graph);
    MtfSettling how = { .memory_limit = options->memory_limit,
                        .collectives = options->collectives,
                        .bucket_bytes = options->bucket_bytes,
                        .control = &part };
    answer->program =
        mtf_layout_settle(answer->graph, answer->layout, &answer->answer.pricer, &how);
}

/* ---- Variants that are searched at once ----------------------------------------------------------- */

void mtf_variant_clear_found(MtfVariantAnswer *found) {
    g_clear_pointer(&found->graph, mtf_graph_free);
    g_clear_pointer(&found->training, mtf_graph_free);
    g_clear_pointer(&found->training_text, g_free);
    g_clear_pointer(&found->program, mtf_program_free);
    g_clear_pointer(&found->layout, mtf_layout_free);
    mtf_plan_answer_clear(&found->answer);
}

static const MtfStepCandidate *candidate_of(const Trial *trial) {
    return &g_array_index(trial->found.variants, MtfStepCandidate, trial->found.variant);
}

static void trial_init(Trial *trial, const MtfVariantSearchOptions *options,
                       const MtfVariantAnswer *best, int variant) {
    double left = mtf_search_seconds_left(options->control);
    *trial = (Trial){ .options = options,
                      .found = { .variants = best->variants, .variant = variant },
                      .known = INT64_MAX };
    mtf_search_control_init_part(&trial->control, options->control,
                                 isfinite(left) ? left - ending_seconds(best->variants, left) : 0);
    trial->control.slack = PRUNING_SLACK;
    if (mtf_variant_cost(best) < INT64_MAX)
        trial->control.slack +=
            (double)candidate_of(trial)->hidden / (double)mtf_variant_cost(best);
    trial->control.listener = options->control != NULL ? options->control->listener : NULL;
}

static bool is_outclassed(const Trial *trial, const Trial *before) {
    const MtfStepCandidate *own = candidate_of(trial), *other = candidate_of(before);
    return own->graph != NULL && own->graph->operations->len > MTF_VERY_LARGE_OPERATIONS &&
           other->cost > 0 && (double)own->cost > OUTCLASSED * (double)other->cost;
}

/* Searches behind another trial of the same race, in silence. */
static void trial_follow(Trial *trial, Trial *before) {
    trial->control.listener = NULL;
    trial->control.rival = &before->control.cost;
    if (is_outclassed(trial, before))
        trial->control.slack = 0;
    else
        before->known = mtf_variants_rival_cost(trial->options);
    mtf_search_tell_found(&before->control, before->known);
}

static void trial_clear(Trial *trial) {
    mtf_variant_clear_found(&trial->found);
    g_clear_error(&trial->error);
}

static bool is_large(const Trial *trial) {
    return trial->found.graph->operations->len > MTF_LARGE_OPERATIONS;
}

/* Where one has a plan, ends those whose starts lag behind its own: what they find would be left (is_left). */
static void end_lagging(Trial *trials, int own) {
    const MtfPlanAnswer *found = &trials[own].found.answer;
    bool stays = trials[own].done && found->found && !found->hopeless && !found->lost;
    for (int k = 0; stays && k < trials[own].race->count; k++)
        if (mtf_variant_race_leads(trials[own].race, own, k) && !is_large(&trials[k]))
            mtf_search_cancel(&trials[k].control);
}

/* Takes what is known of the trial's variant, and tells the others its step. */
static bool take_known(Trial *trial) {
    MtfVariantAnswer *known = trial->options->known, *found = &trial->found;
    if (known == NULL || known->graph == NULL)
        return false;
    const MtfStepCandidate *searched =
        &g_array_index(known->variants, MtfStepCandidate, known->variant);
    if (!mtf_step_variant_equal(&searched->variant, &candidate_of(trial)->variant))
        return false;
    MtfVariantAnswer own = *found;
    *found = *known;
    *known = (MtfVariantAnswer){ .variants = known->variants };
    found->variants = own.variants;
    found->variant = own.variant;
    found->given_up = own.given_up;
    mtf_variant_race_posed(trial->race, trial->runner);
    mtf_variant_race_start(trial->race, trial->runner, found->answer.step_seconds);
    mtf_variant_race_enter(trial->race, trial->runner, found->answer.step_seconds);
    return true;
}

static void search_trial(int i, void *data) {
    Trial *trial = (Trial *)data + i;
    trial->done = take_known(trial) || search_variant(trial, 0, &trial->error);
    trial->control.cost = MIN(mtf_variant_cost(&trial->found), trial->known);
    mtf_variant_race_posed(trial->race, trial->runner);
    mtf_variant_race_start(trial->race, trial->runner, INFINITY);
    mtf_variant_race_enter(trial->race, trial->runner, INFINITY);
    end_lagging(data, i);
    mtf_variant_race_end(trial->race, trial->runner);
    bool very_large = trial->found.graph != NULL &&
                      trial->found.graph->operations->len > MTF_VERY_LARGE_OPERATIONS;
    const MtfPlanAnswer *found = &trial->found.answer;
    if (found->found && !found->hopeless && !found->lost &&
        !mtf_search_is_stopped(&trial->control) && !very_large)
        mtf_variant_answer_tune(trial->options, &trial->found); /* others may still be searched */
}

/* Bytes that would do where nothing fits. */
static int64_t need_of(const MtfPlanAnswer *answer) {
    return answer->free.limit_enough > 0 ? answer->free.limit_enough : answer->rules.arena_bytes;
}

/* Whether nothing bounds what was found, as where the proof was left to another variant. */
static bool is_unproven(const MtfPlanAnswer *answer) {
    return mtf_plan_answer_is_free(answer) && answer->free.bound == 0;
}

/* Seconds of a step: as the plan is settled, where both are. */
static double step_of(const MtfVariantAnswer *found, bool settled) {
    if (!settled)
        return found->answer.step_seconds;
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&found->answer.pricer, found->program);
    return (double)schedule->nanoseconds / 1e9;
}

/* Whether `other` is to be kept rather than `best`: it is proven, or faster, or needs less while nothing
 * fits. */
static bool is_better(const MtfVariantAnswer *other, const MtfVariantAnswer *best) {
    if (best->graph == NULL)
        return true;
    const MtfPlanAnswer *old = &best->answer, *new = &other->answer;
    if (old->found && new->found && is_unproven(new) != is_unproven(old))
        return is_unproven(old);
    bool settled = other->program != NULL && best->program != NULL;
    double step = step_of(best, settled), new_step = step_of(other, settled);
    if (step > 0 && new_step > 0 && (step < new_step || new_step < step))
        return new_step < step;
    if (mtf_variant_cost(other) != mtf_variant_cost(best))
        return mtf_variant_cost(other) < mtf_variant_cost(best);
    return mtf_variant_cost(best) == INT64_MAX && need_of(new) < need_of(old);
}

/* Whether the settled plan leaves more with the host than it holds, as where its layout has copies. */
static bool exceeds_host(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer) {
    if (mtf_variant_bytes_to_host(options, answer->graph, false) <= 0 || !answer->answer.found)
        return false;
    mtf_variant_answer_tune(options, answer);
    g_autoptr(MtfArena) arena = mtf_arena_pack(answer->program);
    return !mtf_variant_host_holds(options->machine, (double)arena->host_bytes);
}

static bool has_plan(const Trial *trial) {
    return trial->done && trial->found.answer.found;
}

/* Whether it would have been left if the one that it trails had been known in time. Large graphs wait for that. */
static bool is_left(const Trial *trial) {
    return trial->trails && !is_large(trial);
}

/* Keeps the better plan. That of a variant which was searched beside another is given up, or left, where that
 * would have been done if it had been searched later, so that nothing depends on which ended first.
 */
static bool judge_trial(Trial *trial, MtfVariantAnswer *best, GError **error) {
    int64_t known = MIN(mtf_variant_cost(best), mtf_variants_rival_cost(trial->options));
    const MtfPlanAnswer *found = &trial->found.answer;
    bool beaten =
        mtf_search_is_beaten(&trial->control, known) || (found->hopeless && !found->found);
    best->given_up |= beaten || (trial->loses && mtf_variant_cost(best) == INT64_MAX);
    bool left = is_left(trial);
    bool excused = beaten || left ||
                   (mtf_search_is_over(&trial->control) && mtf_variant_cost(best) < INT64_MAX);
    if (!trial->done && !excused) {
        g_propagate_error(error, g_steal_pointer(&trial->error));
        return false;
    }
    if (!trial->done || beaten || left || !is_better(&trial->found, best) ||
        (best->graph != NULL && exceeds_host(trial->options, &trial->found)))
        return true;
    mtf_variant_clear_found(best);
    *best = trial->found;
    trial->found = (MtfVariantAnswer){ 0 };
    return true;
}

/* Of the best plan that is known, before the software was asked whether it has memory for it, as starts are, too; 0: none
 * is. */
static double known_step(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    const MtfPlanAnswer *answer = &best->answer;
    double step = !answer->found ? 0
                  : answer->runs ? answer->fastest_seconds
                                 : answer->step_seconds;
    double rival = options->rival_seconds;
    return step > 0 && rival > 0 ? fmin(step, rival) : fmax(step, rival);
}

bool mtf_variants_try(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int first,
                      int count, int *after, GError **error) {
    Trial trials[MTF_VARIANTS_AT_ONCE];
    MtfVariantRace race;
    _Atomic int64_t known = MIN(mtf_variant_cost(best), mtf_variants_rival_cost(options));
    bool done = true;
    mtf_variant_race_init(&race, count);
    race.rival = known_step(options, best);
    for (int i = 0; i < count; i++) {
        trial_init(&trials[i], options, best, first + i);
        trials[i].race = &race;
        trials[i].runner = i;
        if (i > 0)
            trial_follow(&trials[i], &trials[i - 1]);
    }
    trials[0].control.rival = &known;
    mtf_in_parallel(count, search_trial, trials);
    for (int i = 0; i < count; i++)
        trials[i].loses = mtf_variant_race_loses(&race, i);
    for (int i = 0; i < count; i++)
        trials[i].trails = mtf_variant_race_is_lost(&race, i, has_plan(&trials[count - 1 - i]));
    mtf_variant_race_clear(&race);
    for (int i = 0; i < count; i++) {
        bool left = is_left(&trials[i]);
        done = done && judge_trial(&trials[i], best, error);
        *after += left || best->given_up || mtf_variant_cost(best) < INT64_MAX;
        trial_clear(&trials[i]);
    }
    return done;
}

/* ---- One more ------------------------------------------------------------------------------------- */

bool mtf_variants_try_another(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                              const MtfStepCandidate *candidate, const MtfGraph *like,
                              GError **error) {
    MtfVariantSearchOptions own = *options;
    int after = 0;
    if (like->operations->len > MTF_LARGE_OPERATIONS && options->uniform == MTF_UNIFORM_AUTO)
        own.uniform = MTF_UNIFORM_ALWAYS;
    g_array_append_val(best->variants, *candidate);
    return mtf_variants_try(&own, best, (int)best->variants->len - 1, 1, &after, error);
}

bool mtf_variant_search_frontier(const MtfVariantSearchOptions *options, MtfVariantAnswer *found,
                                 GError **error) {
    Trial trial;
    mtf_variant_clear_found(found);
    trial_init(&trial, options, found, found->variant);
    bool done = search_variant(&trial, options->frontier, error);
    *found = trial.found;
    trial.found = (MtfVariantAnswer){ 0 };
    trial_clear(&trial);
    return done;
}
