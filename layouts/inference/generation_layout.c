// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/inference/generation_layout.h"

#include "layouts/inference/generation_graph.h"

#include <string.h>

typedef struct {
    const MtfGraph *graph, *from;
    const MtfLayout *before;
    MtfLayout *layout;
    int context; /* the dimension along which caches are never split; -1: none */
} Carrying;

/* What of a placement suits a tensor of the new graph: dimensions that it has, and no partial sums. */
static MtfPlacement carried(const Carrying *c, const MtfTensor *tensor,
                            const MtfPlacement *before) {
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < c->layout->mesh.n_axes; a++)
        if (before->axis[a] >= 0 && before->axis[a] != c->context &&
            mtf_shape_find(&tensor->shape, before->axis[a]) >= 0)
            placement.axis[a] = before->axis[a];
    return placement;
}

/* A variable lies as it did, dimension by dimension, whatever they are called here. */
static MtfPlacement carried_variable(const Carrying *c, const MtfTensor *tensor, int old) {
    const MtfShape *shape = &mtf_graph_tensor(c->from, old)->shape;
    const MtfPlacement *before = &c->before->tensors[old];
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < c->layout->mesh.n_axes; a++)
        if (before->axis[a] >= 0)
            placement.axis[a] = (int16_t)tensor->shape.dims[mtf_shape_find(shape, before->axis[a])];
    return placement;
}

static void place_sources(const Carrying *c) {
    for (int t = 0; t < (int)c->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(c->graph, t);
        int old = mtf_graph_find_tensor(c->from, tensor->name);
        c->layout->tensors[t] = mtf_placement_replicated();
        if (old >= 0 && tensor->source == MTF_SOURCE_VARIABLE)
            c->layout->tensors[t] = carried_variable(c, tensor, old);
        else if (old >= 0 && tensor->feed >= MTF_FEEDS)
            c->layout->tensors[t] = carried(c, tensor, &c->before->tensors[old]);
    }
}

/* A strategy that splits what the old one split, where that may be split here. */
static MtfStrategy strategy_of(const Carrying *c, int operation) {
    const MtfOperation *op = mtf_graph_operation(c->graph, operation);
    int old = mtf_graph_find_operation(c->from, op->name);
    MtfStrategy strategy = mtf_strategy_duplicated();
    MtfIteration now, then;
    if (old < 0)
        return strategy;
    mtf_operation_iteration(c->graph, operation, &now);
    mtf_operation_iteration(c->from, old, &then);
    const MtfStrategy *before = &c->before->operations[old];
    for (int a = 0; a < c->layout->mesh.n_axes; a++) {
        int choice = before->axis[a];
        for (int i = 0; choice >= 0 && i < now.n; i++)
            if (now.index[i].dim == then.index[choice].dim && !now.index[i].whole &&
                now.index[i].dim != c->context)
                strategy.axis[a] = (int8_t)i;
    }
    if (!mtf_strategy_check(c->graph, &c->layout->mesh, operation, &strategy, NULL))
        strategy = mtf_strategy_duplicated();
    return strategy;
}

/* A result is kept as it is made, what is partial summed up. */
static void keep_results(const Carrying *c, int operation) {
    const MtfOperation *op = mtf_graph_operation(c->graph, operation);
    MtfIteration iteration;
    mtf_operation_iteration(c->graph, operation, &iteration);
    for (int k = 0; k < op->n_outputs; k++) {
        MtfPlacement made = mtf_strategy_output(c->graph, operation, &iteration,
                                                &c->layout->operations[operation], k);
        c->layout->tensors[op->outputs[k]] =
            carried(c, mtf_graph_tensor(c->graph, op->outputs[k]), &made);
    }
}

/* A variable of this graph alone lies as its next value does. */
static void follow_updates(const Carrying *c) {
    for (guint i = 0; i < c->graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(c->graph->updates, MtfUpdate, i);
        c->layout->tensors[update->variable] = c->layout->tensors[update->value];
    }
}

MtfLayout *mtf_generation_layout(const MtfGraph *graph, const MtfGraph *from,
                                 const MtfLayout *layout) {
    Carrying c = { graph, from, layout, mtf_layout_new(graph, &layout->mesh),
                   mtf_generation_context(graph) };
    place_sources(&c);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        c.layout->operations[i] = strategy_of(&c, i);
        keep_results(&c, i);
    }
    follow_updates(&c);
    return c.layout;
}
