// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/kernel_measures.h"

#include "layouts/graph/random.h"
#include "layouts/kernel_work/kernel_scratch.h"
#include "layouts/kernel_work/row_length.h"

#include <string.h>

/* ---- Alike operations ------------------------------------------------------------------------ */

static const MtfTensor *operand(const MtfAlikeOperations *alike, int k) {
    const MtfOperation *op = alike->operation;
    return mtf_graph_tensor(alike->graph,
                            k < op->n_inputs ? op->inputs[k] : op->outputs[k - op->n_inputs]);
}

static guint alike_hash(gconstpointer key) {
    const MtfAlikeOperations *alike = key;
    const MtfOperation *op = alike->operation;
    guint hash = (guint)op->kind;
    for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
        const MtfTensor *tensor = operand(alike, k);
        hash = 31 * hash + (guint)tensor->dtype;
        for (int i = 0; i < tensor->shape.rank; i++)
            hash = 31 * hash + (guint)tensor->shape.dims[i];
    }
    return hash;
}

/* Whether two operations are given the same of their inputs more than once. */
static bool repeat_alike(const MtfOperation *a, const MtfOperation *b) {
    for (int k = 1; k < a->n_inputs; k++)
        for (int j = 0; j < k; j++)
            if ((a->inputs[j] == a->inputs[k]) != (b->inputs[j] == b->inputs[k]))
                return false;
    return true;
}

/* Attributes but for strings, which say nothing of work and stand at the end. */
static bool attributes_alike(const MtfOperation *a, const MtfOperation *b) {
    return memcmp(&a->attributes, &b->attributes, offsetof(MtfAttributes, divisors)) == 0;
}

static gboolean alike_equal(gconstpointer one, gconstpointer other) {
    const MtfAlikeOperations *a = one, *b = other;
    const MtfOperation *p = a->operation, *q = b->operation;
    if (p->kind != q->kind || p->n_inputs != q->n_inputs || p->n_outputs != q->n_outputs ||
        p->phase != q->phase || p->loop != q->loop || !attributes_alike(p, q) ||
        !repeat_alike(p, q))
        return false;
    for (int k = 0; k < p->n_inputs + p->n_outputs; k++) {
        const MtfTensor *s = operand(a, k), *t = operand(b, k);
        if (s->dtype != t->dtype || !mtf_shape_equal(&s->shape, &t->shape))
            return false;
    }
    return true;
}

static void alike_free(gpointer data) {
    MtfAlikeOperations *alike = data;
    if (alike->measures != NULL)
        g_array_unref(alike->measures);
    g_free(alike);
}

void mtf_kernel_measures_init(MtfKernelMeasures *measures, const MtfGraph *graph,
                              const MtfMesh *mesh, bool keeps) {
    *measures = (MtfKernelMeasures){ .graph = graph, .mesh = mesh };
    if (keeps)
        measures->known = g_hash_table_new_full(alike_hash, alike_equal, alike_free, NULL);
}

void mtf_kernel_measures_clear(MtfKernelMeasures *measures) {
    g_clear_pointer(&measures->known, g_hash_table_unref);
}

MtfAlikeOperations *mtf_kernel_measures_of(MtfKernelMeasures *measures, int operation) {
    MtfAlikeOperations *alike = &measures->scratch;
    alike->graph = measures->graph;
    alike->operation = mtf_graph_operation(measures->graph, operation);
    if (measures->known != NULL) {
        MtfAlikeOperations *known = g_hash_table_lookup(measures->known, alike);
        if (known != NULL)
            return known;
        alike = g_memdup2(alike, sizeof *alike);
        alike->measures = g_array_new(FALSE, FALSE, sizeof(MtfKernelMeasure));
        g_hash_table_add(measures->known, alike);
    }
    mtf_operation_iteration(measures->graph, operation, &alike->iteration);
    return alike;
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* The largest local size of every index of the iteration space, and their product. */
static double local_points(const MtfMesh *mesh, const MtfIteration *iteration,
                           const MtfStrategy *strategy, int64_t *sizes) {
    double points = 1;
    for (int i = 0; i < iteration->n; i++) {
        int64_t parts = 1;
        for (int a = 0; a < mesh->n_axes; a++)
            if (strategy->axis[a] == i)
                parts *= mesh->axes[a].size;
        sizes[i] = (iteration->index[i].size + parts - 1) / parts;
        points *= (double)sizes[i];
    }
    return points;
}

/* Drawing attention's dropout takes as long as this many flops of its products for each score:
 * 4 * 8 heads of 512 queries and keys, 32 to 128 features, took 16 to 23 ms more on one core of an
 * EPYC, going forward and backward, of 52 to 183. */
#define DRAWING_FLOPS 100

static void add_drawing(const MtfGraph *graph, const MtfOperation *op, MtfKernelMeasure *measure) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (row->products == MTF_PRODUCTS_NONE || !mtf_operation_is_random(op))
        return;
    double features = (double)mtf_graph_size(graph, op->attributes.dimension);
    double grows = 1 + DRAWING_FLOPS / (row->flops * features);
    measure->flops *= grows;
    measure->products.calls *= grows;
}

/* A convolution takes c0 + c1 flop + c2 (flop / channels read + flop / channels made): to start, to
 * multiply, and to read and write what is multiplied. So it goes by rows whose length is the harmonic mean of
 * both numbers of channels. Rows of 256 and 32 elements, which are measured, are 128 channels and 16,
 * whole vectors. */
static double row_length(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                         const int64_t *sizes, const MtfProductWork *work) {
    return work->channels[0] > 0
               ? MTF_CHANNEL_ELEMENTS * 2 / (1 / work->channels[0] + 1 / work->channels[1])
               : mtf_operation_row_length(graph, operation, iteration, sizes);
}

static MtfKernelMeasure measure_kernel(const MtfKernelMeasures *measures, int operation,
                                       const MtfIteration *iteration, const MtfStrategy *strategy) {
    const MtfGraph *graph = measures->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    int64_t sizes[MTF_MAX_INDEXES];
    double points = local_points(measures->mesh, iteration, strategy, sizes) *
                    mtf_operation_share(graph, operation, iteration, sizes);
    int products = row->products == MTF_PRODUCTS_EINSUM ? MAX(1, op->n_inputs - 1) : 1;
    MtfKernelMeasure measure = { .strategy = *strategy, .flops = row->flops * points * products };
    measure.multiply_adds = row->kernel_class == MTF_CLASS_MATMUL ? measure.flops / 2 : 0;
    measure.products = mtf_operation_product_work(graph, operation, iteration, sizes);
    add_drawing(graph, op, &measure);
    measure.block_side = mtf_operation_block_side(graph, operation, iteration, sizes);
    measure.row_length = row_length(graph, operation, iteration, sizes, &measure.products);
    measure.scratch_bytes = mtf_operation_scratch_bytes(graph, operation, iteration, sizes);
    return measure;
}

MtfKernelMeasure mtf_kernel_measures_find(MtfKernelMeasures *measures, MtfAlikeOperations *alike,
                                          int operation, const MtfStrategy *strategy) {
    GArray *list = alike->measures;
    for (guint i = 0; list != NULL && i < list->len; i++)
        if (mtf_strategy_equal(&g_array_index(list, MtfKernelMeasure, i).strategy, strategy))
            return g_array_index(list, MtfKernelMeasure, i);
    MtfKernelMeasure measure = measure_kernel(measures, operation, &alike->iteration, strategy);
    if (list != NULL)
        g_array_append_val(list, measure);
    return measure;
}
