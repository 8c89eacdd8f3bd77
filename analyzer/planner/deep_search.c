// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/deep_search.h"

#include "analyzer/free/operation_profile.h"
#include "analyzer/planner/memory_bound.h"
#include "analyzer/planner/next_best.h"
#include "analyzer/rewriting/deep_layout.h"
#include "analyzer/rewriting/shallow_graph.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"

#include <math.h>

/* Layers that variants and meshes are compared on: so many that what is not repeated, as a vocabulary, takes
 * a small part of the step as it does of all; and where there is no time for a search of all. */
#define FEW_LAYERS 24
#define FEWEST_LAYERS 8

/* What is compared need not be proven any better. */
#define COMPARING_GAP 0.001

/* Operations of a training step for each of the forward graph, at most; and of --seconds, for the
 * comparison: what all layers leave, between these. */
#define STEP_OPERATIONS 10
#define COMPARING_SHARE 0.3
#define LEAST_COMPARING 0.1

/* The variant of the step without anything that was not asked for. */
static MtfStepVariant plain_variant(const MtfVariantSearchOptions *options) {
    bool any = options->recompute == MTF_RECOMPUTES;
    return (MtfStepVariant){ .microbatches = MAX(1, options->microbatches),
                             .batch_dim = options->batch_dim,
                             .precision = options->precision,
                             .recompute =
                                 any ? MTF_RECOMPUTE_NONE : (MtfRecompute)options->recompute,
                             .fuses = options->machine->software != NULL,
                             .framework = mtf_software_framework(options->machine->software) };
}

/* What a search of all layers takes, and a plan of them that has the layout of the few, each with all that is made,
 * lowered, packed and written: in times that making their plain step takes. Measured on Transformers of 250 to
 * 4,000 layers. */
#define SEARCH_STEPS 18
#define LEAST_STEPS 5

/* The operations of a plain step of a graph, the bytes that it needs at least, 0 where there is none; and what it took
 * to make it, or would take. */
typedef struct {
    double operations, bytes, seconds;
} PlainStep;

/* The few layers that stand for all. */
typedef struct {
    MtfGraph *graph; /* NULL: all are compared on the whole graph */
    int layers;
    int64_t limit;  /* of memory */
    double seconds; /* for the plain step of all, as far as can be told by the few */
} Few;

static PlainStep plain_step(const MtfVariantSearchOptions *options, const MtfGraph *written) {
    MtfStepVariant plain = plain_variant(options);
    gint64 begun = g_get_monotonic_time();
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(written, &plain, NULL);
    double seconds = (double)(g_get_monotonic_time() - begun) / 1e6;
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    return graph != NULL ? (PlainStep){ graph->operations->len,
                                        (double)mtf_memory_bound(graph, devices), seconds }
                         : (PlainStep){ 0 };
}

/* That of all layers, from what the last of `layers` adds: to make their graph takes as long as a search of
 * the few. */
static PlainStep step_of_all(const MtfVariantSearchOptions *options, const MtfGraph *few,
                             int layers, PlainStep step) {
    g_autoptr(MtfGraph) fewer = mtf_graph_shallow(options->written, layers - 1);
    PlainStep less = plain_step(options, fewer);
    double added = (double)few->operations->len - (double)fewer->operations->len;
    double times =
        ((double)options->written->operations->len - (double)few->operations->len) / added;
    double operations = step.operations + times * (step.operations - less.operations);
    return (PlainStep){ operations, step.bytes + times * (step.bytes - less.bytes),
                        operations * step.seconds / step.operations };
}

/* Whether there is no time for a search of all layers. */
static bool is_short(const MtfVariantSearchOptions *options, const Few *few) {
    return mtf_search_seconds_left(options->control) < SEARCH_STEPS * few->seconds;
}

/* Takes `layers` for all; leaves `few` as it is where they do not stand for these. */
static void take_layers(const MtfVariantSearchOptions *options, int layers, guint large, Few *few) {
    g_autoptr(MtfGraph) graph = mtf_graph_shallow(options->written, layers);
    PlainStep step = graph != NULL ? plain_step(options, graph) : (PlainStep){ 0 };
    if (step.bytes <= 0)
        return;
    PlainStep all = step_of_all(options, graph, layers, step);
    if (all.operations <= (double)large)
        return;
    mtf_graph_free(few->graph);
    *few = (Few){ .graph = g_steal_pointer(&graph),
                  .layers = layers,
                  .limit = (int64_t)((double)options->memory_limit * step.bytes / all.bytes),
                  .seconds = all.seconds };
}

/* What stands for the options' graph in the comparison: fewer where time is short, as the few have shown. */
static Few few_layers(const MtfVariantSearchOptions *options, guint large) {
    Few few = { 0 };
    bool chooses = options->meshes->len > 1 || options->microbatches == 0 ||
                   options->recompute == MTF_RECOMPUTES;
    bool may_be_large = options->written->operations->len * STEP_OPERATIONS > large;
    bool counts_layers = options->recomputed_layers > 0 || options->offloaded_layers > 0;
    if (!(chooses || mtf_search_has_deadline(options->control)) || !may_be_large || counts_layers ||
        options->rules_only || options->frontier > 0)
        return few;
    take_layers(options, FEW_LAYERS, large, &few);
    if (few.graph != NULL && is_short(options, &few))
        take_layers(options, FEWEST_LAYERS, large, &few);
    else if (!chooses)
        g_clear_pointer(&few.graph, mtf_graph_free);
    return few;
}

/* Of `some` layers of the few as large a share of all. */
static int in_proportion(const MtfVariantSearchOptions *options, const MtfGraph *few, int some) {
    double share = (double)options->written->operations->len / few->operations->len;
    return (int)ceil(some * share);
}

/* The options with the variant and the mesh of what was found of the few; `mesh` holds that. */
static MtfVariantSearchOptions narrowed(const MtfVariantSearchOptions *options, const MtfGraph *few,
                                        const MtfVariantAnswer *found, GArray *mesh) {
    MtfVariantSearchOptions one = mtf_variant_search_narrowed(options, found, mesh);
    one.recomputed_layers = in_proportion(options, few, one.recomputed_layers);
    one.offloaded_layers = in_proportion(options, few, one.offloaded_layers);
    return one;
}

/* Of the time that is left. */
static double comparing_share(const MtfVariantSearchOptions *options, const Few *few) {
    double left = mtf_search_seconds_left(options->control);
    double rest = (is_short(options, few) ? LEAST_STEPS : SEARCH_STEPS) * few->seconds;
    return isfinite(left) ? CLAMP((left - rest) / left, LEAST_COMPARING, COMPARING_SHARE)
                          : COMPARING_SHARE;
}

/* Compares on the few layers; false where nothing fits them. Clear what is found in either case. */
static bool compare(const MtfVariantSearchOptions *options, const Few *few,
                    MtfVariantAnswer *found) {
    MtfSearchControl part; /* what costs and bounds are of these layers is no news */
    mtf_search_control_init_share(&part, options->control, comparing_share(options, few));
    mtf_search_tell_phase(options->control, "comparing step variants on a few layers");
    MtfVariantSearchOptions comparing = *options;
    comparing.written = few->graph;
    comparing.memory_limit = few->limit;
    comparing.rival_seconds = 0;
    comparing.keep_problem = false;
    comparing.proof_gap = COMPARING_GAP;
    comparing.control = &part;
    return mtf_variant_search(&comparing, found, NULL) && found->answer.found;
}

/* ---- The layout of the few as one of all ------------------------------------------------------------ */

/* The step of all layers of the one variant. Its training graph, which plans hold, takes too long to be made
 * twice. */
static MtfVariantAnswer step_of_one(const MtfVariantSearchOptions *one,
                                    const MtfVariantAnswer *found) {
    MtfStepCandidate candidate = {
        .variant = g_array_index(found->variants, MtfStepCandidate, found->variant).variant
    };
    candidate.variant.recomputed_layers = one->recomputed_layers;
    candidate.variant.offloaded_layers = one->offloaded_layers;
    MtfVariantAnswer step = { .variants = g_array_new(FALSE, TRUE, sizeof(MtfStepCandidate)),
                              .considered = 1 };
    gint64 begun = g_get_monotonic_time();
    step.training =
        mtf_planning_training_graph(one->written, &candidate.variant, &step.division, NULL);
    if (step.training != NULL)
        step.graph = mtf_planning_execute(step.training, &step.division, &candidate.variant, NULL);
    candidate.seconds = (double)(g_get_monotonic_time() - begun) / 1e6;
    g_array_append_val(step.variants, candidate);
    return step;
}

/* What was found of the few layers' likeness is so of all. */
static MtfAlikeLayers alike_of(const MtfGraph *graph, const MtfAlikeLayers *few,
                               MtfAlikePrice price) {
    MtfAlikeLayers alike = { .uniform = few->uniform, .differences = few->differences };
    for (guint i = 0; few->layers > 0 && i < graph->repeats->len; i++)
        alike.layers += g_array_index(graph->repeats, MtfRepeat, i).count;
    alike.best = price;
    alike.alike = few->differences == 0 ? price : (MtfAlikePrice){ 0 };
    return alike;
}

/* Takes the layout for the cheapest, with its figures there; false where it does not fit. */
static bool take_layout(const MtfVariantSearchOptions *one, const MtfPlanAnswer *found,
                        MtfLayout *layout, MtfVariantAnswer *step) {
    MtfPlanAnswer *answer = &step->answer;
    *answer = (MtfPlanAnswer){ .stage = layout->execution.stage,
                               .in_order = found->in_order,
                               .pricer = found->pricer,
                               .rules = { .stopped = true },
                               .free = { .layout = layout,
                                         .method = g_strdup("the work alone is the bound") },
                               .meshes = found->meshes,
                               .free_meshes = found->free_meshes };
    mtf_variant_answer_tune(one, step);
    g_autoptr(MtfArena) arena = mtf_arena_pack(step->program);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&answer->pricer, step->program);
    answer->found = arena->bytes <= one->memory_limit;
    answer->cost = answer->in_order_cost = answer->free.cost =
        mtf_price_program(&answer->pricer, step->program);
    answer->step_seconds = answer->free.step_seconds = (double)schedule->nanoseconds / 1e9;
    answer->free.arena_bytes = arena->bytes;
    answer->alike =
        alike_of(step->graph, &found->alike, (MtfAlikePrice){ answer->cost, answer->step_seconds });
    return answer->found;
}

/* What is made side by side of the step of all layers. */
typedef struct {
    const MtfVariantSearchOptions *one;
    const MtfVariantAnswer *few;
    int layers;
    const MtfLayout *found; /* of the few */
    MtfVariantAnswer *step;
    bool fits;
    int64_t least; /* nanoseconds of the work alone */
} Deepening;

static bool lay_out(const Deepening *d) {
    g_autoptr(MtfDeepening) deepening = mtf_deepening_new(d->step->graph, d->few->graph, d->layers);
    MtfLayout *layout = deepening != NULL ? mtf_deepening_layout(deepening, d->found) : NULL;
    return layout != NULL && take_layout(d->one, &d->few->answer, layout, d->step);
}

enum { LAY_OUT, PRINT_TRAINING, PRICE_WORK, DEEPENING_PARTS };

static void make_part(int i, void *data) {
    Deepening *d = data;
    if (i == LAY_OUT)
        d->fits = lay_out(d);
    else if (i == PRICE_WORK)
        d->least = mtf_operations_least(d->step->graph, &d->found->mesh, &d->few->answer.pricer);
    else if (d->one->prints)
        d->step->training_text = mtf_plan_graph_text(d->step->training);
}

/* Answers with the layout of the few where there is no time for a search of all; false where there is, or
 * all have no such layout that fits. */
static bool deepen(const MtfVariantSearchOptions *one, const Few *layers,
                   const MtfVariantAnswer *few, MtfVariantAnswer *answer) {
    if (!is_short(one, layers) || one->keep_problem || one->framework != NULL)
        return false;
    gint64 begun = g_get_monotonic_time();
    g_autoptr(MtfLayout) found = mtf_plan_answer_layout(&few->answer, few->graph);
    *answer = step_of_one(one, few);
    Deepening deepening = {
        .one = one, .few = few, .layers = layers->layers, .found = found, .step = answer
    };
    if (answer->graph != NULL)
        mtf_in_parallel(DEEPENING_PARTS, make_part, &deepening);
    if (deepening.fits) {
        answer->answer.free.bound = MIN(answer->answer.cost, deepening.least);
        answer->wall_seconds = (double)(g_get_monotonic_time() - begun) / 1e6;
        return true;
    }
    mtf_variant_answer_clear(answer);
    return false;
}

/* ---- Entry ------------------------------------------------------------------------------------------ */

static void add_known(GArray *known, const char *name, const MtfLayout *layout) {
    MtfKnownLayout one = { name, (MtfLayout *)layout };
    g_array_append_val(known, one);
}

/* Searches all layers, and begins with the layouts of the few: the plan's, the cheapest, and the next best kind, which
 * no others need be looked at for. */
static bool search_one(const MtfVariantSearchOptions *one, const Few *some,
                       const MtfVariantAnswer *few, MtfVariantAnswer *answer) {
    MtfVariantSearchOptions options = *one;
    g_autoptr(GArray) known = g_array_new(FALSE, FALSE, sizeof(MtfKnownLayout));
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&few->answer, few->graph);
    add_known(known, MTF_FREE_LAYOUT, layout);
    if (few->answer.fastest != NULL && few->answer.free.layout != NULL)
        add_known(known, MTF_FREE_LAYOUT, few->answer.free.layout);
    const MtfIncumbent *next = mtf_next_best_of(&few->answer, few->graph, layout, some->limit);
    if (next != NULL)
        add_known(known, next->name, next->layout);
    MtfFewLayers layers = { .graph = few->graph,
                            .layers = some->layers,
                            .layouts = known,
                            .prices = few->answer.free.prices,
                            .mapping =
                                few->answer.in_order ? NULL : &few->answer.pricer.map.mapping };
    options.few = &layers;
    if (mtf_variant_search(&options, answer, NULL) &&
        (answer->answer.found || answer->given_up || mtf_search_is_over(one->control)))
        return true;
    mtf_variant_answer_clear(answer);
    return false;
}

bool mtf_deep_search(const MtfVariantSearchOptions *options, guint large, MtfVariantAnswer *answer,
                     GError **error) {
    Few few = few_layers(options, large);
    if (few.graph == NULL)
        return mtf_variant_search(options, answer, error);
    g_autoptr(GArray) mesh = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    MtfVariantAnswer found;
    bool done = compare(options, &few, &found);
    if (done) {
        MtfVariantSearchOptions one = narrowed(options, few.graph, &found, mesh);
        done = deepen(&one, &few, &found, answer) || search_one(&one, &few, &found, answer);
    }
    mtf_variant_answer_clear(&found);
    mtf_graph_free(few.graph);
    return done || mtf_variant_search(options, answer, error);
}
