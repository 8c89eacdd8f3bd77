// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/operation_alone.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/window.h"

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
void mtf_operation_append_facts(GString *text, const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const int facts[] = { (int)op->kind,
                          mtf_operation_times(graph, operation),
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
