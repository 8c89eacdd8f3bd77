// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/graph_likeness.h"

#include "layouts/graph/microbatches.h"

#include <string.h>

static bool are_dimensions_alike(const MtfGraph *a, const MtfGraph *b) {
    if (a->dimensions->len != b->dimensions->len)
        return false;
    for (int d = 0; d < (int)a->dimensions->len; d++)
        if (mtf_graph_size(a, d) != mtf_graph_size(b, d) ||
            mtf_graph_step_size(a, d) != mtf_graph_step_size(b, d))
            return false;
    return true;
}

static bool are_tensors_alike(const MtfTensor *a, const MtfTensor *b) {
    bool alike = a->dtype == b->dtype && a->source == b->source && a->memory == b->memory &&
                 a->feed == b->feed && a->is_sent == b->is_sent && a->producer == b->producer &&
                 a->shape.rank == b->shape.rank;
    for (int i = 0; alike && i < a->shape.rank; i++)
        alike = a->shape.dims[i] == b->shape.dims[i];
    return alike;
}

/* Attributes are numbers but for two names, which say nothing of what an operation costs. */
static bool are_attributes_alike(const MtfAttributes *a, const MtfAttributes *b) {
    MtfAttributes x = *a, y = *b;
    x.schedule = y.schedule = x.stream = y.stream = NULL;
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool are_operations_alike(const MtfOperation *a, const MtfOperation *b) {
    gsize inputs = sizeof *a->inputs * (gsize)a->n_inputs;
    gsize outputs = sizeof *a->outputs * (gsize)a->n_outputs;
    return a->kind == b->kind && a->phase == b->phase && a->n_inputs == b->n_inputs &&
           a->n_outputs == b->n_outputs &&
           (inputs == 0 || memcmp(a->inputs, b->inputs, inputs) == 0) &&
           memcmp(a->outputs, b->outputs, outputs) == 0 &&
           are_attributes_alike(&a->attributes, &b->attributes);
}

static bool are_updates_alike(const MtfGraph *a, const MtfGraph *b) {
    if (a->updates->len != b->updates->len)
        return false;
    for (guint i = 0; i < a->updates->len; i++) {
        const MtfUpdate *x = &g_array_index(a->updates, MtfUpdate, i);
        const MtfUpdate *y = &g_array_index(b->updates, MtfUpdate, i);
        if (x->variable != y->variable || x->value != y->value)
            return false;
    }
    return true;
}

bool mtf_graphs_are_alike(const MtfGraph *a, const MtfGraph *b) {
    bool alike = are_dimensions_alike(a, b) && a->tensors->len == b->tensors->len &&
                 a->operations->len == b->operations->len && a->loss == b->loss &&
                 are_updates_alike(a, b);
    for (int t = 0; alike && t < (int)a->tensors->len; t++)
        alike = are_tensors_alike(mtf_graph_tensor(a, t), mtf_graph_tensor(b, t));
    for (int i = 0; alike && i < (int)a->operations->len; i++)
        alike = are_operations_alike(mtf_graph_operation(a, i), mtf_graph_operation(b, i));
    return alike;
}
