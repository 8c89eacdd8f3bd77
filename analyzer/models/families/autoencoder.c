// SPDX-License-Identifier: GPL-3.0-or-later
/* Autoencoders: a perceptron that narrows to a code, its mirror, and the mean squared difference of
 * what comes out and what went in.
 *
 *     "1000-500-250-30" of 784 features: 784 ─► 1000 ─► 500 ─► 250 ─► 30 ─► 250 ─► 500 ─► 1000 ─► 784
 *
 * "mnist" has the sizes of Hinton and Salakhutdinov, "Reducing the dimensionality of data with
 * neural networks", 2006; its code is not bent, as theirs. */
#include "analyzer/models/families/layer_sizes.h"
#include "analyzer/models/model_family.h"

/* The layers from the code back to the features. */
static MtfLayerSizes mirror(const MtfLayerSizes *layers, int64_t features) {
    MtfLayerSizes back = { .n = layers->n };
    for (int i = 0; i + 1 < layers->n; i++)
        back.sizes[i] = layers->sizes[layers->n - 2 - i];
    back.sizes[layers->n - 1] = features;
    return back;
}

/* The mean of (y - x)^2, where y's features have another name. */
static void add_difference(MtfParts *p, int y, int x, int from, int to) {
    p->b.attributes.from = from;
    p->b.attributes.to = to;
    int renamed = mtf_parts_apply(p, MTF_OP_RENAME, "result", NULL, y, -1);
    int difference = mtf_parts_apply(p, MTF_OP_SUBTRACT, "difference", NULL, renamed, x);
    int square = mtf_parts_apply(p, MTF_OP_SQUARE, "square", NULL, difference, -1);
    p->b.graph->loss = mtf_parts_apply(p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, square, -1);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    MtfLayerSizes layers;
    if (!mtf_layer_sizes_read("sizes", s->sizes, &layers, error))
        return NULL;
    MtfLayerSizes back = mirror(&layers, s->features);
    MtfParts *p = mtf_parts_new();
    int batch = mtf_parts_dimension(p, "batch", s->batch);
    int features = mtf_parts_dimension(p, "features", s->features);
    MtfShape shape = { 2, { batch, features } };
    int x = mtf_parts_input(p, "x", &shape, MTF_F32, MTF_FEED_FEATURES);
    int code = mtf_parts_perceptron(p, "encoder", x, &layers, s->activation, false);
    int y = mtf_parts_perceptron(p, "decoder", code, &back, s->activation, false);
    g_autofree char *last = g_strdup_printf("decoder%d", back.n - 1);
    if (p->b.error == NULL)
        add_difference(p, y, x, mtf_graph_find_dimension(p->b.graph, last), features);
    return mtf_parts_end(p, error);
}

#define CODE " activation=sigmoid optimizer=adam schedule=constant rate=1e-3"

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "64-32-8-32-64, trains in seconds", "batch=32 features=64 sizes=32-8" CODE),
    MTF_PRESET("mnist", "784-1000-500-250-30 and back, 2,837,314 parameters",
               "batch=128 features=784 sizes=1000-500-250-30" CODE),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_autoencoder = {
    .name = "autoencoder",
    .summary = "perceptron that narrows to a code and widens again",
    .parameters = "batch features sizes activation",
    .presets = presets,
    .build = build,
};
