// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/deep_layout.h"

#include "analyzer/rewriting/shallow_graph.h"
#include "layouts/layers/layers.h"

typedef struct {
    const MtfGraph *deep, *shallow;
    int layers;
    const MtfLayout *from;
    MtfLayout *to;
} Deepening;

/* The name in the shallow graph of what is called `name` in the deep one. Free with g_free. */
static char *name_in_shallow(const Deepening *d, const char *name, MtfLayer layer) {
    int iteration = mtf_graph_shallow_layer(d->deep, d->layers, layer);
    return iteration != layer.iteration ? mtf_layer_twin(d->deep, name, layer, iteration)
                                        : g_strdup(name);
}

static void take_gathered_copies(const Deepening *d, int tensor, int other) {
    for (int phase = 0; d->from->gathered_copies != NULL && phase < MTF_PHASES; phase++) {
        const MtfGatheredCopy *copy = &d->from->gathered_copies[other * MTF_PHASES + phase];
        if (copy->given)
            mtf_layout_set_gathered_copy(d->to, tensor, (MtfPhase)phase, &copy->placement);
    }
}

static bool deepen_tensor(const Deepening *d, int tensor) {
    const MtfTensor *own = mtf_graph_tensor(d->deep, tensor);
    g_autofree char *name = name_in_shallow(d, own->name, own->layer);
    int other = mtf_graph_find_tensor(d->shallow, name);
    if (other < 0 || !mtf_shape_equal(&own->shape, &mtf_graph_tensor(d->shallow, other)->shape))
        return false;
    d->to->tensors[tensor] = d->from->tensors[other];
    take_gathered_copies(d, tensor, other);
    return true;
}

static bool deepen_operation(const Deepening *d, int operation) {
    const MtfOperation *own = mtf_graph_operation(d->deep, operation);
    g_autofree char *name = name_in_shallow(d, own->name, own->layer);
    int other = mtf_graph_find_operation(d->shallow, name);
    if (other < 0 || mtf_graph_operation(d->shallow, other)->kind != own->kind)
        return false;
    d->to->operations[operation] = d->from->operations[other];
    return true;
}

static bool dimensions_equal(const MtfGraph *a, const MtfGraph *b) {
    bool equal = a->dimensions->len == b->dimensions->len;
    for (int i = 0; equal && i < (int)a->dimensions->len; i++)
        equal = g_str_equal(mtf_graph_dimension(a, i)->name, mtf_graph_dimension(b, i)->name);
    return equal;
}

static bool deepen_all(const Deepening *d) {
    for (int t = 0; t < (int)d->deep->tensors->len; t++)
        if (!deepen_tensor(d, t))
            return false;
    for (int i = 0; i < (int)d->deep->operations->len; i++)
        if (!deepen_operation(d, i))
            return false;
    return mtf_layout_check(d->deep, d->to, NULL);
}

MtfLayout *mtf_layout_deepen(const MtfGraph *deep, const MtfGraph *shallow, int layers,
                             const MtfLayout *layout) {
    if (!dimensions_equal(deep, shallow))
        return NULL;
    g_autoptr(MtfLayout) to = mtf_layout_new(deep, &layout->mesh);
    to->execution.stage = layout->execution.stage;
    Deepening deepening = { deep, shallow, layers, layout, to };
    return deepen_all(&deepening) ? g_steal_pointer(&to) : NULL;
}
