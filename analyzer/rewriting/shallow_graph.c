// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/shallow_graph.h"

#include "analyzer/training/live_graph.h"
#include "layouts/layers/layers.h"

typedef struct {
    MtfGraph *graph;
    int layers; /* that are left of a block */
} Cut;

static int count_of(const Cut *cut, MtfLayer layer) {
    return layer.block == 0 ? 0
                            : g_array_index(cut->graph->repeats, MtfRepeat, layer.block - 1).count;
}

/* The last layer before the cut, and the first behind it. */
static int last_before(const Cut *cut) {
    return cut->layers / 2 - 1;
}

static int first_behind(const Cut *cut, MtfLayer layer) {
    return count_of(cut, layer) - (cut->layers - cut->layers / 2);
}

static bool goes(const Cut *cut, MtfLayer layer) {
    return count_of(cut, layer) > cut->layers && layer.iteration > last_before(cut) &&
           layer.iteration < first_behind(cut, layer);
}

/* What the last layer before the cut has in the place of `tensor`, which goes; -1 where that has none of its
 * shape. */
static int stand_in(const Cut *cut, int tensor) {
    const MtfTensor *gone = mtf_graph_tensor(cut->graph, tensor);
    g_autofree char *name = mtf_layer_twin(cut->graph, gone->name, gone->layer, last_before(cut));
    int other = mtf_graph_find_tensor(cut->graph, name);
    if (other < 0 || other == tensor)
        return -1;
    const MtfTensor *left = mtf_graph_tensor(cut->graph, other);
    bool fits = left->dtype == gone->dtype && mtf_shape_equal(&left->shape, &gone->shape);
    return fits && left->layer.iteration == last_before(cut) ? other : -1;
}

/* Whether `op` may read the stand-in: it belongs to the layer behind the one that goes. */
static bool is_next(const MtfOperation *op, MtfLayer gone) {
    return op->layer.block == gone.block && op->layer.iteration == gone.iteration + 1;
}

/* Lets an operation that stays read nothing that goes; false where it cannot. */
static bool read_across(const Cut *cut, MtfOperation *op) {
    for (int k = 0; k < op->n_inputs; k++) {
        MtfLayer layer = mtf_graph_tensor(cut->graph, op->inputs[k])->layer;
        if (!goes(cut, layer))
            continue;
        int other = is_next(op, layer) ? stand_in(cut, op->inputs[k]) : -1;
        if (other < 0)
            return false;
        op->inputs[k] = other;
    }
    return true;
}

/* Published files need not keep what goes. */
static void forget_stored(const Cut *cut) {
    for (int t = 0; t < (int)cut->graph->tensors->len; t++) {
        MtfTensor *tensor = mtf_graph_tensor(cut->graph, t);
        if (goes(cut, tensor->layer))
            g_clear_pointer(&tensor->stored, g_free);
    }
}

static bool has_deep_block(const Cut *cut) {
    for (guint i = 0; i < cut->graph->repeats->len; i++)
        if (g_array_index(cut->graph->repeats, MtfRepeat, i).count > cut->layers)
            return true;
    return false;
}

MtfGraph *mtf_graph_shallow(const MtfGraph *graph, int layers) {
    g_autoptr(MtfGraph) copy = mtf_graph_copy(graph);
    Cut cut = { copy, layers };
    if (graph->loss < 0 || graph->updates->len > 0 || !has_deep_block(&cut))
        return NULL;
    for (int i = 0; i < (int)copy->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(copy, i);
        if (!goes(&cut, op->layer) && !read_across(&cut, op))
            return NULL;
    }
    forget_stored(&cut);
    mtf_graph_drop_dead(copy);
    return g_steal_pointer(&copy);
}

int mtf_graph_shallow_layer(const MtfGraph *graph, int layers, MtfLayer layer) {
    int count =
        layer.block == 0 ? 0 : g_array_index(graph->repeats, MtfRepeat, layer.block - 1).count;
    int i = layer.iteration;
    if (count <= layers || i == 0 || i == count - 1)
        return i;
    int place = 1 + (int)((int64_t)(i - 1) * (layers - 2) / (count - 2));
    return place < layers / 2 ? place : place + count - layers;
}
