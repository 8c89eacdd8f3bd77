// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/deep_layout.h"

#include "analyzer/rewriting/shallow_graph.h"
#include "layouts/layers/layers.h"

struct MtfDeepening {
    const MtfGraph *deep, *shallow;
    int layers;
    int *tensors,
        *operations; /* for each of the deep graph what stands for it in the shallow one */
};

/* The name in the shallow graph of what is called `name` in the deep one. Free with g_free. */
static char *name_in_shallow(const MtfDeepening *d, const char *name, MtfLayer layer) {
    int iteration = mtf_graph_shallow_layer(d->deep, d->layers, layer);
    return iteration != layer.iteration ? mtf_layer_twin(d->deep, name, layer, iteration)
                                        : g_strdup(name);
}

static bool find_tensor(const MtfDeepening *d, int tensor) {
    const MtfTensor *own = mtf_graph_tensor(d->deep, tensor);
    g_autofree char *name = name_in_shallow(d, own->name, own->layer);
    int other = mtf_graph_find_tensor(d->shallow, name);
    d->tensors[tensor] = other;
    return other >= 0 && mtf_shape_equal(&own->shape, &mtf_graph_tensor(d->shallow, other)->shape);
}

static bool find_operation(const MtfDeepening *d, int operation) {
    const MtfOperation *own = mtf_graph_operation(d->deep, operation);
    g_autofree char *name = name_in_shallow(d, own->name, own->layer);
    int other = mtf_graph_find_operation(d->shallow, name);
    d->operations[operation] = other;
    return other >= 0 && mtf_graph_operation(d->shallow, other)->kind == own->kind;
}

static bool dimensions_equal(const MtfGraph *a, const MtfGraph *b) {
    bool equal = a->dimensions->len == b->dimensions->len;
    for (int i = 0; equal && i < (int)a->dimensions->len; i++)
        equal = g_str_equal(mtf_graph_dimension(a, i)->name, mtf_graph_dimension(b, i)->name);
    return equal;
}

static bool find_all(const MtfDeepening *d) {
    for (int t = 0; t < (int)d->deep->tensors->len; t++)
        if (!find_tensor(d, t))
            return false;
    for (int i = 0; i < (int)d->deep->operations->len; i++)
        if (!find_operation(d, i))
            return false;
    return true;
}

MtfDeepening *mtf_deepening_new(const MtfGraph *deep, const MtfGraph *shallow, int layers) {
    if (!dimensions_equal(deep, shallow))
        return NULL;
    g_autoptr(MtfDeepening) d = g_new0(MtfDeepening, 1);
    *d = (MtfDeepening){ deep, shallow, layers, g_new(int, deep->tensors->len + 1),
                         g_new(int, deep->operations->len + 1) };
    return find_all(d) ? g_steal_pointer(&d) : NULL;
}

void mtf_deepening_free(MtfDeepening *deepening) {
    if (deepening == NULL)
        return;
    g_free(deepening->tensors);
    g_free(deepening->operations);
    g_free(deepening);
}

static void take_gathered_copies(const MtfLayout *from, int other, MtfLayout *to, int tensor) {
    for (int phase = 0; from->gathered_copies != NULL && phase < MTF_PHASES; phase++) {
        const MtfGatheredCopy *copy = &from->gathered_copies[other * MTF_PHASES + phase];
        if (copy->given)
            mtf_layout_set_gathered_copy(to, tensor, (MtfPhase)phase, &copy->placement);
    }
}

MtfLayout *mtf_deepening_layout(const MtfDeepening *d, const MtfLayout *layout) {
    g_autoptr(MtfLayout) to = mtf_layout_new(d->deep, &layout->mesh);
    to->execution.stage = layout->execution.stage;
    for (int t = 0; t < to->n_tensors; t++) {
        to->tensors[t] = layout->tensors[d->tensors[t]];
        take_gathered_copies(layout, d->tensors[t], to, t);
    }
    for (int i = 0; i < to->n_operations; i++)
        to->operations[i] = layout->operations[d->operations[i]];
    return mtf_layout_check(d->deep, to, NULL) ? g_steal_pointer(&to) : NULL;
}

int mtf_deepening_operation(const MtfDeepening *deepening, int operation) {
    g_autoptr(GArray) stood_for = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < (int)deepening->deep->operations->len; i++)
        if (deepening->operations[i] == operation)
            g_array_append_val(stood_for, i);
    return stood_for->len > 0 ? g_array_index(stood_for, int, stood_for->len / 2) : 0;
}
