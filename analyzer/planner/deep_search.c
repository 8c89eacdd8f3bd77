// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/deep_search.h"

#include "analyzer/planner/memory_bound.h"
#include "analyzer/rewriting/shallow_graph.h"

#include <math.h>

/* Layers that variants and meshes are compared on: so many that what is not repeated, as a vocabulary, takes
 * a small part of the step as it does of all. */
#define FEW_LAYERS 24

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
                             .eager = mtf_software_is_eager(options->machine->software) };
}

/* The operations of a plain step of a graph, and the bytes that it needs at least; 0 where there is none. */
typedef struct {
    double operations, bytes;
} PlainStep;

static PlainStep plain_step(const MtfVariantSearchOptions *options, const MtfGraph *written) {
    MtfStepVariant plain = plain_variant(options);
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(written, &plain, NULL);
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    return graph != NULL
               ? (PlainStep){ graph->operations->len, (double)mtf_memory_bound(graph, devices) }
               : (PlainStep){ 0 };
}

/* Those of all layers, from what the last of the few adds: to make their graph takes as long as a search of
 * the few. */
static PlainStep step_of_all(const MtfVariantSearchOptions *options, const MtfGraph *few,
                             PlainStep step) {
    g_autoptr(MtfGraph) fewer = mtf_graph_shallow(options->written, FEW_LAYERS - 1);
    PlainStep less = plain_step(options, fewer);
    double added = (double)few->operations->len - (double)fewer->operations->len;
    double times =
        ((double)options->written->operations->len - (double)few->operations->len) / added;
    return (PlainStep){ step.operations + times * (step.operations - less.operations),
                        step.bytes + times * (step.bytes - less.bytes) };
}

/* What stands for the options' graph in the comparison, and its memory limit; NULL where all is compared on the
 * whole graph. */
static MtfGraph *few_layers(const MtfVariantSearchOptions *options, guint large, int64_t *limit) {
    bool chooses = options->meshes->len > 1 || options->microbatches == 0 ||
                   options->recompute == MTF_RECOMPUTES;
    bool may_be_large = options->written->operations->len * STEP_OPERATIONS > large;
    bool counts_layers = options->recomputed_layers > 0 || options->offloaded_layers > 0;
    if (!chooses || !may_be_large || counts_layers || options->rules_only || options->frontier > 0)
        return NULL;
    g_autoptr(MtfGraph) few = mtf_graph_shallow(options->written, FEW_LAYERS);
    PlainStep step = few != NULL ? plain_step(options, few) : (PlainStep){ 0 };
    if (step.bytes <= 0)
        return NULL;
    PlainStep all = step_of_all(options, few, step);
    if (all.operations <= (double)large)
        return NULL;
    *limit = (int64_t)((double)options->memory_limit * step.bytes / all.bytes);
    return g_steal_pointer(&few);
}

/* Of `some` layers of the few as large a share of all. */
static int in_proportion(const MtfVariantSearchOptions *options, const MtfGraph *few, int some) {
    double share = (double)options->written->operations->len / few->operations->len;
    return (int)ceil(some * share);
}

/* The options with the variant and the mesh of an answer; `mesh` holds that. */
static MtfVariantSearchOptions narrowed(const MtfVariantSearchOptions *options, const MtfGraph *few,
                                        MtfVariantAnswer *found, GArray *mesh) {
    const MtfStepVariant *variant =
        &g_array_index(found->variants, MtfStepCandidate, found->variant).variant;
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&found->answer, found->graph);
    MtfVariantSearchOptions one = *options;
    g_array_append_val(mesh, layout->mesh);
    one.meshes = mesh;
    one.microbatches = MAX(1, variant->microbatches);
    one.recompute = (int)variant->recompute;
    one.recomputed_layers = in_proportion(options, few, variant->recomputed_layers);
    one.offload = (int)variant->offload;
    one.offloaded_layers = in_proportion(options, few, variant->offloaded_layers);
    one.key_parts = MAX(1, variant->key_parts);
    one.ring = MAX(1, variant->ring);
    one.no_rules = !found->answer.rules.found && !found->answer.rules.stopped;
    return one;
}

static double comparing_share(const MtfVariantSearchOptions *options) {
    double seconds = options->control != NULL ? options->control->seconds : 0;
    double left = seconds - mtf_planning_least_seconds(options->written);
    return seconds > 0 ? CLAMP(left / seconds, LEAST_COMPARING, COMPARING_SHARE) : COMPARING_SHARE;
}

/* Compares on the few layers; false where nothing fits them. */
static bool compare(const MtfVariantSearchOptions *options, const MtfGraph *few, int64_t limit,
                    GArray *mesh, MtfVariantSearchOptions *one) {
    MtfSearchControl part; /* what costs and bounds are of these layers is no news */
    mtf_search_control_init_share(&part, options->control, comparing_share(options));
    mtf_search_tell_phase(options->control, "comparing step variants on a few layers");
    MtfVariantSearchOptions comparing = *options;
    comparing.written = few;
    comparing.memory_limit = limit;
    comparing.rival_seconds = 0;
    comparing.keep_problem = false;
    comparing.control = &part;
    MtfVariantAnswer found;
    bool fits = mtf_variant_search(&comparing, &found, NULL) && found.answer.found;
    if (fits)
        *one = narrowed(options, few, &found, mesh);
    mtf_variant_answer_clear(&found);
    return fits;
}

bool mtf_deep_search(const MtfVariantSearchOptions *options, guint large, MtfVariantAnswer *answer,
                     GError **error) {
    int64_t limit;
    g_autoptr(MtfGraph) few = few_layers(options, large, &limit);
    g_autoptr(GArray) mesh = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    MtfVariantSearchOptions one;
    if (few != NULL && compare(options, few, limit, mesh, &one)) {
        bool done = mtf_variant_search(&one, answer, NULL);
        if (done &&
            (answer->answer.found || answer->given_up || mtf_search_is_over(options->control)))
            return true;
        mtf_variant_answer_clear(answer);
    }
    return mtf_variant_search(options, answer, error);
}
