// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/merged_answer.h"

#include "analyzer/free/operation_profile.h"
#include "cost/price/schedule.h"
#include "cost/tune/order_search.h"
#include "cost/tune/program_mapping.h"

#include <string.h>

/* Mappings of the mesh itself that are tried where that of the merged mesh cannot be expanded. */
#define MOST_MAPPINGS 20000

/* ---- Which meshes ------------------------------------------------------------------------------ */

static bool has_room(const MtfMachine *machine, const MtfMesh *mesh) {
    MtfPricer pricer;
    return mtf_pricer_init(&pricer, machine, mesh, NULL);
}

static void merge_mesh(MtfMergedMeshes *merged, const MtfMesh *mesh, const MtfMachine *machine) {
    g_autoptr(GArray) merges = mtf_axis_merges(mesh, MTF_UNMERGED_AXES);
    merged->mesh = *mesh;
    for (guint i = 0; i < merges->len; i++) {
        const MtfAxisMerge *merge = &g_array_index(merges, MtfAxisMerge, i);
        if (!has_room(machine, &merge->mesh))
            continue;
        g_array_append_vals(merged->merges, merge, 1);
        g_array_append_vals(merged->searched, &merge->mesh, 1);
    }
}

MtfMergedMeshes *mtf_merged_meshes_new(const MtfGraph *graph, const GArray *meshes,
                                       const MtfMachine *machine) {
    g_autoptr(MtfMergedMeshes) merged = g_new0(MtfMergedMeshes, 1);
    merged->merges = g_array_new(FALSE, FALSE, sizeof(MtfAxisMerge));
    merged->searched = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (guint i = 0; i < meshes->len; i++)
        if (!mtf_axes_should_merge(graph, &g_array_index(meshes, MtfMesh, i)))
            g_array_append_val(merged->searched, g_array_index(meshes, MtfMesh, i));
    if (merged->searched->len == meshes->len)
        return NULL;
    if (merged->searched->len == 0)
        merge_mesh(merged, &g_array_index(meshes, MtfMesh, 0), machine);
    return merged->searched->len > 0 ? g_steal_pointer(&merged) : NULL;
}

void mtf_merged_meshes_free(MtfMergedMeshes *merged) {
    if (merged == NULL)
        return;
    g_array_unref(merged->merges);
    g_array_unref(merged->searched);
    g_free(merged);
}

/* ---- How the mesh lies ------------------------------------------------------------------------- */

/* Takes places of the merged axis from its fastest piece on; `left` are those of the piece at `*at` that
 * are not taken yet. False where neither of two sizes divides the other. */
static bool take_pieces(const MtfMapping *merged, int axis, int size, int *at, int64_t *left,
                        MtfMapping *mapping) {
    for (int64_t rest = size; rest > 1;) {
        if (*left == 1)
            *left = merged->piece[--*at].size;
        const MtfMappingPiece *piece = &merged->piece[*at];
        int64_t taken = MIN(rest, *left);
        if (taken < 2 || rest % taken != 0 || *left % taken != 0 ||
            mapping->pieces == MTF_MAPPING_PIECES_MAX)
            return false;
        mapping->piece[mapping->pieces++] =
            (MtfMappingPiece){ axis, piece->physical_axis, taken,
                               piece->stride * (piece->size / *left) };
        *left /= taken;
        rest /= taken;
    }
    return true;
}

static void reverse(MtfMapping *mapping) {
    for (int i = 0, j = mapping->pieces - 1; i < j; i++, j--) {
        MtfMappingPiece other = mapping->piece[i];
        mapping->piece[i] = mapping->piece[j];
        mapping->piece[j] = other;
    }
}

/* Neighbouring axes are merged, so both meshes walk the same pieces, from the last to the first. */
bool mtf_merged_mapping_expand(const MtfMesh *mesh, const MtfAxisMerge *merge,
                               const MtfMapping *merged, MtfMapping *mapping) {
    MtfMapping expanded = { .mesh_axes = mesh->n_axes, .physical_axes = merged->physical_axes };
    memcpy(expanded.physical_sizes, merged->physical_sizes, sizeof expanded.physical_sizes);
    int at = merged->pieces;
    int64_t left = 1;
    for (int a = mesh->n_axes - 1; a >= 0; a--) {
        const MtfMeshAxis *axis = &mesh->axes[a];
        bool alone = axis->size == merge->mesh.axes[merge->axis[a]].size;
        bool snake = merged->snake >> merge->axis[a] & 1;
        expanded.mesh_sizes[a] = axis->size;
        if ((snake && !alone && axis->size > 1) ||
            !take_pieces(merged, a, axis->size, &at, &left, &expanded))
            return false;
        expanded.snake |= snake && axis->size > 1 ? 1U << a : 0;
    }
    reverse(&expanded);
    if (!mtf_mapping_is_whole(&expanded))
        return false;
    *mapping = expanded;
    return true;
}

static bool mappings_equal(const MtfMapping *a, const MtfMapping *b) {
    if (a->pieces != b->pieces || a->snake != b->snake)
        return false;
    for (int i = 0; i < a->pieces; i++) {
        const MtfMappingPiece *p = &a->piece[i], *q = &b->piece[i];
        if (p->mesh_axis != q->mesh_axis || p->physical_axis != q->physical_axis ||
            p->size != q->size || p->stride != q->stride)
            return false;
    }
    return true;
}

/* ---- The answer -------------------------------------------------------------------------------- */

typedef struct {
    const MtfGraph *graph;
    const MtfPlanSearchOptions *options;
    const MtfMesh *mesh;
    const MtfAxisMerge *merge;
    MtfPricer pricer; /* of the mesh itself */
} Expansion;

/* A layout of the mesh itself, with its figures there. */
typedef struct {
    MtfLayout *layout;
    int64_t cost, arena_bytes;
    double step_seconds;
} Expanded;

static Expanded expand_layout(const Expansion *expansion, const MtfLayout *merged) {
    const MtfPlanSearchOptions *options = expansion->options;
    Expanded expanded = { .layout = mtf_axis_merge_expand(expansion->graph, expansion->mesh,
                                                          expansion->merge, merged) };
    g_autoptr(MtfProgram) written = mtf_lower(expansion->graph, expanded.layout);
    expanded.arena_bytes = mtf_layout_arena_bytes(expansion->graph, expanded.layout, written,
                                                  &expansion->pricer, options->memory_limit);
    g_autoptr(MtfProgram) program = mtf_lower(expansion->graph, expanded.layout);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&expansion->pricer, program);
    expanded.cost = mtf_price_program(&expansion->pricer, program);
    expanded.step_seconds = (double)schedule->nanoseconds / 1e9;
    return expanded;
}

/* Lays the mesh as the merged one lies, or else as suits the layout best. */
static void lay_mesh(Expansion *expansion, const MtfPlanAnswer *answer) {
    MtfPricer *pricer = &expansion->pricer;
    if (mtf_merged_mapping_expand(expansion->mesh, expansion->merge, &answer->pricer.map.mapping,
                                  &pricer->map.mapping))
        return;
    g_autoptr(MtfLayout) merged = mtf_plan_answer_layout(answer, expansion->graph);
    g_autoptr(MtfLayout) layout =
        mtf_axis_merge_expand(expansion->graph, expansion->mesh, expansion->merge, merged);
    g_autoptr(MtfProgram) program = mtf_lower(expansion->graph, layout);
    mtf_program_map(pricer, program, MOST_MAPPINGS);
}

/* Of none, where there was time for rules alone, an empty list. */
static MtfIncumbents *expand_incumbents(const Expansion *expansion, MtfIncumbents *merged) {
    MtfIncumbents *expanded = mtf_incumbents_new(expansion->graph, &expansion->pricer);
    if (merged == NULL)
        return expanded;
    g_autoptr(GPtrArray) shown = mtf_incumbents_shown(merged, expansion->options->memory_limit);
    for (guint i = 0; i < shown->len; i++) {
        const MtfIncumbent *incumbent = g_ptr_array_index(shown, i);
        g_autoptr(MtfLayout) layout = mtf_axis_merge_expand(expansion->graph, expansion->mesh,
                                                            expansion->merge, incumbent->layout);
        mtf_incumbents_add(expanded, incumbent->name, layout);
    }
    return expanded;
}

static int64_t merged_bound(const MtfPlanAnswer *answer) {
    return mtf_plan_answer_is_free(answer) ? answer->free.bound : answer->rules.bound;
}

/* An incumbent that fits, as expanded, where it is cheaper. */
static Expanded cheaper(const Expansion *expansion, MtfIncumbents *incumbents, Expanded expanded) {
    int64_t limit = expansion->options->memory_limit;
    const MtfIncumbent *best = mtf_incumbents_best(incumbents, limit);
    if (best == NULL || (expanded.arena_bytes <= limit && best->cost >= expanded.cost))
        return expanded;
    mtf_layout_free(expanded.layout);
    return (Expanded){ mtf_layout_copy(best->layout), best->cost, best->arena_bytes,
                       best->step_seconds };
}

/* The cheapest layout, which rules no longer describe. */
static void take_cheapest(const Expansion *expansion, MtfPlanAnswer *answer, Expanded cheapest) {
    mtf_free_answer_clear(&answer->free);
    answer->free = (MtfFreeAnswer){
        .layout = cheapest.layout,
        .cost = cheapest.cost,
        .bound = MIN(cheapest.cost,
                     mtf_operations_least(expansion->graph, expansion->mesh, &expansion->pricer)),
        .arena_bytes = cheapest.arena_bytes,
        .step_seconds = cheapest.step_seconds,
        .method = g_strdup("axes merged to three; the work alone is the bound"),
    };
    mtf_rule_answer_clear(&answer->rules);
    answer->rules = (MtfRuleAnswer){ 0 };
    answer->found = cheapest.arena_bytes <= expansion->options->memory_limit;
    answer->cost = cheapest.cost;
    answer->step_seconds = cheapest.step_seconds;
}

/* The layout of the shortest step, where it still fits and is the shorter one. */
static void take_fastest(const Expansion *expansion, MtfPlanAnswer *answer) {
    g_autoptr(MtfLayout) merged = g_steal_pointer(&answer->fastest);
    if (merged == NULL)
        return;
    bool alike = answer->alike.alike.cost == answer->fastest_cost;
    Expanded fastest = expand_layout(expansion, merged);
    if (fastest.arena_bytes > expansion->options->memory_limit) {
        mtf_layout_free(fastest.layout);
        return;
    }
    answer->fastest = fastest.layout;
    answer->fastest_cost = fastest.cost;
    answer->step_seconds = fastest.step_seconds;
    if (alike)
        answer->alike.alike = (MtfAlikePrice){ fastest.cost, fastest.step_seconds };
}

/* An incumbent that fits, where its step is shorter still. */
static void take_faster_incumbent(const Expansion *expansion, MtfPlanAnswer *answer) {
    const MtfIncumbent *fastest =
        mtf_incumbents_fastest(answer->incumbents, expansion->options->memory_limit);
    if (fastest == NULL || fastest->step_seconds >= answer->step_seconds)
        return;
    mtf_layout_free(answer->fastest);
    answer->fastest = mtf_layout_copy(fastest->layout);
    answer->fastest_cost = fastest->cost;
    answer->step_seconds = fastest->step_seconds;
}

static const MtfAxisMerge *find_merge(const MtfMergedMeshes *merged, const MtfMesh *mesh) {
    for (guint i = 0; i < merged->merges->len; i++)
        if (mtf_mesh_equal(&g_array_index(merged->merges, MtfAxisMerge, i).mesh, mesh))
            return &g_array_index(merged->merges, MtfAxisMerge, i);
    return NULL;
}

void mtf_merged_answer_expand(const MtfMergedMeshes *merged, const MtfGraph *graph,
                              const MtfPlanSearchOptions *options, MtfPlanAnswer *answer) {
    if (!answer->found || merged->merges->len == 0)
        return;
    g_autoptr(MtfLayout) layout = answer->free.layout != NULL
                                      ? mtf_layout_copy(answer->free.layout)
                                      : mtf_plan_answer_layout(answer, graph);
    Expansion expansion = { .graph = graph,
                            .options = options,
                            .mesh = &merged->mesh,
                            .merge = find_merge(merged, &layout->mesh) };
    if (!mtf_pricer_init(&expansion.pricer, options->machine, &merged->mesh, NULL))
        return;
    MtfMapping in_order = expansion.pricer.map.mapping;
    answer->merged = (MtfMergedProof){ layout->mesh, answer->cost, merged_bound(answer) };
    lay_mesh(&expansion, answer);
    answer->in_order = mappings_equal(&in_order, &expansion.pricer.map.mapping);
    answer->pricer = expansion.pricer;
    MtfIncumbents *incumbents = expand_incumbents(&expansion, answer->incumbents);
    mtf_incumbents_free(answer->incumbents);
    answer->incumbents = incumbents;
    take_cheapest(&expansion, answer,
                  cheaper(&expansion, incumbents, expand_layout(&expansion, layout)));
    take_fastest(&expansion, answer);
    take_faster_incumbent(&expansion, answer);
}
