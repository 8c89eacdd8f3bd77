// SPDX-License-Identifier: GPL-3.0-or-later
/* Perceptrons: features -> hidden layers -> targets, with the mean squared error; or labels, with
 * the cross entropy. */
#include "analyzer/models/model_family.h"
#include "analyzer/models/model_parts.h"

#include <math.h>

/* x times a new matrix of that shape, plus a bias if the model has biases. */
static int linear(MtfParts *p, int x, int layer, MtfShape shape, const MtfModelSettings *s) {
    if (p->b.error != NULL)
        return -1;
    int in = shape.dims[0], out = shape.dims[1];
    int batch = mtf_graph_tensor(p->b.graph, x)->shape.dims[0];
    double spread = sqrt(2 / (double)mtf_graph_size(p->b.graph, in));
    g_autofree char *prefix = g_strdup_printf("layer/%d", layer);
    mtf_parts_enter(p, prefix);
    int w = mtf_parts_variable(p, "w", &shape, MTF_INIT_NORMAL, spread);
    int y = mtf_parts_einsum(p, "y", &(MtfShape){ 2, { batch, out } }, x, w);
    MtfShape columns = { 1, { out } };
    if (s->biases)
        y = mtf_parts_add(p, "biased", y,
                          mtf_parts_variable(p, "bias", &columns, MTF_INIT_CONSTANT, 0));
    mtf_parts_leave(p);
    return y;
}

static int activate(MtfParts *p, int x, int layer, const MtfModelSettings *s) {
    g_autofree char *prefix = g_strdup_printf("layer/%d", layer);
    mtf_parts_enter(p, prefix);
    int y = mtf_parts_activation(p, s->activation, x);
    y = mtf_parts_dropout(p, "dropped", s->dropout, y);
    mtf_parts_leave(p);
    return y;
}

/* The mean of (y - targets)^2 over all elements. */
static void add_squared_loss(MtfParts *p, int y, int targets) {
    int difference = mtf_parts_apply(p, MTF_OP_SUBTRACT, "difference", NULL, y, targets);
    int square = mtf_parts_apply(p, MTF_OP_SQUARE, "square", NULL, difference, -1);
    p->b.graph->loss = mtf_parts_apply(p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, square, -1);
}

/* Hidden layers take turns between two dimensions of one size, so that a layout may split
 * neighbours differently. */
static int hidden_dimension(MtfParts *p, int layer, const MtfModelSettings *s) {
    const char *name = layer % 2 == 0 ? "hidden" : "hidden2";
    int dim = mtf_graph_find_dimension(p->b.graph, name);
    return dim >= 0 ? dim : mtf_parts_dimension(p, name, s->hidden);
}

static int hidden_layers(MtfParts *p, int x, int *dim, const MtfModelSettings *s) {
    for (int layer = 0; layer < s->layers && p->b.error == NULL; layer++) {
        int out = hidden_dimension(p, layer, s);
        x = linear(p, x, layer, (MtfShape){ 2, { *dim, out } }, s);
        x = activate(p, x, layer, s);
        *dim = out;
    }
    return x;
}

/* From x [batch, features] to [batch, `outputs`]. */
static int perceptron(MtfParts *p, const char *outputs, const MtfModelSettings *s) {
    int batch = mtf_parts_dimension(p, "batch", s->batch);
    int last = mtf_parts_dimension(p, "features", s->features);
    int out = mtf_parts_dimension(p, outputs, s->outputs);
    int x = mtf_parts_input(p, "x", &(MtfShape){ 2, { batch, last } }, MTF_F32, MTF_FEED_FEATURES);
    int y = hidden_layers(p, x, &last, s);
    return linear(p, y, (int)s->layers, (MtfShape){ 2, { last, out } }, s);
}

static MtfGraph *build_mlp(const MtfModelSettings *s, GError **error) {
    MtfParts *p = mtf_parts_new();
    int y = perceptron(p, "outputs", s);
    MtfShape rows = { 2, { 0, 2 } }; /* batch, outputs */
    add_squared_loss(p, y, mtf_parts_input(p, "targets", &rows, MTF_F32, MTF_FEED_TARGETS));
    return mtf_parts_end(p, error);
}

static MtfGraph *build_classifier(const MtfModelSettings *s, GError **error) {
    MtfParts *p = mtf_parts_new();
    int logits = perceptron(p, "classes", s);
    MtfShape rows = { 1, { 0 } }; /* batch */
    int labels = mtf_parts_input(p, "labels", &rows, MTF_I32, MTF_FEED_LABELS);
    int losses = mtf_parts_apply(p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &rows, logits, labels);
    p->b.graph->loss = mtf_parts_apply(p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
    return mtf_parts_end(p, error);
}

/* y = relu(x w) v with as many outputs as inputs. */
static MtfGraph *build_two_layer(const MtfModelSettings *s, GError **error) {
    MtfParts *p = mtf_parts_new();
    int batch = mtf_parts_dimension(p, "batch", s->batch);
    int io = mtf_parts_dimension(p, "io", s->features);
    int hidden = mtf_parts_dimension(p, "hidden", s->hidden);
    MtfShape rows = { 2, { batch, io } };
    int x = mtf_parts_input(p, "x", &rows, MTF_F32, MTF_FEED_FEATURES);
    int targets = mtf_parts_input(p, "targets", &rows, MTF_F32, MTF_FEED_TARGETS);
    int w = mtf_parts_variable(p, "w", &(MtfShape){ 2, { io, hidden } }, MTF_INIT_NORMAL,
                               sqrt(2 / (double)s->features));
    int v = mtf_parts_variable(p, "v", &(MtfShape){ 2, { hidden, io } }, MTF_INIT_NORMAL,
                               sqrt(1 / (double)s->hidden));
    int h = mtf_parts_einsum(p, "h", &(MtfShape){ 2, { batch, hidden } }, x, w);
    int y = mtf_parts_einsum(p, "y", &rows, mtf_parts_activation(p, s->activation, h), v);
    add_squared_loss(p, y, targets);
    return mtf_parts_end(p, error);
}

#define PERCEPTRON " activation=relu schedule=constant "

static const MtfModelPreset presets[] = {
    MTF_PRESET("small", "two hidden layers of 128, for a first try",
               "layers=2 batch=64 features=32 hidden=128 outputs=8 biases=1" PERCEPTRON
               "optimizer=adam rate=1e-3"),
    MTF_PRESET("tiny", "one hidden layer of 16, trains in seconds",
               "layers=1 batch=16 features=8 hidden=16 outputs=4 biases=1" PERCEPTRON
               "optimizer=adam rate=1e-2"),
    MTF_PRESET_BY(build_classifier, "mnist",
                  "a classifier of MNIST's pictures, 784-2048-2048-10, with the cross entropy "
                  "(--outputs: classes)",
                  "layers=2 batch=128 features=784 hidden=2048 outputs=10 biases=1" PERCEPTRON
                  "optimizer=adamw rate=3e-4"),
    MTF_PRESET_BY(build_two_layer, "two-layer",
                  "y = relu(x w) v: batch 4096, io 1024, hidden 4096 (--layers, --outputs and "
                  "--biases have no effect)",
                  "layers=1 batch=4096 features=1024 hidden=4096" PERCEPTRON
                  "optimizer=sgd rate=0.01"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_mlp = {
    .name = "mlp",
    .summary = "perceptron",
    .parameters = "layers batch features hidden outputs biases dropout activation",
    .presets = presets,
    .build = build_mlp,
};
