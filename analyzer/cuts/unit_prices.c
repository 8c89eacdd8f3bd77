// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/unit_prices.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/price/schedule.h"
#include "cost/summary/parallelism.h"
#include "layouts/graph/stage_split.h"
#include "layouts/kernel_work/fusable.h"
#include "layouts/program/lifetimes.h"

#include <string.h>

/* The most layouts of one unit on one mesh that are looked at, the cheapest first; those that keep variables
 * or optimizer state in pieces all come beside them. */
#define STYLES_A_MESH 12

static void way_free(void *data) {
    MtfUnitWay *way = data;
    g_free(way->name);
    g_free(way->price);
    g_free(way);
}

/* The training graph's parts. */
typedef struct {
    GPtrArray *graphs;         /* MtfGraph, one a kind */
    GHashTable *made_backward; /* names of tensors: results of the backward pass, */
    GHashTable *read_backward; /* and what it reads */
} UnitParts;

static void parts_clear(UnitParts *parts) {
    g_clear_pointer(&parts->graphs, g_ptr_array_unref);
    g_clear_pointer(&parts->made_backward, g_hash_table_unref);
    g_clear_pointer(&parts->read_backward, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UnitParts, parts_clear)

/* The prices of one mesh, by style. */
typedef struct {
    const MtfUnitPricing *pricing;
    const UnitParts *parts;
    MtfMesh mesh;
    MtfKnownPaths *paths; /* while they are found: shared by all kinds */
    MtfUnitWay **way;     /* [styles], NULL where nobody has it */
} MeshPrices;

static int style_count(const MtfMesh *mesh) {
    return MTF_STANDARD_STYLES << mesh->n_axes;
}

static double last_end(const MtfSchedule *schedule, int end) {
    int64_t last = 0;
    for (int i = 0; i < end; i++)
        last = MAX(last, schedule->ends[i]);
    return (double)last * 1e-9;
}

/* Adds the bytes of a buffer that is there once for each micro-batch in flight. In a stage of several units
 * what crosses between them on the way back is gone at once, and what crosses on the way forward is kept where
 * the backward pass reads it, by the unit that made it. */
static void add_flight(const UnitParts *parts, const MtfGraph *graph, const MtfBuffer *buffer,
                       MtfUnitPrice *price) {
    const MtfTensor *tensor = buffer->tensor >= 0 ? mtf_graph_tensor(graph, buffer->tensor) : NULL;
    double bytes = (double)mtf_buffer_stride(buffer);
    bool received =
        tensor != NULL && tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TRANSFER;
    bool sent = tensor != NULL && tensor->is_sent;
    if ((received || sent) && g_hash_table_contains(parts->made_backward, tensor->name))
        *(sent ? &price->at_begin : &price->at_end) += bytes;
    else if (sent && !g_hash_table_contains(parts->read_backward, tensor->name))
        price->at_end += bytes;
    else if (!received)
        price->flight += bytes;
}

/* Bytes of what is not there once for each micro-batch in flight: sums of gradients over micro-batches live
 * from the first to the last and belong to what a stage always holds. */
static void measure_bytes(const UnitParts *parts, const MtfProgram *program, MtfUnitPrice *price) {
    double slots = 0;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage != b)
            continue;
        bool sums = buffer->memory == MTF_MEMORY_GRADIENT && buffer->first == 0;
        if (buffer->slots > 1) {
            slots += (double)buffer->slots * (double)mtf_buffer_stride(buffer);
            add_flight(parts, program->graph, buffer, price);
        } else if (buffer->persistent || sums) {
            price->fixed += (double)mtf_buffer_aligned_bytes(buffer);
        }
    }
    price->work = MAX(0, (double)mtf_program_most_live(program) - price->fixed - slots);
}

static MtfUnitPrice price_layout(const UnitParts *parts, const MtfPricer *pricer,
                                 const MtfGraph *graph, const MtfLayout *layout) {
    MtfUnitPrice price = { .known = true };
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    double repeated = last_end(schedule, program->n_repeated);
    price.seconds = repeated / program->microbatches;
    price.once =
        (double)schedule->nanoseconds * 1e-9 - repeated - mtf_machine_step_seconds(pricer->machine);
    measure_bytes(parts, program, &price);
    return price;
}

static MtfUnitWay *way_of_style(MeshPrices *prices, const MtfStandardLayout *standard) {
    MtfUnitWay **way = &prices->way[standard->style];
    if (*way == NULL) {
        *way = g_new0(MtfUnitWay, 1);
        (*way)->devices = mtf_mesh_size(&prices->mesh);
        (*way)->mesh = prices->mesh;
        (*way)->recompute = prices->pricing->variant.recompute;
        (*way)->name = g_strdup(standard->name);
        (*way)->style = standard->style;
        (*way)->megatron = standard->megatron;
        (*way)->price = g_new0(MtfUnitPrice, prices->pricing->units->kinds);
    }
    return *way;
}

/* Megatron-LM's axes do one thing in all products: a vocabulary that does not divide would be split otherwise. */
static bool is_plain(const MtfGraph *graph, const MtfLayout *layout) {
    MtfParallelism p = mtf_parallelism(graph, layout);
    return !p.has_products || mtf_parallelism_is_plain(&p);
}

/* So that what waits for the backward pass is seen. */
static const MtfStageExecution two_in_flight = { .in_flight = 2, .weight_versions = 1 };

static void price_kind(MeshPrices *prices, int kind) {
    const MtfGraph *graph = g_ptr_array_index(prices->parts->graphs, kind);
    MtfPricer pricer;
    if (!mtf_pricer_init(&pricer, prices->pricing->machine, &prices->mesh, NULL))
        return;
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new_sharing(graph, &prices->mesh, &pricer, prices->paths);
    if (problem == NULL)
        return;
    mtf_free_problem_set_stage(problem, &two_in_flight);
    g_autoptr(GPtrArray) standards = mtf_standard_layouts(problem);
    for (guint i = 0; i < standards->len; i++) {
        const MtfStandardLayout *standard = g_ptr_array_index(standards, i);
        if (i >= STYLES_A_MESH && strstr(standard->name, "ZeRO") == NULL)
            continue;
        g_autoptr(MtfLayout) layout = mtf_free_problem_layout(problem, standard->choice);
        MtfUnitWay *way = way_of_style(prices, standard);
        way->price[kind] = price_layout(prices->parts, &pricer, graph, layout);
        way->megatron &= is_plain(graph, layout);
    }
}

static void price_mesh(int i, void *data) {
    MeshPrices *prices = &g_array_index((GArray *)data, MeshPrices, i);
    prices->way = g_new0(MtfUnitWay *, style_count(&prices->mesh));
    prices->paths = mtf_known_paths_new();
    for (int kind = 0; kind < prices->pricing->units->kinds; kind++)
        price_kind(prices, kind);
    mtf_known_paths_unref(prices->paths);
}

/* The forward graph with a stage a unit, as a training graph. */
static MtfGraph *training_graph(const MtfUnitPricing *pricing, GError **error) {
    g_autoptr(MtfGraph) cut = mtf_graph_copy(pricing->forward);
    for (int u = 0; u < pricing->units->units; u++)
        for (int i = pricing->units->begin[u]; i < pricing->units->begin[u + 1]; i++)
            mtf_graph_operation(cut, i)->stage = u + 1;
    MtfGraph *training = mtf_planning_executed_graph(cut, &pricing->variant, error);
    if (training != NULL)
        mtf_graph_complete_stages(training);
    return training;
}

static void list_backward(const MtfGraph *training, UnitParts *parts) {
    parts->made_backward = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    parts->read_backward = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < training->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(training, (int)i);
        if (op->phase != MTF_PHASE_BACKWARD)
            continue;
        for (int k = 0; k < op->n_outputs; k++)
            g_hash_table_add(parts->made_backward,
                             g_strdup(mtf_graph_tensor(training, op->outputs[k])->name));
        for (int k = 0; k < op->n_inputs; k++)
            g_hash_table_add(parts->read_backward,
                             g_strdup(mtf_graph_tensor(training, op->inputs[k])->name));
    }
}

/* One part a kind of unit. */
static bool find_parts(const MtfUnitPricing *pricing, UnitParts *parts, GError **error) {
    g_autoptr(MtfGraph) training = training_graph(pricing, error);
    g_autoptr(MtfStageSplit) split = training != NULL ? mtf_stage_split(training, error) : NULL;
    if (split == NULL)
        return false;
    list_backward(training, parts);
    parts->graphs = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_graph_free);
    g_ptr_array_set_size(parts->graphs, pricing->units->kinds);
    for (int u = 0; u < pricing->units->units; u++) {
        MtfGraph **part = (MtfGraph **)&parts->graphs->pdata[pricing->units->kind[u]];
        if (*part != NULL)
            continue;
        *part = mtf_graph_copy(g_ptr_array_index(split->graphs, u));
        if (pricing->variant.fuses)
            mtf_graph_mark_near(*part, pricing->variant.framework);
    }
    return true;
}

static GArray *list_meshes(const MtfUnitPricing *pricing, const UnitParts *parts) {
    GArray *meshes = g_array_new(FALSE, FALSE, sizeof(MeshPrices));
    for (guint i = 0; i < pricing->meshes->len; i++) {
        MeshPrices prices = { .pricing = pricing,
                              .parts = parts,
                              .mesh = g_array_index(pricing->meshes, MtfMesh, i) };
        g_array_append_val(meshes, prices);
    }
    return meshes;
}

/* Ways that every unit has. */
static void keep_ways(const MeshPrices *prices, GPtrArray *ways) {
    for (int style = 0; style < style_count(&prices->mesh); style++) {
        MtfUnitWay *way = prices->way[style];
        bool whole = way != NULL;
        for (int kind = 0; whole && kind < prices->pricing->units->kinds; kind++)
            whole = way->price[kind].known;
        if (whole)
            g_ptr_array_add(ways, way);
        else if (way != NULL)
            way_free(way);
    }
}

GPtrArray *mtf_unit_prices(const MtfUnitPricing *pricing, GError **error) {
    g_auto(UnitParts) parts = { 0 };
    if (!find_parts(pricing, &parts, error))
        return NULL;
    g_autoptr(GArray) meshes = list_meshes(pricing, &parts);
    mtf_in_parallel((int)meshes->len, price_mesh, meshes);
    GPtrArray *ways = g_ptr_array_new_with_free_func(way_free);
    for (guint i = 0; i < meshes->len; i++) {
        MeshPrices *prices = &g_array_index(meshes, MeshPrices, i);
        keep_ways(prices, ways);
        g_free(prices->way);
    }
    return ways;
}
