// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/operation_alone.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/window.h"

#include <inttypes.h>

static int stand_in(MtfOperationAlone *alone, const MtfGraph *graph, const MtfOperation *op,
                    int tensor) {
    for (guint i = 0; i < alone->tensors->len; i++)
        if (g_array_index(alone->tensors, int, i) == tensor)
            return (int)i;
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    g_array_append_val(alone->tensors, tensor);
    int copy =
        mtf_graph_add_input(alone->graph, t->name, &t->shape, t->dtype, MTF_FEED_FEATURES, NULL);
    mtf_graph_tensor(alone->graph, copy)->is_anew =
        op->loop > 0 && mtf_operation_reads_anew(graph, op, tensor);
    return copy;
}

static void add_updates(MtfOperationAlone *alone, const MtfGraph *graph, const MtfOperation *op,
                        const int *updated) {
    for (int k = 0; k < op->n_outputs; k++)
        if (updated[op->outputs[k]] >= 0)
            mtf_graph_add_update(alone->graph, stand_in(alone, graph, op, updated[op->outputs[k]]),
                                 mtf_graph_operation(alone->graph, 0)->outputs[k]);
}

static void add_operation(MtfOperationAlone *alone, const MtfGraph *graph, const MtfOperation *op) {
    g_autofree int *inputs = g_new(int, (gsize)op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++)
        inputs[k] = stand_in(alone, graph, op, op->inputs[k]);
    const MtfTensor *output = mtf_graph_tensor(graph, op->outputs[0]);
    MtfNewOperation copy = { .name = op->name,
                             .kind = op->kind,
                             .phase = op->phase,
                             .loop = op->loop,
                             .origin = op->origin,
                             .of = op->of,
                             .n_inputs = op->n_inputs,
                             .inputs = inputs,
                             .shape = &output->shape,
                             .has_dtype = mtf_operation_needs_dtype(graph, op),
                             .dtype = output->dtype,
                             .attributes = op->attributes };
    int first = mtf_graph_add_operation(alone->graph, &copy, NULL);
    g_assert(first == (int)alone->tensors->len);
    MtfOperation *added = mtf_graph_operation(alone->graph, 0);
    added->near_inputs = op->near_inputs;
    added->near_outputs = op->near_outputs;
    added->near_redone = op->near_redone;
    added->near_biased = op->near_biased;
    added->eager = op->eager;
    g_array_append_vals(alone->tensors, op->outputs, (guint)op->n_outputs);
}

void mtf_operation_alone_init(MtfOperationAlone *alone, const MtfGraph *graph, int operation,
                              const int *updated) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    alone->graph = mtf_graph_new("alone");
    alone->graph->logit_bytes = graph->logit_bytes;
    alone->tensors = g_array_new(FALSE, FALSE, sizeof(int));
    mtf_graph_copy_dimensions(alone->graph, graph);
    for (guint i = 0; i < graph->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(graph->loops, MtfLoop, i);
        mtf_graph_add_loop(alone->graph, loop->name, loop->dimension, loop->reverse);
    }
    add_operation(alone, graph, op);
    add_updates(alone, graph, op, updated);
}

void mtf_operation_alone_clear(MtfOperationAlone *alone) {
    mtf_graph_free(alone->graph);
    g_array_unref(alone->tensors);
}

/* Five bits a letter, the lowest first. */
void mtf_facts_append(GString *text, const int *numbers, int n) {
    for (int i = 0; i < n; i++) {
        for (unsigned rest = (unsigned)numbers[i]; rest != 0; rest >>= 5)
            g_string_append_c(text, (char)('@' + (rest & 31)));
        g_string_append_c(text, ' ');
    }
}

/* All that the row has but names of random streams, which are another in every layer. */
static void append_attributes(GString *text, const MtfOperation *op) {
    const MtfAttributeSpec *spec = mtf_operation_row(op->kind)->attributes;
    for (; spec->name != NULL; spec++) {
        const void *slot = G_STRUCT_MEMBER_P(&op->attributes, (glong)spec->offset);
        if (spec->type == MTF_ATTRIBUTE_DIMENSION)
            mtf_facts_append(text, slot, 1);
        else if (spec->type == MTF_ATTRIBUTE_NUMBER)
            g_string_append_printf(text, " %a", *(const double *)slot);
        else if (spec->type == MTF_ATTRIBUTE_WINDOWS)
            mtf_windows_append(text, &op->attributes);
    }
}

/* A software profile prices a recomputed operation as one of the forward pass. */
static void append_facts(GString *text, const MtfOperation *op, int times) {
    const int facts[] = { (int)op->kind,
                          times,
                          (int)op->near_inputs,
                          (int)op->near_outputs,
                          op->near_redone,
                          op->near_biased,
                          (int)op->eager.skipped[0],
                          (int)op->eager.skipped[1],
                          (int)op->eager.wide[0],
                          (int)op->eager.wide[1],
                          (int)op->eager.cast[0],
                          (int)op->eager.cast[1],
                          op->eager.joined,
                          op->eager.over_batch,
                          (int)op->phase,
                          op->origin == MTF_ORIGIN_CLONE };
    mtf_facts_append(text, facts, (int)G_N_ELEMENTS(facts));
    append_attributes(text, op);
}

void mtf_operation_append_facts(GString *text, const MtfGraph *graph, int operation) {
    append_facts(text, mtf_graph_operation(graph, operation),
                 mtf_operation_times(graph, operation));
}

/* ---- By the numbers of its own dimensions ------------------------------------------------------ */

static int compare_ids(gconstpointer left, gconstpointer right) {
    return *(const int *)left - *(const int *)right;
}

int mtf_operation_alone_number(const GArray *dimensions, int dimension) {
    guint number = 0;
    bool found =
        g_array_binary_search((GArray *)(gpointer)dimensions, &dimension, compare_ids, &number);
    g_assert(found);
    return (int)number;
}

/* Notes a dimension that an operation names; none, and one that is noted, not. */
static void add_dimension(int *dimension, void *data) {
    GArray *all = data;
    guint at = 0;
    while (at < all->len && g_array_index(all, int, at) < *dimension)
        at++;
    if (*dimension >= 0 && (at == all->len || g_array_index(all, int, at) != *dimension))
        g_array_insert_val(all, at, *dimension);
}

/* Calls `visit` with each dimension that attributes name, or -1. */
static void visit_attributes(MtfOperation *op, void (*visit)(int *dimension, void *data),
                             void *data) {
    const MtfAttributeSpec *spec = mtf_operation_row(op->kind)->attributes;
    for (; spec->name != NULL; spec++)
        if (spec->type == MTF_ATTRIBUTE_DIMENSION)
            visit(G_STRUCT_MEMBER_P(&op->attributes, (glong)spec->offset), data);
    for (int w = 0; w < op->attributes.n_windows; w++) {
        visit(&op->attributes.windows[w].from, data);
        visit(&op->attributes.windows[w].to, data);
        visit(&op->attributes.windows[w].kernel, data);
    }
}

static const MtfLoop *loop_of(const MtfGraph *graph, const MtfOperation *op) {
    return op->loop > 0 ? &g_array_index(graph->loops, MtfLoop, op->loop - 1) : NULL;
}

GArray *mtf_operation_alone_dimensions(const MtfOperationAlone *alone) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(int));
    MtfOperation op = *mtf_graph_operation(alone->graph, 0);
    const MtfLoop *loop = loop_of(alone->graph, &op);
    int looped = loop != NULL ? loop->dimension : -1;
    for (int t = 0; t < (int)alone->graph->tensors->len; t++) {
        MtfShape shape = mtf_graph_tensor(alone->graph, t)->shape;
        for (int i = 0; i < shape.rank; i++)
            add_dimension(&shape.dims[i], all);
    }
    visit_attributes(&op, add_dimension, all);
    add_dimension(&looped, all);
    return all;
}

static void renumber(int *dimension, void *data) {
    *dimension = *dimension >= 0 ? mtf_operation_alone_number(data, *dimension) : -1;
}

static void append_dimension(GString *text, const MtfDimension *dimension) {
    g_string_append_printf(text, "%" PRId64 " %" PRId64 " %" PRId64 " %d,", dimension->size,
                           dimension->unpadded, dimension->step_size, dimension->even);
}

static void append_operand(GString *text, const MtfTensor *tensor, GArray *dimensions) {
    const int facts[] = { (int)tensor->dtype, (int)tensor->source, tensor->is_anew,
                          tensor->shape.rank };
    mtf_facts_append(text, facts, (int)G_N_ELEMENTS(facts));
    for (int i = 0; i < tensor->shape.rank; i++) {
        int number = mtf_operation_alone_number(dimensions, tensor->shape.dims[i]);
        mtf_facts_append(text, &number, 1);
    }
}

char *mtf_operation_alone_text(const MtfOperationAlone *alone, const GArray *dimensions) {
    const MtfGraph *graph = alone->graph;
    MtfOperation op = *mtf_graph_operation(graph, 0);
    const MtfLoop *loop = loop_of(graph, &op);
    GArray *own = (GArray *)(gpointer)dimensions;
    GString *text = g_string_new(NULL);
    visit_attributes(&op, renumber, own);
    append_facts(text, &op, mtf_operation_times(graph, 0));
    for (guint d = 0; d < own->len; d++)
        append_dimension(text, mtf_graph_dimension(graph, g_array_index(own, int, d)));
    for (int t = 0; t < (int)graph->tensors->len; t++)
        append_operand(text, mtf_graph_tensor(graph, t), own);
    mtf_facts_append(text, op.inputs, op.n_inputs);
    mtf_facts_append(text, op.outputs, op.n_outputs);
    for (guint i = 0; i < graph->updates->len; i++)
        mtf_facts_append(text, (const int *)&g_array_index(graph->updates, MtfUpdate, i), 2);
    g_string_append_printf(text, "|%a %d %d", graph->logit_bytes,
                           loop != NULL ? mtf_operation_alone_number(own, loop->dimension) : -1,
                           loop != NULL && loop->reverse);
    return g_string_free(text, FALSE);
}
