// SPDX-License-Identifier: GPL-3.0-or-later
/* CosmoFlow as LBANN builds it (Mathuriya and others, 2018; Oyama and others, 2020,
 * cosmoflow_model.py): cubes of matter, four parameters of the universe.
 *
 *     conv 16 ─ pool ─ 32 ─ pool ─ 64 ─ pool ─ 128/2 ─ pool ─ 256 ─ pool ─ 256 ─ 256 ─ 2048 ─ 256 ─ 4
 *
 * Convolutions are 3x3x3 without biases, pools means of 3x3x3 with stride 2; cubes of 256 have one
 * more pool behind the sixth convolution, those of 512 another behind the seventh. */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

#define CONVOLUTIONS 7
#define SMALLEST 2 /* places a side that come out of the last pool */

typedef struct {
    MtfImageNet net;
    bool norm;
} CosmoFlow;

static MtfImage layer(CosmoFlow *c, MtfImage x, int number, int64_t channels) {
    g_autofree char *name = g_strdup_printf("conv%d", number);
    MtfImageConv conv = { .channels = channels,
                          .window = mtf_image_window(3, number == 4 ? 2 : 1, 1),
                          .norm = c->norm,
                          .active = true };
    return mtf_image_conv(&c->net, name, x, &conv);
}

static MtfImage halve(CosmoFlow *c, MtfImage x, int number) {
    MtfImageWindow window = mtf_image_window(3, 2, 1);
    g_autofree char *name = g_strdup_printf("pool%d", number);
    bool always = number < 6;
    return x.size[0] > SMALLEST || (always && x.size[0] > 1)
               ? mtf_image_pool(&c->net, name, x, MTF_IMAGE_AVERAGE, &window)
               : x;
}

/* The mean squared error of the parameters. */
static void add_error(CosmoFlow *c, int y, int64_t outputs) {
    MtfParts *p = c->net.p;
    int dim = mtf_graph_find_dimension(p->b.graph, "outputs");
    (void)outputs;
    MtfShape rows = { 2, { c->net.batch, dim } };
    int targets = mtf_parts_input(p, "targets", &rows, MTF_F32, MTF_FEED_TARGETS);
    int difference = mtf_parts_apply(p, MTF_OP_SUBTRACT, "difference", NULL, y, targets);
    int square = mtf_parts_apply(p, MTF_OP_SQUARE, "square", NULL, difference, -1);
    p->b.graph->loss = mtf_parts_apply(p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, square, -1);
}

static MtfGraph *build_cosmoflow(CosmoFlow *c, const MtfModelSettings *s, GError **error) {
    static const int widths[CONVOLUTIONS] = { 1, 2, 4, 8, 16, 16, 16 };
    const int64_t size[] = { s->image, s->image, s->image };
    if (s->hidden < 8) {
        mtf_input_error(error,
                        "--hidden: the second dense layer is an eighth as wide as the first, of "
                        "which 8 features at least are expected, not %" PRId64,
                        s->hidden);
        return NULL;
    }
    mtf_image_net_init(&c->net, 3, s);
    c->net.slope = 0.01;
    MtfImage x = mtf_image_input(&c->net, s->channels, size);
    for (int i = 0; i < CONVOLUTIONS; i++)
        x = halve(c, layer(c, x, i + 1, widths[i] * s->width), i + 1);
    int y = mtf_image_dense_active(&c->net, "dense1", x.tensor, s->hidden);
    y = mtf_image_dense_active(&c->net, "dense2", y, s->hidden / 8);
    y = mtf_image_dense(&c->net, "outputs", y, s->outputs);
    add_error(c, y, s->outputs);
    return mtf_parts_end(c->net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    return build_cosmoflow(&(CosmoFlow){ .norm = false }, s, error);
}

static MtfGraph *build_normed(const MtfModelSettings *s, GError **error) {
    return build_cosmoflow(&(CosmoFlow){ .norm = true }, s, error);
}

#define COSMOFLOW \
    "batch=64 channels=4 width=16 hidden=2048 outputs=4 optimizer=adam schedule=constant rate=1e-3 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "cubes of 16, trains in seconds",
               "batch=4 image=16 channels=1 width=2 hidden=16 outputs=4 optimizer=adam "
               "schedule=constant rate=1e-3"),
    MTF_PRESET("cosmoflow-128", "cubes of 128, 9,437,636 parameters", COSMOFLOW "image=128"),
    MTF_PRESET("cosmoflow-256", "cubes of 256", COSMOFLOW "image=256"),
    MTF_PRESET("cosmoflow-512", "cubes of 512", COSMOFLOW "image=512"),
    MTF_PRESET_BY(build_normed, "cosmoflow-512-norm", "cubes of 512 with batch normalisation",
                  COSMOFLOW "image=512"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_cosmoflow = {
    .name = "cosmoflow",
    .summary = "parameters of the universe from cubes of matter",
    .parameters = "batch image channels width hidden outputs norm-over",
    .presets = presets,
    .build = build,
};
