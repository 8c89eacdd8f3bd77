// SPDX-License-Identifier: GPL-3.0-or-later
/* VGG (Simonyan and Zisserman, 2014): stages of 3x3 convolutions with biases, a pool that halves
 * space after each, and three dense layers. A stage i has width 2^i channels, up to 8 width. "vgg-16-bn"
 * and its kin have a batch normalisation behind each convolution, as torchvision builds them. */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

#define STAGES 5

/* Convolutions of each stage of a network of `layers` layers with weights. */
static const int *stage_sizes(int64_t layers, GError **error) {
    static const struct {
        int64_t layers;
        int stages[STAGES];
    } depths[] = { { 11, { 1, 1, 2, 2, 2 } },
                   { 13, { 2, 2, 2, 2, 2 } },
                   { 16, { 2, 2, 3, 3, 3 } },
                   { 19, { 2, 2, 4, 4, 4 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++)
        if (depths[i].layers == layers)
            return depths[i].stages;
    mtf_input_error(
        error, "--layers: there is no VGG of %" PRId64 " layers, but of 11, 13, 16 and 19", layers);
    return NULL;
}

static MtfImage stage(MtfImageNet *net, MtfImage x, int number, int layers, MtfImageConv conv) {
    MtfImageWindow window = mtf_image_window(2, 2, 0);
    g_autofree char *part = g_strdup_printf("stage%d", number + 1);
    mtf_parts_enter(net->p, part);
    for (int i = 0; i < layers; i++) {
        g_autofree char *name = g_strdup_printf("conv%d", i);
        x = mtf_image_conv(net, name, x, &conv);
    }
    x = x.size[0] > 1 ? mtf_image_pool(net, "pool", x, MTF_IMAGE_MAX, &window) : x;
    mtf_parts_leave(net->p);
    return x;
}

static MtfGraph *build_vgg(const MtfModelSettings *s, bool norm, GError **error) {
    const int64_t size[] = { s->image, s->image };
    const int *stages = stage_sizes(s->layers, error);
    if (stages == NULL)
        return NULL;
    MtfImageNet net = { 0 };
    mtf_image_net_init(&net, 2, s);
    MtfImage x = mtf_image_input(&net, s->channels, size);
    MtfImageConv conv = {
        .window = mtf_image_window(3, 1, 1), .bias = true, .norm = norm, .active = true
    };
    for (int i = 0; i < STAGES; i++) {
        conv.channels = s->width << MIN(i, 3);
        x = stage(&net, x, i, stages[i], conv);
    }
    int y = mtf_image_dense_active(&net, "dense0", x.tensor, s->hidden);
    y = mtf_image_dense_active(&net, "dense1", y, s->hidden);
    mtf_image_classify(&net, y, s->classes);
    return mtf_parts_end(net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    return build_vgg(s, false, error);
}

static MtfGraph *build_with_norms(const MtfModelSettings *s, GError **error) {
    return build_vgg(s, true, error);
}

#define VGG                                                                                \
    "batch=256 image=224 channels=3 classes=1000 width=64 hidden=4096 optimizer=momentum " \
    "schedule=cosine rate=0.01 total=370000 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "pictures of 16 by 16, trains in seconds",
               "layers=11 batch=16 image=16 channels=1 classes=10 width=8 hidden=32 optimizer=adam "
               "schedule=constant rate=1e-3"),
    MTF_PRESET("vgg-11", "132,863,336 parameters", VGG "layers=11"),
    MTF_PRESET("vgg-13", "133,047,848 parameters", VGG "layers=13"),
    MTF_PRESET("vgg-16", "138,357,544 parameters", VGG "layers=16"),
    MTF_PRESET("vgg-19", "143,667,240 parameters", VGG "layers=19"),
    MTF_PRESET_BY(build_with_norms, "vgg-11-bn", "with norms, 132,868,840 parameters",
                  VGG "layers=11"),
    MTF_PRESET_BY(build_with_norms, "vgg-13-bn", "with norms, 133,053,736 parameters",
                  VGG "layers=13"),
    MTF_PRESET_BY(build_with_norms, "vgg-16-bn", "with norms, 138,365,992 parameters",
                  VGG "layers=16"),
    MTF_PRESET_BY(build_with_norms, "vgg-19-bn", "with norms, 143,678,248 parameters",
                  VGG "layers=19"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_vgg = {
    .name = "vgg",
    .summary = "3x3 convolutions and large dense layers",
    .parameters = "layers batch image channels classes width hidden norm-over",
    .presets = presets,
    .build = build,
};
