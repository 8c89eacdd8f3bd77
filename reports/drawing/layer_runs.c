// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/drawing/layer_runs.h"

#include "layouts/layers/layers.h"

struct MtfLayerRuns {
    const MtfGraph *graph;
    const MtfLayout *layout;
    bool forward; /* then only results of the forward pass count */
    GArray *runs; /* MtfLayerRun */
};

static const MtfRepeat *repeat_at(const MtfLayerRuns *layers_found, int repeat) {
    return &g_array_index(layers_found->graph->repeats, MtfRepeat, repeat);
}

/* Adds one line on where a tensor is to its layer's description; `name` lacks the layer. */
static void describe_tensor(const MtfLayerRuns *layers_found, int tensor, const char *name,
                            GString *description) {
    const MtfLayout *layout = layers_found->layout;
    g_autofree char *placement =
        mtf_placement_format(layers_found->graph, &layout->mesh, &layout->tensors[tensor]);
    g_string_append_printf(description, "%s %s", name, placement);
    int producer = mtf_graph_tensor(layers_found->graph, tensor)->producer;
    for (int a = 0; producer >= 0 && a < layout->mesh.n_axes; a++)
        g_string_append_printf(description, " %d", layout->operations[producer].axis[a]);
    g_string_append_c(description, '\n');
}

static bool is_forward(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    return producer >= 0 && mtf_graph_operation(graph, producer)->phase == MTF_PHASE_FORWARD;
}

/* One text a layer: how all its tensors, their gradients and their optimizer's state are laid out.
 */
static GPtrArray *describe_layers(const MtfLayerRuns *layers_found, int repeat, int count) {
    const MtfGraph *graph = layers_found->graph;
    GPtrArray *layers = g_ptr_array_new();
    for (int i = 0; i < count; i++)
        g_ptr_array_add(layers, g_string_new(NULL));
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->layer.block != repeat + 1 || (layers_found->forward && !is_forward(graph, t)))
            continue;
        g_autofree char *bare = mtf_layer_star(graph, tensor->name, tensor->layer);
        describe_tensor(layers_found, t, bare, g_ptr_array_index(layers, tensor->layer.iteration));
    }
    return layers;
}

static void find_runs(MtfLayerRuns *layers_found, int repeat) {
    g_autoptr(GPtrArray) layers =
        describe_layers(layers_found, repeat, repeat_at(layers_found, repeat)->count);
    g_autoptr(GHashTable) first = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = 0; i < (int)layers->len; i++) {
        GString *description = g_ptr_array_index(layers, i);
        if (i > 0 && g_string_equal(description, g_ptr_array_index(layers, i - 1))) {
            g_array_index(layers_found->runs, MtfLayerRun, layers_found->runs->len - 1).count++;
            continue;
        }
        int alike = GPOINTER_TO_INT(g_hash_table_lookup(first, description->str)) - 1;
        if (alike < 0) {
            alike = (int)layers_found->runs->len;
            g_hash_table_insert(first, description->str, GINT_TO_POINTER(alike + 1));
        }
        g_array_append_val(layers_found->runs, ((MtfLayerRun){ repeat, i, 1, alike }));
    }
    for (guint i = 0; i < layers->len; i++)
        g_string_free(g_ptr_array_index(layers, i), TRUE);
}

MtfLayerRuns *mtf_layer_runs_new(const MtfGraph *graph, const MtfLayout *layout, bool forward) {
    MtfLayerRuns *layers_found = g_new0(MtfLayerRuns, 1);
    layers_found->graph = graph;
    layers_found->layout = layout;
    layers_found->forward = forward;
    layers_found->runs = g_array_new(FALSE, FALSE, sizeof(MtfLayerRun));
    for (guint r = 0; r < graph->repeats->len; r++)
        find_runs(layers_found, (int)r);
    return layers_found;
}

void mtf_layer_runs_free(MtfLayerRuns *layers_found) {
    if (layers_found == NULL)
        return;
    g_array_unref(layers_found->runs);
    g_free(layers_found);
}

int mtf_layer_runs_count(const MtfLayerRuns *layers_found) {
    return (int)layers_found->runs->len;
}

const MtfLayerRun *mtf_layer_runs_at(const MtfLayerRuns *layers_found, int run) {
    return &g_array_index(layers_found->runs, MtfLayerRun, run);
}

int mtf_layer_runs_find(const MtfLayerRuns *layers_found, MtfLayer layer) {
    for (int run = 0; run < (int)layers_found->runs->len; run++) {
        const MtfLayerRun *r = mtf_layer_runs_at(layers_found, run);
        if (layer.block == r->repeat + 1 && layer.iteration >= r->first &&
            layer.iteration < r->first + r->count)
            return run;
    }
    return -1;
}

bool mtf_layer_runs_shows(const MtfLayerRuns *layers_found, MtfLayer layer) {
    int run = mtf_layer_runs_find(layers_found, layer);
    return run < 0 || mtf_layer_runs_at(layers_found, run)->first == layer.iteration;
}

int mtf_layer_runs_twin(const MtfLayerRuns *layers_found, int tensor) {
    const MtfGraph *graph = layers_found->graph;
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    int run = mtf_layer_runs_find(layers_found, t->layer);
    if (run < 0)
        return tensor;
    int first = mtf_layer_runs_at(layers_found, run)->first;
    g_autofree char *name = mtf_layer_twin(graph, t->name, t->layer, first);
    return mtf_graph_find_tensor(graph, name);
}
