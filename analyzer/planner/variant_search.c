// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/variant_search.h"

#include "analyzer/planner/memory_bound.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/training/batch_dimension.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "cost/tune/algorithm_choice.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph/microbatches.h"

#include <math.h>

/* Of --seconds, for comparing variants of the step. */
#define VARIANT_SHARE 0.3

/* What is done with a layout when the search is over takes so many seconds an operation, at most such a
 * share of --seconds. */
#define ENDING_SECONDS 1e-4
#define ENDING_SHARE 0.3
#define OPERATIONS_A_STEP 10 /* for each of the forward graph */

/* The share by which a bound may exceed another variant's cost before this variant is given up: what
 * another mesh or mapping might save. */
#define PRUNING_SLACK 1.1

/* Variants that are searched after one that fits, at least; and at most for large graphs. */
#define MORE_VARIANTS 1

/* Of very large graphs each search takes long: where a variant that fits is known, others
 * are given up whose best rules cost so many times its, memory apart. */
#define OUTCLASSED 1.05

/* Searches of no more operations are over soon, and their answer says more than that the rival wins. */
#define QUICK_OPERATIONS 1000

/* The most of a step that other variants save: where it recomputes, a third of the arithmetic, and more beside it;
 * and where it does not, by fewer micro-batches. */
#define RECOMPUTATION_SAVED 0.5
#define MEMORY_SAVED 0.15

/* The search of one variant, which may run beside that of the variant before it. */
typedef struct Trial {
    const MtfVariantSearchOptions *options;
    MtfSearchControl control;
    MtfVariantAnswer found;
    MtfVariantRace *race; /* with the variants that are searched beside it; or NULL */
    int runner;           /* its number there */
    int64_t known;        /* what the variant beside it starts from; INT64_MAX: nothing */
    bool done;
    GError *error;
} Trial;

static double seconds_since(gint64 begin) {
    return (double)(g_get_monotonic_time() - begin) / 1e6;
}

/* By the user: time is a matter of each part. */
static bool is_stopped(const MtfVariantSearchOptions *options) {
    return mtf_search_is_stopped(options->control);
}

/* Nanoseconds of what was found; INT64_MAX when nothing fits. */
static int64_t cost_of(const MtfVariantAnswer *found) {
    return found->answer.found ? found->answer.cost : INT64_MAX;
}

/* Of the seconds for a search, those that the ending takes. */
static double ending_seconds(const MtfVariantSearchOptions *options, double seconds) {
    return fmin(ENDING_SHARE * seconds,
                ENDING_SECONDS * OPERATIONS_A_STEP * options->written->operations->len);
}

/* Whether no more time is left than the ending takes. */
static bool is_late(const MtfVariantSearchOptions *options) {
    return mtf_search_has_deadline(options->control) &&
           mtf_search_seconds_left(options->control) <=
               ending_seconds(options, options->control->seconds);
}

/* Whether nothing more is tried: something fits, and there is no time. */
static bool is_enough(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    return is_stopped(options) || (cost_of(best) < INT64_MAX && is_late(options));
}

/* No layout that costs more has a shorter step than the rival; INT64_MAX: there is none. */
static int64_t rival_cost(const MtfVariantSearchOptions *options) {
    double seconds = options->rival_seconds - mtf_machine_step_seconds(options->machine);
    double cost = 1e9 * seconds * mtf_schedule_most_hidden(options->machine);
    return options->rival_seconds > 0 && cost < (double)(INT64_MAX / 2) ? (int64_t)fmax(cost, 0)
                                                                        : INT64_MAX;
}

/* ---- One variant --------------------------------------------------------------------------------- */

static MtfPlanSearchOptions plan_options(Trial *trial, int frontier) {
    const MtfVariantSearchOptions *options = trial->options;
    return (MtfPlanSearchOptions){
        .machine = options->machine,
        .memory_limit = options->memory_limit,
        .pins = options->pins,
        .forbids = options->forbids,
        .rules_only = options->rules_only,
        .no_rules = options->no_rules,
        .uniform = options->uniform,
        .frontier = frontier,
        .has_gap = !isnan(options->gap),
        .gap = options->gap,
        .seed = options->seed,
        .keep_problem = options->keep_problem,
        .control = &trial->control,
        .race = trial->race,
        .runner = trial->runner,
        .rival_seconds = options->rival_seconds,
        .by_bound = trial->found.graph->operations->len > QUICK_OPERATIONS,
        .settles = true,
        .collectives = options->collectives,
    };
}

/* Bytes that go to the host, spread evenly over the devices: those of one micro-batch, which are there
 * at once, or of a whole step. */
static double bytes_to_host(const MtfVariantSearchOptions *options, const MtfGraph *graph,
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

static bool holds(const MtfMachine *machine, double bytes_on_host) {
    return machine->host_memory_bytes == 0 || bytes_on_host <= (double)machine->host_memory_bytes;
}

/* Fails where what waits with the host cannot fit there under any layout. */
static bool check_host(const MtfVariantSearchOptions *options, const MtfGraph *graph,
                       GError **error) {
    double bytes = bytes_to_host(options, graph, false);
    if (holds(options->machine, bytes))
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

/* Searches the graph of the trial's variant, with a frontier of so many points. */
static bool search_variant(Trial *trial, int frontier, GError **error) {
    MtfVariantAnswer *found = &trial->found;
    MtfStepCandidate *candidate = &g_array_index(found->variants, MtfStepCandidate, found->variant);
    found->graph =
        candidate->graph != NULL
            ? g_steal_pointer(&candidate->graph)
            : mtf_planning_executed_graph(trial->options->written, &candidate->variant, error);
    if (found->graph == NULL || !check_host(trial->options, found->graph, error))
        return false;
    MtfPlanSearchOptions options = plan_options(trial, frontier);
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
    MtfSearchControl part; /* the other half of the ending is for what the plan says */
    mtf_search_control_init_part(
        &part, options->control,
        isfinite(left) ? fmax(1e-3, left - ending_seconds(options, left) / 2) : 0);
    mtf_program_free(answer->program); /* of a layout that was dropped */
    answer->layout = mtf_plan_answer_layout(&answer->answer, answer->graph);
    answer->program = mtf_layout_settle(answer->graph, answer->layout, &answer->answer.pricer,
                                        options->memory_limit, options->collectives, &part);
}

/* ---- Variants that are searched at once ---------------------------------------------------------- */

static void clear_found(MtfVariantAnswer *found) {
    g_clear_pointer(&found->graph, mtf_graph_free);
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
                                 isfinite(left) ? left - ending_seconds(options, left) : 0);
    trial->control.slack = PRUNING_SLACK;
    if (cost_of(best) < INT64_MAX)
        trial->control.slack += (double)candidate_of(trial)->hidden / (double)cost_of(best);
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
        before->known = rival_cost(trial->options);
    mtf_search_tell_found(&before->control, before->known);
}

static void trial_clear(Trial *trial) {
    clear_found(&trial->found);
    g_clear_error(&trial->error);
}

static void search_trial(int i, void *data) {
    Trial *trial = (Trial *)data + i;
    trial->done = search_variant(trial, 0, &trial->error);
    trial->control.cost = MIN(cost_of(&trial->found), trial->known);
    mtf_variant_race_posed(trial->race, trial->runner);
    mtf_variant_race_enter(trial->race, trial->runner, INFINITY);
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

/* Whether `other` is to be kept rather than `best`: it is proven, or faster, or needs less while nothing
 * fits. */
static bool is_better(const MtfVariantAnswer *other, const MtfVariantAnswer *best) {
    if (best->graph == NULL)
        return true;
    const MtfPlanAnswer *old = &best->answer, *new = &other->answer;
    if (old->found && new->found && is_unproven(new) != is_unproven(old))
        return is_unproven(old);
    double step = old->step_seconds, new_step = new->step_seconds;
    if (step > 0 && new_step > 0 && (step < new_step || new_step < step))
        return new_step < step;
    if (cost_of(other) != cost_of(best))
        return cost_of(other) < cost_of(best);
    return cost_of(best) == INT64_MAX && need_of(new) < need_of(old);
}

/* Whether the settled plan leaves more with the host than it holds, as where its layout has copies. */
static bool exceeds_host(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer) {
    if (bytes_to_host(options, answer->graph, false) <= 0 || !answer->answer.found)
        return false;
    mtf_variant_answer_tune(options, answer);
    g_autoptr(MtfArena) arena = mtf_arena_pack(answer->program);
    return !holds(options->machine, (double)arena->host_bytes);
}

/* Keeps the better plan. That of a variant which was searched beside another is given up where that
 * would have been done if it had been searched later, so that nothing depends on which ended first.
 */
static bool judge_trial(Trial *trial, MtfVariantAnswer *best, GError **error) {
    int64_t known = MIN(cost_of(best), rival_cost(trial->options));
    const MtfPlanAnswer *found = &trial->found.answer;
    bool beaten =
        mtf_search_is_beaten(&trial->control, known) || (found->hopeless && !found->found);
    best->given_up |= beaten;
    bool excused = beaten || (mtf_search_is_over(&trial->control) && cost_of(best) < INT64_MAX);
    if (!trial->done && !excused) {
        g_propagate_error(error, g_steal_pointer(&trial->error));
        return false;
    }
    if (!trial->done || beaten || !is_better(&trial->found, best) ||
        (best->graph != NULL && exceeds_host(trial->options, &trial->found)))
        return true;
    clear_found(best);
    *best = trial->found;
    trial->found = (MtfVariantAnswer){ 0 };
    return true;
}

/* Searches `count` variants from `first` on, at once, and keeps the best plan. Adds to `after` those that
 * were searched when a plan that fits was known. */
static bool try_variants(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int first,
                         int count, int *after, GError **error) {
    Trial trials[MTF_VARIANTS_AT_ONCE];
    MtfVariantRace race;
    _Atomic int64_t known = MIN(cost_of(best), rival_cost(options));
    bool done = true;
    mtf_variant_race_init(&race, count);
    for (int i = 0; i < count; i++) {
        trial_init(&trials[i], options, best, first + i);
        trials[i].race = &race;
        trials[i].runner = i;
        if (i > 0)
            trial_follow(&trials[i], &trials[i - 1]);
    }
    trials[0].control.rival = &known;
    mtf_in_parallel(count, search_trial, trials);
    mtf_variant_race_clear(&race);
    for (int i = 0; i < count; i++) {
        done = done && judge_trial(&trials[i], best, error);
        *after += best->given_up || cost_of(best) < INT64_MAX;
        trial_clear(&trials[i]);
    }
    return done;
}

/* ---- All variants -------------------------------------------------------------------------------- */

/* Whether a variant is worth a search after `after` variants that did not fit worse: the next one always,
 * and others whose rules would be cheaper than what was found if memory were no matter; where those that promise
 * most were given up, no others. */
static bool is_promising(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                         int variant, int after) {
    const MtfStepCandidate *candidate = &g_array_index(best->variants, MtfStepCandidate, variant);
    bool large = best->graph != NULL && best->graph->operations->len > MTF_LARGE_OPERATIONS;
    bool lost = best->given_up && cost_of(best) == INT64_MAX;
    return after <= MORE_VARIANTS || (!large && !lost && candidate->cost > 0 &&
                                      candidate->cost < MIN(cost_of(best), rival_cost(options)));
}

/* The variant from `first` on that needs least memory. */
static int smallest_variant(const MtfVariantAnswer *best, int first) {
    int smallest = first;
    for (int i = first + 1; i < (int)best->variants->len; i++)
        if (g_array_index(best->variants, MtfStepCandidate, i).least_bytes <
            g_array_index(best->variants, MtfStepCandidate, smallest).least_bytes)
            smallest = i;
    return smallest;
}

/* From the most promising variant on, until one fits and those that may be better have been tried. Where time is
 * up before, the one that is likeliest to fit is the last. */
static bool search_variants(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                            GError **error) {
    int n = (int)best->variants->len, i = 0, after = 0;
    while (i < n && !is_enough(options, best) && is_promising(options, best, i, after)) {
        bool last = i > 0 && is_late(options);
        int first = last ? smallest_variant(best, i) : i;
        int most = CLAMP(MORE_VARIANTS + 1 - after, 1, MIN(n - i, MTF_VARIANTS_AT_ONCE));
        if (!try_variants(options, best, first, last ? 1 : most, &after, error))
            return false;
        i = last ? n : i + most;
    }
    return true;
}

/* ---- How many layers ----------------------------------------------------------------------------- */

/* Numbers of layers that are tried beside all of them; of large graphs, whose searches take long. */
#define MOST_COUNTS 4
#define MOST_COUNTS_LARGE 1

/* Of --seconds, after which no further number is tried. */
#define COUNTS_SHARE 0.6

/* The least number of layers to recompute that may do: what a step needs at least falls evenly
 * with each, and a layout needs as much more as that of all layers did. */
static int guess_layers(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                        int layers) {
    MtfStepVariant kept = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    kept.recompute = MTF_RECOMPUTE_NONE;
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(options->written, &kept, NULL);
    if (graph == NULL)
        return layers;
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    double most = (double)mtf_memory_bound(graph, devices);
    double least = (double)mtf_memory_bound(best->graph, devices);
    double over = (double)(best->answer.free.layout != NULL ? best->answer.free.arena_bytes
                                                            : best->answer.rules.arena_bytes) -
                  least;
    double share = (most + over - (double)options->memory_limit) / fmax(1, most - least);
    return (int)CLAMP(ceil(share * layers), 1, layers);
}

/* Searches one variant more, which takes over its graph if it has one. Where `like`, that graph or one of
 * its size, is large, layers are alike, in the time of one. */
static bool try_another(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                        const MtfStepCandidate *candidate, const MtfGraph *like, GError **error) {
    MtfVariantSearchOptions own = *options;
    int after = 0;
    if (like->operations->len > MTF_LARGE_OPERATIONS && options->uniform == MTF_UNIFORM_AUTO)
        own.uniform = MTF_UNIFORM_ALWAYS;
    g_array_append_val(best->variants, *candidate);
    return try_variants(&own, best, (int)best->variants->len - 1, 1, &after, error);
}

/* Searches the variant that computes the first layers again; `*better` says whether it is kept. */
static bool try_layers(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int layers,
                       bool *better, GError **error) {
    MtfStepCandidate candidate = {
        .variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant
    };
    int variant = (int)best->variants->len;
    candidate.variant.recomputed_layers = layers;
    bool done = try_another(options, best, &candidate, best->graph, error);
    *better = best->variant == variant;
    return done;
}

static bool may_count_layers(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    return options->recompute == MTF_RECOMPUTES && cost_of(best) < INT64_MAX &&
           variant->recompute == MTF_RECOMPUTE_LAYERS && variant->recomputed_layers == 0;
}

/* Where the best variant computes all layers again, looks for the fewest that do: halves what lies between
 * numbers that did and those that did not, from a guess on. */
static bool count_layers(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    if (!may_count_layers(options, best))
        return true;
    int layers = mtf_graph_recomputable_layers(best->graph), low = 0, high = layers;
    int most =
        best->graph->operations->len > MTF_LARGE_OPERATIONS ? MOST_COUNTS_LARGE : MOST_COUNTS;
    int next = guess_layers(options, best, layers);
    for (int i = 0; i < most && low + 1 < high && !is_stopped(options); i++) {
        bool better;
        if (mtf_search_share_used(options->control) > COUNTS_SHARE)
            return true;
        next = CLAMP(next, low + 1, high - 1);
        if (!try_layers(options, best, next, &better, error))
            return false;
        *(better ? &high : &low) = next;
        next = i == 0 ? next + (better ? -1 : 1) : (low + high) / 2;
    }
    return true;
}

/* ---- Offload ------------------------------------------------------------------------------------- */

/* Nanoseconds that the copies of a step take in one direction. */
static int64_t copy_nanoseconds(const MtfVariantSearchOptions *options, const MtfGraph *graph) {
    return llround(1e9 * bytes_to_host(options, graph, true) / options->machine->host_bandwidth);
}

/* Whether copies of such a length could shorten the best step, or the rival's: those back begin, all but the last,
 * when those there are over. */
static bool could_shorten(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                          int64_t copies) {
    double least = 2e-9 * (double)copies, rival = options->rival_seconds;
    bool shorter = cost_of(best) == INT64_MAX || least < best->answer.step_seconds;
    return shorter && (rival <= 0 || least < rival);
}

/* Searches a variant that leaves something with the host, where it can be made, may fit and may be better. */
static bool try_offload(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                        MtfStepVariant variant, GError **error) {
    MtfStepCandidate candidate = { .variant = variant };
    candidate.graph = mtf_planning_executed_graph(options->written, &variant, NULL);
    if (candidate.graph == NULL || is_stopped(options))
        return true;
    int64_t copies = copy_nanoseconds(options, candidate.graph);
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    candidate.least_bytes = mtf_memory_bound(candidate.graph, devices);
    candidate.hidden = 2 * copies;
    if (candidate.least_bytes > options->memory_limit || !could_shorten(options, best, copies) ||
        !holds(options->machine, bytes_to_host(options, candidate.graph, false))) {
        mtf_graph_free(candidate.graph);
        return true;
    }
    return try_another(options, best, &candidate, candidate.graph, error);
}

/* Whether memory asked for a variant that takes longer than the plain one, or nothing fits. */
static bool is_pressed(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    return options->offload == MTF_OFFLOADS && options->machine->host_bandwidth > 0 &&
           best->graph != NULL && mtf_graph_recomputable_layers(best->graph) > 0 &&
           (cost_of(best) == INT64_MAX || variant->recompute != MTF_RECOMPUTE_NONE ||
            variant->microbatches > MAX(1, options->microbatches));
}

/* What was recomputed waits with the host instead; or what layers hand on does, beside recomputation. */
static bool search_offload(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                           GError **error) {
    if (!is_pressed(options, best))
        return true;
    MtfStepVariant variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    bool any = options->recompute == MTF_RECOMPUTES;
    bool fits = cost_of(best) < INT64_MAX;
    if (any)
        variant.recompute = MTF_RECOMPUTE_NONE;
    variant.recomputed_layers = any ? 0 : variant.recomputed_layers;
    variant.offload = MTF_OFFLOAD_ACTIVATIONS;
    if (!try_offload(options, best, variant, error))
        return false;
    if (any)
        variant.recompute = MTF_RECOMPUTE_LAYERS;
    variant.offload = MTF_OFFLOAD_LAYERS;
    return fits || try_offload(options, best, variant, error);
}

/* ---- Parts of memory ------------------------------------------------------------------------------ */

/* Positions of memory for each query, from which on parts may pay: they exchange o forward and dq
 * backward, of the size of q, where k, v, dk and dv would travel. */
#define MEMORY_OVER_QUERIES 2

static bool has_long_memory(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (mtf_operation_row(op->kind)->in_parts &&
            mtf_graph_size(graph, op->attributes.memory) >=
                MEMORY_OVER_QUERIES * mtf_graph_size(graph, op->attributes.query))
            return true;
    }
    return false;
}

/* Searches the best variant with memory in so many parts, where they divide some. */
static bool try_parts(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                      MtfStepVariant variant, int parts, GError **error) {
    MtfStepCandidate candidate = { .variant = variant };
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    candidate.variant.key_parts = parts;
    candidate.graph = mtf_planning_executed_graph(options->written, &candidate.variant, NULL);
    if (candidate.graph == NULL)
        return true;
    candidate.least_bytes = mtf_memory_bound(candidate.graph, devices);
    return try_another(options, best, &candidate, candidate.graph, error);
}

/* As many parts as each axis of the best plan's mesh has processors. */
static bool search_parts(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    if (options->key_parts != 0 || best->graph == NULL || !has_long_memory(best->graph))
        return true;
    MtfStepVariant variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    MtfMapping mesh = best->answer.pricer.map.mapping;
    for (int a = 0; a < mesh.mesh_axes && !is_stopped(options); a++) {
        bool tried = mesh.mesh_sizes[a] == 1;
        for (int before = 0; before < a; before++)
            tried |= mesh.mesh_sizes[before] == mesh.mesh_sizes[a];
        if (!tried && !try_parts(options, best, variant, (int)mesh.mesh_sizes[a], error))
            return false;
    }
    return true;
}

/* ---- Rings ---------------------------------------------------------------------------------------- */

/* Of memory, what keys and values of one attention take at least on every device where nobody splits their
 * positions, from which on a ring may be what makes a plan fit. */
#define KEYS_SHARE 0.01

static bool has_large_keys(const MtfVariantSearchOptions *options, const MtfGraph *graph,
                           const MtfOperation *op) {
    const MtfAttributes *a = &op->attributes;
    const MtfTensor *keys = mtf_graph_tensor(graph, op->inputs[1]);
    int64_t others = mtf_graph_elements(graph, &keys->shape) /
                     (mtf_graph_size(graph, a->memory) * mtf_graph_size(graph, a->dimension));
    int64_t devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    double bytes = 2 * (double)mtf_graph_tensor_bytes(graph, op->inputs[1]);
    return bytes / (double)MIN(devices, others) > KEYS_SHARE * (double)options->memory_limit;
}

/* Whether a ring of so many parts may do better: some of the axes (bits) split queries of attention, whose keys
 * and values are gathered; or nothing fits, and these are large. */
static bool may_ring(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                     const MtfLayout *layout, unsigned axes, int parts) {
    for (int i = 0; i < (int)best->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(best->graph, i);
        if (!mtf_operation_row(op->kind)->in_parts || !mtf_operation_rings(best->graph, op, parts))
            continue;
        if (layout == NULL ? has_large_keys(options, best->graph, op)
                           : (mtf_placement_split_axes(&layout->tensors[op->outputs[0]],
                                                       op->attributes.query) &
                              axes) != 0)
            return true;
    }
    return false;
}

/* Searches the best variant with rings of so many parts. */
static bool try_ring(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int parts,
                     GError **error) {
    MtfStepCandidate candidate = {
        .variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant
    };
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    candidate.variant.ring = parts;
    candidate.graph = mtf_planning_executed_graph(options->written, &candidate.variant, NULL);
    if (candidate.graph == NULL)
        return true;
    candidate.least_bytes = mtf_memory_bound(candidate.graph, devices);
    return try_another(options, best, &candidate, candidate.graph, error);
}

/* Notes a number of parts that is not noted yet. */
static void add_ring(GArray *rings, int parts) {
    for (guint i = 0; i < rings->len; i++)
        if (g_array_index(rings, int, i) == parts)
            return;
    if (parts > 1 && parts <= MTF_MAX_RING)
        g_array_append_val(rings, parts);
}

/* How many parts rings may have (int): as many as an axis that splits queries, or all such axes; where nothing
 * fits, as many as there are devices. */
static GArray *list_rings(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    bool fits = cost_of(best) < INT64_MAX;
    g_autoptr(MtfLayout) layout = fits ? mtf_plan_answer_layout(&best->answer, best->graph) : NULL;
    const MtfMesh *mesh = fits ? &layout->mesh : &g_array_index(options->meshes, MtfMesh, 0);
    GArray *rings = g_array_new(FALSE, FALSE, sizeof(int));
    unsigned axes = 0;
    int all = 1;
    for (int a = 0; a < mesh->n_axes; a++) {
        int size = (int)mesh->axes[a].size;
        if (fits && !may_ring(options, best, layout, 1U << a, size))
            continue;
        axes |= 1U << a;
        all = MIN(all * size, MTF_MAX_RING + 1);
        if (fits)
            add_ring(rings, size);
    }
    if (may_ring(options, best, layout, axes, all))
        add_ring(rings, all);
    return rings;
}

static bool search_rings(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    if (options->ring != 0 || best->graph == NULL || is_stopped(options))
        return true;
    g_autoptr(GArray) rings = list_rings(options, best);
    for (guint i = 0; i < rings->len && !is_stopped(options); i++)
        if (!try_ring(options, best, g_array_index(rings, int, i), error))
            return false;
    return true;
}

/* ---- The frontier -------------------------------------------------------------------------------- */

/* Variants beside the chosen one whose frontiers are searched: each kind of recomputation in one piece,
 * all layers recomputed in more and more micro-batches, and what waits with the host in one piece. */
#define FRONTIER_COUNTS 3

typedef struct {
    MtfRecompute recompute;
    MtfOffload offload;
    bool counted; /* in several numbers of micro-batches */
} FrontierKind;

static const FrontierKind frontier_kinds[] = {
    { MTF_RECOMPUTE_NONE, MTF_OFFLOAD_NONE, false },
    { MTF_RECOMPUTE_CHEAP, MTF_OFFLOAD_NONE, false },
    { MTF_RECOMPUTE_LAYERS, MTF_OFFLOAD_NONE, true },
    { MTF_RECOMPUTE_NONE, MTF_OFFLOAD_ACTIVATIONS, false },
    { MTF_RECOMPUTE_LAYERS, MTF_OFFLOAD_LAYERS, false },
};

/* Gives the search of a trial as many seconds as the whole had. */
static void begin_again(Trial *trial) {
    const MtfSearchControl *given = trial->options->control;
    MtfSearchControl *control = &trial->control;
    if (given == NULL)
        return;
    mtf_search_control_init(control, given->seconds);
    control->interrupted = given->interrupted;
    control->listener = given->listener;
}

/* Searches a variant again, now with its frontier. */
static bool search_frontier(const MtfVariantSearchOptions *options, MtfVariantAnswer *found,
                            GError **error) {
    Trial trial;
    clear_found(found);
    trial_init(&trial, options, found, found->variant);
    begin_again(&trial);
    bool done = search_variant(&trial, options->frontier, error);
    *found = trial.found;
    trial.found = (MtfVariantAnswer){ 0 };
    trial_clear(&trial);
    return done;
}

/* Adds what another variant's frontier has; one that cannot be made has nothing. Its layers are alike, unless
 * they must not be: then it is found in the time of one. */
static void add_variant(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                        const MtfStepVariant *variant, GArray *points) {
    MtfVariantSearchOptions own = *options;
    MtfStepCandidate candidate = { .variant = *variant };
    g_array_append_val(best->variants, candidate);
    MtfVariantAnswer found = { .variants = best->variants,
                               .variant = (int)best->variants->len - 1 };
    if (options->uniform == MTF_UNIFORM_AUTO)
        own.uniform = MTF_UNIFORM_ALWAYS;
    if (search_frontier(&own, &found, NULL) && found.answer.frontier != NULL)
        mtf_variant_points_add(points, found.answer.frontier, found.variant);
    clear_found(&found);
}

static bool may_vary(const MtfVariantSearchOptions *options, const MtfStepVariant *chosen,
                     const MtfStepVariant *variant) {
    bool microbatches =
        options->microbatches == 0 || options->microbatches == variant->microbatches;
    bool recompute =
        options->recompute == MTF_RECOMPUTES || options->recompute == (int)variant->recompute;
    bool offload = variant->offload == MTF_OFFLOAD_NONE || options->machine->host_bandwidth > 0;
    bool same = MAX(1, chosen->microbatches) == variant->microbatches &&
                chosen->recompute == variant->recompute && chosen->recomputed_layers == 0 &&
                chosen->offload == variant->offload;
    return microbatches && recompute && offload && !same;
}

/* The numbers of micro-batches (int): one, the most, and one between. */
static GArray *frontier_counts(const MtfVariantSearchOptions *options) {
    int batch = mtf_batch_dimension(options->written, options->batch_dim, NULL);
    int64_t size =
        batch >= 0 ? MIN(mtf_graph_size(options->written, batch), MTF_MAX_MICROBATCHES) : 1;
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    for (int m = 1; m <= (int)size && counts->len < FRONTIER_COUNTS; m++) {
        bool next = m == 1 || (double)m * m >= (double)size;
        bool last = counts->len == FRONTIER_COUNTS - 1 && m < (int)size;
        if (size % m == 0 && next && !last)
            g_array_append_val(counts, m);
    }
    return counts;
}

/* Adds the variants of a kind that may be searched; where the user says what waits with the host, so it
 * does in all of them. */
static void add_kind(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                     const MtfStepVariant *chosen, const FrontierKind *kind, const GArray *counts,
                     GArray *points) {
    bool any = options->offload == MTF_OFFLOADS;
    if (!any && kind->offload != MTF_OFFLOAD_NONE)
        return;
    for (guint i = 0; i < (kind->counted ? counts->len : 1); i++) {
        MtfStepVariant variant = *chosen;
        variant.recompute = kind->recompute;
        variant.recomputed_layers = 0;
        variant.offload = any ? kind->offload : chosen->offload;
        variant.microbatches = g_array_index(counts, int, i);
        if (may_vary(options, chosen, &variant) && !is_stopped(options))
            add_variant(options, best, &variant, points);
    }
}

/* The frontier of the chosen variant, and joined with those of others. */
static bool add_frontier(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    MtfStepVariant chosen = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    int considered = best->considered;
    if (!search_frontier(options, best, error))
        return false;
    if (best->answer.frontier == NULL)
        return true;
    best->considered = considered;
    g_autoptr(GArray) counts = frontier_counts(options);
    g_autoptr(GArray) points = mtf_variant_points_new();
    mtf_variant_points_add(points, best->answer.frontier, best->variant);
    for (size_t k = 0; k < G_N_ELEMENTS(frontier_kinds); k++)
        add_kind(options, best, &chosen, &frontier_kinds[k], counts, points);
    best->frontier = mtf_variant_frontier(points, options->frontier, options->memory_limit);
    return true;
}

static GArray *find_variants(const MtfVariantSearchOptions *options, GError **error) {
    MtfSearchControl part;
    mtf_search_control_init_share(&part, options->control, VARIANT_SHARE);
    MtfStepVariantsOptions variants = { .written = options->written,
                                        .machine = options->machine,
                                        .meshes = options->meshes,
                                        .memory_limit = options->memory_limit,
                                        .microbatches = options->microbatches,
                                        .recompute = options->recompute,
                                        .recomputed_layers = options->recomputed_layers,
                                        .offload = options->offload == MTF_OFFLOADS
                                                       ? MTF_OFFLOAD_NONE
                                                       : (MtfOffload)options->offload,
                                        .offloaded_layers = options->offloaded_layers,
                                        .key_parts = options->key_parts,
                                        .ring = options->ring,
                                        .batch_dim = options->batch_dim,
                                        .precision = options->precision,
                                        .pins = options->pins,
                                        .forbids = options->forbids,
                                        .rules_only = options->rules_only,
                                        .control = &part };
    mtf_search_tell_phase(options->control, "comparing step variants");
    return mtf_step_variants(&variants, error);
}

/* Whether other variants may save enough of the best one's step: recomputation, or what memory cost otherwise. */
static bool may_beat_rival(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    if (options->rival_seconds <= 0 || !best->answer.found)
        return !best->answer.hopeless;
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    double saved = variant->recompute == MTF_RECOMPUTE_NONE ? MEMORY_SAVED : RECOMPUTATION_SAVED;
    return (1 - saved) * best->answer.step_seconds < options->rival_seconds;
}

/* Variants that may save more of the best one's step, unless that is hopeless. */
static bool search_further(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                           GError **error) {
    bool further = may_beat_rival(options, best);
    best->given_up |= !further;
    return !further || is_enough(options, best) ||
           (count_layers(options, best, error) && search_offload(options, best, error) &&
            search_parts(options, best, error) && search_rings(options, best, error));
}

bool mtf_variant_search(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer,
                        GError **error) {
    *answer = (MtfVariantAnswer){ .variants = find_variants(options, error) };
    if (answer->variants == NULL)
        return false;
    gint64 start = g_get_monotonic_time();
    bool done = search_variants(options, answer, error) && search_further(options, answer, error);
    answer->considered = (int)answer->variants->len;
    done = done && (options->frontier == 0 || cost_of(answer) == INT64_MAX ||
                    add_frontier(options, answer, error));
    answer->wall_seconds = seconds_since(start);
    return done;
}

void mtf_variant_answer_clear(MtfVariantAnswer *answer) {
    clear_found(answer);
    g_clear_pointer(&answer->frontier, g_array_unref);
    g_clear_pointer(&answer->variants, g_array_unref);
}
