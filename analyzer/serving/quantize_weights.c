// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/quantize_weights.h"

#include "layouts/graph/operation_check.h"

#include <math.h>
#include <string.h>

#define MOST 127.0     /* of int8, so that both signs reach as far */
#define DEVIATIONS 4.0 /* of normal initial values that a scale reaches to */

typedef struct {
    MtfGraph *graph;
    GHashTable *adapters; /* names */
    int *readers;         /* operations that read a tensor and can have it in int8 */
    int *others;          /* … and cannot */
    MtfShape *channels;   /* of the first of the readers */
} Census;

static const MtfTensor *input(const MtfGraph *graph, const MtfOperation *op, int k) {
    return mtf_graph_tensor(graph, op->inputs[k]);
}

static bool is_product(const MtfOperation *op) {
    return mtf_operation_row(op->kind)->products == MTF_PRODUCTS_EINSUM;
}

/* Whether input `k` may be the int8 matrix of a product; then `channels` are the dimensions that it
 * alone has. */
static bool may_read(const MtfGraph *graph, const MtfOperation *op, int k, MtfShape *channels) {
    if (!is_product(op) || op->n_inputs != 2 || op->inputs[0] == op->inputs[1])
        return false;
    const MtfShape *x = &input(graph, op, 1 - k)->shape, *w = &input(graph, op, k)->shape;
    *channels = mtf_quantized_channels(x, w);
    return input(graph, op, k)->source == MTF_SOURCE_VARIABLE &&
           mtf_dtype_is_float(input(graph, op, 1 - k)->dtype) &&
           mtf_quantized_shapes_fit(x, w, &mtf_graph_tensor(graph, op->outputs[0])->shape);
}

static void count_readers(Census *census) {
    for (int i = 0; i < (int)census->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(census->graph, i);
        for (int k = 0; k < op->n_inputs; k++) {
            int t = op->inputs[k];
            MtfShape channels;
            bool reads =
                may_read(census->graph, op, k, &channels) &&
                (census->readers[t] == 0 || mtf_shape_equal(&channels, &census->channels[t]));
            if (reads)
                census->channels[t] = channels;
            (reads ? census->readers : census->others)[t]++;
        }
    }
    for (guint i = 0; i < census->graph->updates->len; i++)
        census->others[g_array_index(census->graph->updates, MtfUpdate, i).variable]++;
}

static void find_adapters(Census *census) {
    for (int t = 0; t < (int)census->graph->tensors->len; t++) {
        const MtfAdapter *adapter = &mtf_graph_tensor(census->graph, t)->adapter;
        if (adapter->down != NULL)
            g_hash_table_add(census->adapters, adapter->down);
        if (adapter->down != NULL)
            g_hash_table_add(census->adapters, adapter->up);
    }
}

static bool becomes_narrow(const Census *census, int t) {
    const MtfTensor *tensor = mtf_graph_tensor(census->graph, t);
    return tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE &&
           mtf_dtype_is_float(tensor->dtype) && census->readers[t] > 0 && census->others[t] == 0 &&
           !g_hash_table_contains(census->adapters, tensor->name);
}

/* The initial values in units of their scale, which is returned. */
static double scale_init(MtfInit *init) {
    double largest = init->kind == MTF_INIT_NORMAL ? DEVIATIONS * init->value : fabs(init->value);
    double scale = largest > 0 ? largest / MOST : 1;
    init->value /= scale;
    return scale;
}

/* Makes the variable int8 and returns its scale's variable, or -1. */
static int quantize(MtfGraph *graph, int t, const MtfShape *channels, GError **error) {
    MtfTensor *w = mtf_graph_tensor(graph, t);
    g_autofree char *name = g_strdup_printf("%s/scale", w->name);
    MtfInit units = w->init, scale = { MTF_INIT_CONSTANT, scale_init(&units) };
    int added = mtf_graph_add_variable(graph, name, channels, mtf_dtype_wide(w->dtype), scale,
                                       MTF_MEMORY_VARIABLE, error);
    if (added < 0)
        return -1;
    w = mtf_graph_tensor(graph, t);
    w->dtype = MTF_I8;
    w->init = units;
    w->scale = g_steal_pointer(&name);
    mtf_graph_tensor(graph, added)->frozen = w->frozen;
    mtf_graph_tensor(graph, added)->layer = w->layer;
    return added;
}

/* Its readers take it in its new form: (x, w, scale). */
static void change_readers(MtfGraph *graph, int t, int scale) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (!is_product(op) || op->n_inputs != 2 || (op->inputs[0] != t && op->inputs[1] != t))
            continue;
        int x = op->inputs[op->inputs[0] == t ? 1 : 0];
        op->kind = MTF_OP_QUANTIZED_EINSUM;
        op->inputs = g_renew(int, op->inputs, 3);
        op->n_inputs = 3;
        op->inputs[0] = x;
        op->inputs[1] = t;
        op->inputs[2] = scale;
    }
}

static bool quantize_all(Census *census, int *weights, GError **error) {
    int n = (int)census->graph->tensors->len, done = 0;
    for (int t = 0; t < n; t++) {
        if (!becomes_narrow(census, t))
            continue;
        int scale = quantize(census->graph, t, &census->channels[t], error);
        if (scale < 0)
            return false;
        change_readers(census->graph, t, scale);
        done++;
    }
    if (weights != NULL)
        *weights = done;
    return true;
}

MtfGraph *mtf_quantize_weights(const MtfGraph *graph, int *weights, GError **error) {
    g_autoptr(MtfGraph) made = mtf_graph_copy(graph);
    g_autoptr(GHashTable) adapters = g_hash_table_new(g_str_hash, g_str_equal);
    gsize n = made->tensors->len + 1;
    g_autofree int *readers = g_new0(int, n);
    g_autofree int *others = g_new0(int, n);
    g_autofree MtfShape *channels = g_new0(MtfShape, n);
    Census census = { made, adapters, readers, others, channels };
    find_adapters(&census);
    count_readers(&census);
    if (!quantize_all(&census, weights, error))
        return NULL;
    mtf_graph_canonicalize(made);
    return g_steal_pointer(&made);
}
