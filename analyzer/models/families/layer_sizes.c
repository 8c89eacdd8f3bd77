// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/families/layer_sizes.h"

#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

bool mtf_layer_sizes_read(const char *option, const char *text, MtfLayerSizes *layers,
                          GError **error) {
    g_auto(GStrv) parts = g_strsplit_set(text, ",-", -1);
    layers->n = 0;
    for (char **part = parts; *part != NULL; part++) {
        gint64 size, times = 1;
        g_autofree char *word = g_strdup(*part);
        char *of = strcmp(option, "tables") == 0 ? strchr(*part, 'x') : NULL;
        if (of != NULL)
            *of = '\0';
        if (layers->n == MTF_MOST_LAYER_SIZES)
            return mtf_input_error(error, "--%s: \"%s\" has more than %d sizes", option, text,
                                   MTF_MOST_LAYER_SIZES);
        if (!g_ascii_string_to_signed(*part, 10, 1, 1000000000, &size, NULL) ||
            (of != NULL && !g_ascii_string_to_signed(of + 1, 10, 1, 65536, &times, NULL)))
            return mtf_input_error(error,
                                   "--%s: \"%s\" in \"%s\" is not a size from 1 to 1000000000 "
                                   "(write 512-256-64)",
                                   option, word, text);
        layers->times[layers->n] = times;
        layers->sizes[layers->n++] = size;
    }
    return layers->n > 0 || mtf_input_error(error, "--%s has no size (write 512-256-64)", option);
}

static double inputs_of(const MtfParts *p, const MtfShape *shape) {
    double inputs = 1;
    for (int i = 0; i < shape->rank - 1; i++)
        inputs *= (double)mtf_graph_size(p->b.graph, shape->dims[i]);
    return inputs;
}

/* x [batch, …] times a matrix of its own [… , out], plus a bias. */
static int layer(MtfParts *p, int x, int out) {
    if (p->b.error != NULL)
        return -1;
    MtfShape in = mtf_graph_tensor(p->b.graph, x)->shape, weight = { 0 };
    for (int i = 1; i < in.rank; i++)
        mtf_shape_append(&weight, in.dims[i]);
    mtf_shape_append(&weight, out);
    MtfShape result = { 2, { in.dims[0], out } }, bias = { 1, { out } };
    int w = mtf_parts_variable(p, "w", &weight, MTF_INIT_NORMAL, sqrt(2 / inputs_of(p, &weight)));
    int y = mtf_parts_einsum(p, "y", &result, x, w);
    int b = mtf_parts_variable(p, "bias", &bias, MTF_INIT_CONSTANT, 0);
    return mtf_parts_add(p, "biased", y, b);
}

int mtf_parts_perceptron(MtfParts *p, const char *prefix, int x, const MtfLayerSizes *layers,
                         const char *activation, bool last_active) {
    for (int i = 0; i < layers->n; i++) {
        g_autofree char *name = g_strdup_printf("%s%d", prefix, i);
        g_autofree char *part = g_strdup_printf("%s/%d", prefix, i);
        int out = mtf_parts_dimension(p, name, layers->sizes[i]);
        mtf_parts_enter(p, part);
        x = layer(p, x, out);
        if (i + 1 < layers->n || last_active)
            x = mtf_parts_activation(p, activation, x);
        mtf_parts_leave(p);
    }
    return x;
}
