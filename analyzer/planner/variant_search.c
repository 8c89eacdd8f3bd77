// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/variant_search.h"

#include "analyzer/planner/further_variants.h"
#include "analyzer/planner/variant_trial.h"
#include "analyzer/training/batch_dimension.h"
#include "layouts/graph/microbatches.h"

/* Of --seconds, for comparing variants of the step. */
#define VARIANT_SHARE 0.3

/* Of --seconds, for the plan where a frontier follows; and of what is left then, for its variant's frontier. */
#define PLAN_SHARE 0.35
#define OWN_FRONTIER_SHARE 0.3

/* Variants that are searched after one that fits, at least; and at most for large graphs. */
#define MORE_VARIANTS 1

/* ---- All variants --------------------------------------------------------------------------------- */

/* Whether a variant is worth a search after `after` variants that did not fit worse: the next one always, and others
 * that promise to cost less than what was found; where those that promise most were given up, no others. */
static bool is_promising(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                         int variant, int after) {
    const MtfStepCandidate *candidate = &g_array_index(best->variants, MtfStepCandidate, variant);
    bool large = best->graph != NULL && best->graph->operations->len > MTF_LARGE_OPERATIONS;
    bool lost = best->given_up && mtf_variant_cost(best) == INT64_MAX;
    bool found = mtf_variant_cost(best) < INT64_MAX;
    const MtfStepCandidate *other =
        found ? &g_array_index(best->variants, MtfStepCandidate, best->variant) : NULL;
    double promised = mtf_step_candidate_promise(candidate, other, best->answer.free.bound);
    return after <= MORE_VARIANTS ||
           (!large && !lost && candidate->cost > 0 &&
            promised < (double)MIN(mtf_variant_cost(best), mtf_variants_rival_cost(options)));
}

/* How many variants from one on, which is worth it, are searched at once: as many are searched in any case, or else those
 * beside it that are as promising as it is, before anything is known of it. */
static int count_at_once(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                         int first, int after) {
    int most = MIN((int)best->variants->len - first, MTF_VARIANTS_AT_ONCE), count = 1;
    while (count < most && is_promising(options, best, first + count, after + count))
        count++;
    return count;
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
    while (i < n && !mtf_variants_enough(options, best) && is_promising(options, best, i, after)) {
        bool last = i > 0 && mtf_variants_late(options, best->variants);
        int first = last ? smallest_variant(best, i) : i;
        int count = last ? 1 : count_at_once(options, best, i, after);
        if (!mtf_variants_try(options, best, first, count, &after, error))
            return false;
        i = last ? n : i + count;
    }
    return true;
}

/* ---- The frontier --------------------------------------------------------------------------------- */

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

/* A search in a share of the time that is left, heard by the same listener. */
static MtfVariantSearchOptions in_share(const MtfVariantSearchOptions *options, double share,
                                        MtfSearchControl *part) {
    MtfVariantSearchOptions own = *options;
    if (!mtf_search_has_deadline(options->control))
        return own;
    mtf_search_control_init_share(part, options->control, share);
    part->listener = options->control->listener;
    own.control = part;
    return own;
}

/* Adds what another variant's frontier has, found in a share of the time; one that cannot be made has nothing. Its
 * layers are alike, unless they must not be: then it is found in the time of one. */
static void add_variant(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                        const MtfStepVariant *variant, double share, GArray *points) {
    MtfSearchControl part;
    MtfVariantSearchOptions own = in_share(options, share, &part);
    MtfStepCandidate candidate = { .variant = *variant };
    g_array_append_val(best->variants, candidate);
    MtfVariantAnswer found = { .variants = best->variants,
                               .variant = (int)best->variants->len - 1 };
    if (options->uniform == MTF_UNIFORM_AUTO)
        own.uniform = MTF_UNIFORM_ALWAYS;
    if (mtf_variant_search_frontier(&own, &found, NULL) && found.answer.frontier != NULL)
        mtf_variant_points_add(points, found.answer.frontier, found.variant);
    mtf_variant_clear_found(&found);
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

/* Lists the variants (MtfStepVariant) of a kind that may be searched; where the user says what waits with the
 * host, so it does in all of them. */
static void list_kind(const MtfVariantSearchOptions *options, const MtfStepVariant *chosen,
                      const FrontierKind *kind, const GArray *counts, GArray *others) {
    bool any = options->offload == MTF_OFFLOADS;
    if (!any && kind->offload != MTF_OFFLOAD_NONE)
        return;
    for (guint i = 0; i < (kind->counted ? counts->len : 1); i++) {
        MtfStepVariant variant = *chosen;
        variant.recompute = kind->recompute;
        variant.recomputed_layers = 0;
        variant.offload = any ? kind->offload : chosen->offload;
        variant.microbatches = g_array_index(counts, int, i);
        if (may_vary(options, chosen, &variant))
            g_array_append_val(others, variant);
    }
}

/* Where the plan's mesh is none of those of the options (search_space), that alone is searched, without rules again;
 * `mesh`, empty, comes to hold it. */
static void keep_mesh(MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                      GArray *mesh) {
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&best->answer, best->graph);
    for (guint i = 0; i < options->meshes->len; i++)
        if (mtf_mesh_equal(&g_array_index(options->meshes, MtfMesh, i), &layout->mesh))
            return;
    g_array_append_val(mesh, layout->mesh);
    options->meshes = mesh;
    options->no_rules = true;
    options->batch_first = best->answer.batch_first;
}

/* Searches the chosen variant with its frontier, in a share of the time; where that was too short for as cheap a
 * layout as is known, that stays. */
static bool add_chosen(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                       GArray *points, GError **error) {
    MtfSearchControl part;
    MtfVariantSearchOptions own = in_share(options, OWN_FRONTIER_SHARE, &part);
    g_autoptr(GArray) mesh = g_array_new(FALSE, FALSE, sizeof(MtfMesh));
    keep_mesh(&own, best, mesh);
    MtfVariantAnswer again = { .variants = best->variants, .variant = best->variant };
    GError *cause = NULL;
    bool done = mtf_variant_search_frontier(&own, &again, &cause);
    bool excused = mtf_search_is_over(own.control);
    if (done && again.answer.frontier != NULL)
        mtf_variant_points_add(points, again.answer.frontier, again.variant);
    if (done && (!excused || mtf_variant_cost(&again) <= mtf_variant_cost(best))) {
        again.considered = best->considered;
        mtf_variant_clear_found(best);
        *best = again;
    } else {
        mtf_variant_clear_found(&again);
    }
    if (done || excused)
        g_clear_error(&cause);
    else
        g_propagate_error(error, cause);
    return done || excused;
}

/* The frontier of the chosen variant, and joined with those of others. */
static bool add_frontier(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    MtfStepVariant chosen = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    g_autoptr(GArray) counts = frontier_counts(options);
    g_autoptr(GArray) others = g_array_new(FALSE, FALSE, sizeof(MtfStepVariant));
    g_autoptr(GArray) points = mtf_variant_points_new();
    if (!add_chosen(options, best, points, error))
        return false;
    if (points->len == 0)
        return true;
    for (size_t k = 0; k < G_N_ELEMENTS(frontier_kinds); k++)
        list_kind(options, &chosen, &frontier_kinds[k], counts, others);
    for (guint i = 0; i < others->len && !mtf_search_is_over(options->control); i++)
        add_variant(options, best, &g_array_index(others, MtfStepVariant, i),
                    1.0 / (others->len - i), points);
    best->frontier = mtf_variant_frontier(points, options->frontier, options->memory_limit);
    return true;
}

/* ---- The search ----------------------------------------------------------------------------------- */

static GArray *find_variants(const MtfVariantSearchOptions *options, GError **error) {
    MtfSearchControl part;
    double share = options->frontier > 0 ? PLAN_SHARE * VARIANT_SHARE : VARIANT_SHARE;
    mtf_search_control_init_share(&part, options->control, share);
    MtfVariantSearchOptions looking = *options;
    looking.control = &part;
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
                                        .few_tries = MTF_LARGE_OPERATIONS,
                                        .look = mtf_variant_look,
                                        .look_data = &looking,
                                        .priced = options->priced,
                                        .operations = options->operations,
                                        .control = &part };
    mtf_search_tell_phase(options->control, "comparing step variants");
    return mtf_step_variants(&variants, error);
}

static double seconds_since(gint64 begin) {
    return (double)(g_get_monotonic_time() - begin) / 1e6;
}

MtfVariantSearchOptions mtf_variant_search_narrowed(const MtfVariantSearchOptions *options,
                                                    const MtfVariantAnswer *found, GArray *mesh) {
    const MtfStepVariant *variant =
        &g_array_index(found->variants, MtfStepCandidate, found->variant).variant;
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&found->answer, found->graph);
    MtfVariantSearchOptions one = *options;
    g_array_append_val(mesh, layout->mesh);
    one.meshes = mesh;
    one.more_axes = false;
    one.batch_first = found->answer.batch_first;
    one.microbatches = MAX(1, variant->microbatches);
    one.recompute = (int)variant->recompute;
    one.recomputed_layers = variant->recomputed_layers;
    one.offload = (int)variant->offload;
    one.offloaded_layers = variant->offloaded_layers;
    one.key_parts = MAX(1, variant->key_parts);
    one.ring = MAX(1, variant->ring);
    one.no_rules = !found->answer.rules.found && !found->answer.rules.stopped;
    one.bucket_bytes = found->layout != NULL ? found->layout->execution.bucket_bytes : 0;
    return one;
}

bool mtf_variant_search(const MtfVariantSearchOptions *options, MtfVariantAnswer *answer,
                        GError **error) {
    *answer = (MtfVariantAnswer){ .variants = find_variants(options, error) };
    if (answer->variants == NULL)
        return false;
    gint64 start = g_get_monotonic_time();
    MtfSearchControl part;
    MtfVariantSearchOptions first =
        options->frontier > 0 ? in_share(options, PLAN_SHARE, &part) : *options;
    bool done = search_variants(&first, answer, error) &&
                mtf_variants_search_further(&first, answer, error);
    answer->considered = (int)answer->variants->len;
    done = done && (options->frontier == 0 || mtf_variant_cost(answer) == INT64_MAX ||
                    add_frontier(options, answer, error));
    answer->wall_seconds = seconds_since(start);
    return done;
}

void mtf_variant_answer_clear(MtfVariantAnswer *answer) {
    mtf_variant_clear_found(answer);
    g_clear_pointer(&answer->frontier, g_array_unref);
    g_clear_pointer(&answer->variants, g_array_unref);
}
