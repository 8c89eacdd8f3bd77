// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/further_variants.h"

#include "analyzer/layout_search/merged_axes.h"
#include "analyzer/planner/memory_bound.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/planner/planning.h"
#include "analyzer/planner/variant_trial.h"
#include "cost/summary/parallelism.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph/microbatches.h"

#include <math.h>

/* The most of a step that other variants save: where it recomputes, a third of the arithmetic, and more beside it;
 * and where it does not, by fewer micro-batches. */
#define RECOMPUTATION_SAVED 0.5
#define MEMORY_SAVED 0.15

/* ---- How many layers ------------------------------------------------------------------------------ */

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

/* Searches the variant that computes the first layers again; `*better` says whether it is kept. */
static bool try_layers(const MtfVariantSearchOptions *options, MtfVariantAnswer *best, int layers,
                       bool *better, GError **error) {
    MtfStepCandidate candidate = {
        .variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant
    };
    int variant = (int)best->variants->len;
    candidate.variant.recomputed_layers = layers;
    bool done = mtf_variants_try_another(options, best, &candidate, best->graph, error);
    *better = best->variant == variant;
    return done;
}

static bool may_count_layers(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    return options->recompute == MTF_RECOMPUTES && mtf_variant_cost(best) < INT64_MAX &&
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
    for (int i = 0; i < most && low + 1 < high && !mtf_variants_stopped(options); i++) {
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

/* ---- Offload -------------------------------------------------------------------------------------- */

/* Nanoseconds that the copies of a step take in one direction. */
static int64_t copy_nanoseconds(const MtfVariantSearchOptions *options, const MtfGraph *graph) {
    return llround(1e9 * mtf_variant_bytes_to_host(options, graph, true) /
                   options->machine->host_bandwidth);
}

/* Whether copies of such a length could shorten the best step, or the rival's: those back begin, all but the last,
 * when those there are over. */
static bool could_shorten(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best,
                          int64_t copies) {
    double least = 2e-9 * (double)copies, rival = options->rival_seconds;
    bool shorter = mtf_variant_cost(best) == INT64_MAX || least < best->answer.step_seconds;
    return shorter && (rival <= 0 || least < rival);
}

/* Searches a variant that leaves something with the host, where it can be made, may fit and may be better. */
static bool try_offload(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                        MtfStepVariant variant, GError **error) {
    MtfStepCandidate candidate = { .variant = variant };
    candidate.graph = mtf_planning_executed_graph(options->written, &variant, NULL);
    if (candidate.graph == NULL || mtf_variants_stopped(options))
        return true;
    int64_t copies = copy_nanoseconds(options, candidate.graph);
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    candidate.least_bytes = mtf_memory_bound(candidate.graph, devices);
    candidate.hidden = 2 * copies;
    if (candidate.least_bytes > options->memory_limit || !could_shorten(options, best, copies) ||
        !mtf_variant_host_holds(options->machine,
                                mtf_variant_bytes_to_host(options, candidate.graph, false))) {
        mtf_graph_free(candidate.graph);
        return true;
    }
    return mtf_variants_try_another(options, best, &candidate, candidate.graph, error);
}

/* Whether memory asked for a variant that takes longer than the plain one, or nothing fits. */
static bool is_pressed(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    return options->offload == MTF_OFFLOADS && options->machine->host_bandwidth > 0 &&
           best->graph != NULL && mtf_graph_recomputable_layers(best->graph) > 0 &&
           (mtf_variant_cost(best) == INT64_MAX || variant->recompute != MTF_RECOMPUTE_NONE ||
            variant->microbatches > MAX(1, options->microbatches));
}

/* What was recomputed waits with the host instead; or what layers hand on does, beside recomputation. */
static bool search_offload(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                           GError **error) {
    if (!is_pressed(options, best))
        return true;
    MtfStepVariant variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    bool any = options->recompute == MTF_RECOMPUTES;
    bool fits = mtf_variant_cost(best) < INT64_MAX;
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

/* Searches the best variant with keys and values read in `parts` parts, where they divide some. */
static bool try_parts(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                      MtfStepVariant variant, int parts, GError **error) {
    MtfStepCandidate candidate = { .variant = variant };
    int devices = mtf_mesh_size(&g_array_index(options->meshes, MtfMesh, 0));
    candidate.variant.key_parts = parts;
    candidate.graph = mtf_planning_executed_graph(options->written, &candidate.variant, NULL);
    if (candidate.graph == NULL)
        return true;
    candidate.least_bytes = mtf_memory_bound(candidate.graph, devices);
    return mtf_variants_try_another(options, best, &candidate, candidate.graph, error);
}

/* As many parts as each axis of the best plan's mesh has processors. */
static bool search_parts(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    if (options->key_parts != 0 || best->graph == NULL || !has_long_memory(best->graph))
        return true;
    MtfStepVariant variant = g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    MtfMapping mesh = best->answer.pricer.map.mapping;
    for (int a = 0; a < mesh.mesh_axes && !mtf_variants_stopped(options); a++) {
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

/* Whether a ring of `parts` parts may do better: some of the axes (bits) split queries of attention, whose keys
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

/* Searches the best variant with rings of `parts` parts. */
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
    return mtf_variants_try_another(options, best, &candidate, candidate.graph, error);
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
    bool fits = mtf_variant_cost(best) < INT64_MAX;
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
    if (options->ring != 0 || best->graph == NULL || mtf_variants_stopped(options))
        return true;
    g_autoptr(GArray) rings = list_rings(options, best);
    for (guint i = 0; i < rings->len && !mtf_variants_stopped(options); i++)
        if (!try_ring(options, best, g_array_index(rings, int, i), error))
            return false;
    return true;
}

/* ---- Space ---------------------------------------------------------------------------------------- */

/* Dimensions that windows go over. */
static int count_spaces(const MtfGraph *graph) {
    int spaces = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        spaces = MAX(spaces, mtf_graph_operation(graph, i)->attributes.n_windows);
    return spaces;
}

static bool splits_space(const MtfParallelism *parallelism, int axis) {
    return parallelism->axis[axis] == MTF_PARALLEL_CONTEXT ||
           (parallelism->second_share[axis] > 0 &&
            parallelism->second[axis] == MTF_PARALLEL_CONTEXT);
}

/* The most processors that the batch of a step may be divided among, of so many. */
static int batch_parts(const MtfGraph *graph, int devices) {
    int batch = mtf_graph_find_batch(graph), parts = 1;
    for (int n = 2; batch >= 0 && n <= devices; n++)
        if (devices % n == 0 && mtf_graph_size(graph, batch) % n == 0)
            parts = n;
    return parts;
}

/* Parts of space from which on a third axis pays: of 16 parts cubes saved 4 % of a U-Net's step beside 4 x 4 bars, of 8
 * none that is worth the search. */
#define CUBES 16

/* The mesh for space beside `data` parts of the batch. */
static bool mesh_beside(int devices, int data, int spaces, MtfMesh *mesh) {
    return mtf_mesh_for_space(devices, data, devices / data < CUBES ? 2 : spaces, mesh);
}

/* The mesh with axes for space of their own, where the best plan has fewer than there are dimensions to split: beside the
 * batch as far as that goes, or as the plan splits it. */
static bool mesh_for_space(const MtfVariantAnswer *best, MtfMesh *mesh) {
    g_autoptr(MtfLayout) layout = mtf_plan_answer_layout(&best->answer, best->graph);
    MtfParallelism parallelism = mtf_parallelism(best->graph, layout);
    int devices = mtf_mesh_size(&layout->mesh), spaces = count_spaces(best->graph), axes = 0;
    int data = batch_parts(best->graph, devices), known = parallelism.degree[MTF_PARALLEL_DATA];
    for (int a = 0; a < layout->mesh.n_axes; a++)
        axes += splits_space(&parallelism, a);
    if (axes == 0 || spaces < 2)
        return false;
    if (!mesh_beside(devices, data, spaces, mesh)) {
        data = known;
        if (!mesh_beside(devices, data, spaces, mesh))
            return false;
    }
    return mesh->n_axes > layout->mesh.n_axes && (data != known || axes < spaces);
}

/* Searches the best variant where rows, columns and layers have an axis each, from layouts made by hand on: rules take
 * long there. */
static bool search_space(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                         GError **error) {
    MtfMesh mesh;
    if (!options->more_axes || options->rules_only || options->pins != NULL ||
        options->forbids != NULL || mtf_variant_cost(best) == INT64_MAX ||
        best->graph->operations->len > MTF_QUICK_OPERATIONS || mtf_variants_stopped(options) ||
        !mesh_for_space(best, &mesh))
        return true;
    g_autoptr(GArray) meshes = g_array_new(FALSE, FALSE, sizeof(MtfMesh));
    g_array_append_val(meshes, mesh);
    MtfVariantSearchOptions own = *options;
    own.meshes = meshes;
    own.no_rules = true;
    own.batch_first = mesh.n_axes > MTF_UNMERGED_AXES;
    int variant = best->variant;
    MtfStepCandidate candidate = {
        .variant = g_array_index(best->variants, MtfStepCandidate, variant).variant
    };
    bool done = mtf_variants_try_another(&own, best, &candidate, best->graph, error);
    g_array_set_size(best->variants, best->variants->len - 1); /* the step is none more */
    best->variant = variant;
    return done;
}

/* ---- All of them ---------------------------------------------------------------------------------- */

/* Whether other variants may save enough of the best one's step: recomputation, or what memory cost otherwise. */
static bool may_beat_rival(const MtfVariantSearchOptions *options, const MtfVariantAnswer *best) {
    if (options->rival_seconds <= 0 || !best->answer.found)
        return !best->answer.hopeless;
    const MtfStepVariant *variant =
        &g_array_index(best->variants, MtfStepCandidate, best->variant).variant;
    double saved = variant->recompute == MTF_RECOMPUTE_NONE ? MEMORY_SAVED : RECOMPUTATION_SAVED;
    return (1 - saved) * best->answer.step_seconds < options->rival_seconds;
}

bool mtf_variants_search_further(const MtfVariantSearchOptions *options, MtfVariantAnswer *best,
                                 GError **error) {
    bool further = may_beat_rival(options, best);
    best->given_up |= !further;
    return !further || mtf_variants_enough(options, best) ||
           (count_layers(options, best, error) && search_offload(options, best, error) &&
            search_parts(options, best, error) && search_rings(options, best, error) &&
            search_space(options, best, error));
}
