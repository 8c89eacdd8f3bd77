// SPDX-License-Identifier: GPL-3.0-or-later
/* Densely connected networks (Huang and others, 2016): every layer reads what all layers of its block
 * have made, one behind the other, and adds `growth` channels.
 *
 *     x ─┬─ norm ─ relu ─ conv 1x1 (4 growth) ─ norm ─ relu ─ conv 3x3 (growth) ─┐
 *        └──────────────────────────────────────────────────────────────── concat ─►
 *
 * Between blocks a 1x1 convolution halves the channels and a mean of 2x2 halves space. */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

#define BLOCKS 4

typedef struct {
    MtfImageNet net;
    const int *blocks;
    int64_t growth;
} DenseNet;

static MtfImage before(DenseNet *d, const char *name, MtfImage x) {
    g_autofree char *relu = g_strdup_printf("%s_relu", name);
    return mtf_image_active(&d->net, relu, mtf_image_norm(&d->net, name, x));
}

static MtfImage layer(DenseNet *d, MtfImage x) {
    MtfImageConv narrow = { .channels = 4 * d->growth,
                            .window = mtf_image_window(1, 1, 0),
                            .turns = true };
    MtfImageConv wide = { .channels = d->growth, .window = mtf_image_window(3, 1, 1) };
    MtfImage y = mtf_image_conv(&d->net, "conv1", before(d, "norm1", x), &narrow);
    y = mtf_image_conv(&d->net, "conv2", before(d, "norm2", y), &wide);
    return mtf_image_concat(&d->net, "joined", (MtfImage[]){ x, y }, 2);
}

static MtfImage block(DenseNet *d, MtfImage x, int number) {
    g_autofree char *name = g_strdup_printf("block%d", number + 1);
    for (int i = 0; i < d->blocks[number]; i++) {
        mtf_parts_enter_layer(d->net.p, name, i);
        x = layer(d, x);
        mtf_parts_leave_layer(d->net.p);
    }
    return x;
}

static MtfImage transition(DenseNet *d, MtfImage x, int number) {
    MtfImageConv half = { .channels = x.channels / 2, .window = mtf_image_window(1, 1, 0) };
    MtfImageWindow window = mtf_image_window(2, 2, 0);
    g_autofree char *part = g_strdup_printf("transition%d", number + 1);
    mtf_parts_enter(d->net.p, part);
    x = mtf_image_conv(&d->net, "conv", before(d, "norm", x), &half);
    x = x.size[0] > 1 ? mtf_image_pool(&d->net, "pool", x, MTF_IMAGE_AVERAGE, &window) : x;
    mtf_parts_leave(d->net.p);
    return x;
}

static const int *block_sizes(int64_t layers, GError **error) {
    static const struct {
        int64_t layers;
        int blocks[BLOCKS];
    } depths[] = { { 13, { 1, 1, 1, 1 } },     { 121, { 6, 12, 24, 16 } },
                   { 161, { 6, 12, 36, 24 } }, { 169, { 6, 12, 32, 32 } },
                   { 201, { 6, 12, 48, 32 } }, { 264, { 6, 12, 64, 48 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++)
        if (depths[i].layers == layers)
            return depths[i].blocks;
    mtf_input_error(error,
                    "--layers: there is no DenseNet of %" PRId64
                    " layers, but of 13, 121, 161, 169, 201 and 264",
                    layers);
    return NULL;
}

static MtfImage stem(DenseNet *d, MtfImage x, const MtfModelSettings *s) {
    bool small = mtf_image_stem_is_small(s);
    MtfImageConv conv = { .channels = 2 * d->growth,
                          .window = small ? mtf_image_window(3, 1, 1) : mtf_image_window(7, 2, 3),
                          .norm = true,
                          .active = true };
    MtfImageWindow window = mtf_image_window(3, 2, 1);
    x = mtf_image_conv(&d->net, "stem", x, &conv);
    return small ? x : mtf_image_pool(&d->net, "stem/pool", x, MTF_IMAGE_MAX, &window);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    const int64_t size[] = { s->image, s->image };
    DenseNet d = { .growth = s->width, .blocks = block_sizes(s->layers, error) };
    if (d.blocks == NULL)
        return NULL;
    mtf_image_net_init(&d.net, 2, s);
    MtfImage x = stem(&d, mtf_image_input(&d.net, s->channels, size), s);
    for (int i = 0; i < BLOCKS; i++) {
        x = block(&d, x, i);
        x = i + 1 < BLOCKS ? transition(&d, x, i) : before(&d, "norm", x);
    }
    mtf_image_classify(&d.net, mtf_image_mean(&d.net, x), s->classes);
    return mtf_parts_end(d.net.p, error);
}

#define DENSENET                                                                                 \
    "batch=256 image=224 channels=3 stem=large classes=1000 optimizer=momentum schedule=cosine " \
    "rate=0.1 total=450000 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "four blocks of one layer on pictures of 8 by 8, trains in seconds",
               "layers=13 batch=16 image=8 channels=1 width=4 classes=10 optimizer=momentum "
               "schedule=constant rate=0.01"),
    MTF_PRESET("densenet-121", "7,978,856 parameters", DENSENET "layers=121 width=32"),
    MTF_PRESET("densenet-161", "28,681,000 parameters", DENSENET "layers=161 width=48"),
    MTF_PRESET("densenet-169", "14,149,480 parameters", DENSENET "layers=169 width=32"),
    MTF_PRESET("densenet-201", "20,013,928 parameters", DENSENET "layers=201 width=32"),
    MTF_PRESET("densenet-264", "33,337,704 parameters", DENSENET "layers=264 width=32"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_densenet = {
    .name = "densenet",
    .summary = "densely connected networks",
    .parameters = "layers batch image channels width classes stem norm-over",
    .presets = presets,
    .build = build,
};
