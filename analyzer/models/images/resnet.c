// SPDX-License-Identifier: GPL-3.0-or-later
/* Residual networks (He and others, "Deep residual learning", 2015), with the stride in the 3x3
 * convolution as in every later code ("v1.5"):
 *
 *     x ─┬─ conv 3x3 ─ conv 3x3 ─────────────────┬─ + ─ relu       18 and 34 layers
 *     x ─┼─ conv 1x1 ─ conv 3x3 ─ conv 1x1 ──────┼─ + ─ relu       50, 101, 152: the last is 4 times
 *        └─ (conv 1x1 where sizes change) ───────┘                 as wide
 *
 * "wide-…": both inner convolutions are wider (Zagoruyko and Komodakis, 2016, as torchvision builds
 * it). "resnext-…": likewise, and the 3x3 works in groups (Xie and others, 2016). "alpa-…": only what
 * the 3x3 makes is wider (Zheng and others, 2022, suite_wresnet.py). */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

#define STAGES 4

typedef struct {
    MtfImageNet net;
    int64_t blocks[STAGES];
    bool bottleneck;
    int64_t first_width, inner_width; /* times the stage's channels */
    int64_t groups;                   /* of the 3x3 convolutions of bottlenecks */
} ResNet;

static MtfImageConv convolution(int64_t channels, int64_t kernel, int64_t stride, bool active) {
    return (MtfImageConv){ .channels = channels,
                           .window = mtf_image_window(kernel, stride, kernel / 2),
                           .norm = true,
                           .active = active };
}

/* The convolutions of a block on its way that is not the short one. */
static MtfImage long_way(ResNet *r, MtfImage x, int64_t channels, int64_t stride) {
    if (!r->bottleneck) {
        MtfImageConv first = convolution(channels, 3, stride, true);
        MtfImageConv second = convolution(channels, 3, 1, false);
        MtfImage y = mtf_image_conv(&r->net, "conv1", x, &first);
        return mtf_image_conv(&r->net, "conv2", y, &second);
    }
    MtfImageConv first = convolution(channels * r->first_width, 1, 1, true);
    MtfImageConv second = convolution(channels * r->inner_width, 3, stride, true);
    MtfImageConv third = convolution(channels * 4, 1, 1, false);
    second.groups = r->groups;
    third.turns = stride == 1; /* back to the names that x has */
    MtfImage y = mtf_image_conv(&r->net, "conv1", x, &first);
    y = mtf_image_conv(&r->net, "conv2", y, &second);
    return mtf_image_conv(&r->net, "conv3", y, &third);
}

static MtfImage block(ResNet *r, MtfImage x, int64_t channels, int64_t stride) {
    MtfImage y = long_way(r, x, channels, stride);
    MtfImageConv shortcut = convolution(y.channels, 1, stride, false);
    if (stride > 1 || x.channels != y.channels)
        x = mtf_image_conv(&r->net, "shortcut", x, &shortcut);
    return mtf_image_active(&r->net, "relu", mtf_image_add(&r->net, "sum", y, x));
}

static MtfImage stage(ResNet *r, MtfImage x, int number, int64_t channels) {
    g_autofree char *name = g_strdup_printf("stage%d", number + 1);
    for (int64_t i = 0; i < r->blocks[number]; i++) {
        mtf_parts_enter_layer(r->net.p, name, (int)i);
        x = block(r, x, channels, number > 0 && i == 0 ? 2 : 1);
        mtf_parts_leave_layer(r->net.p);
    }
    return x;
}

/* A small stem does not shrink pictures before the stages, as networks for pictures of 8 to 32 pixels have it. */
static MtfImage stem(ResNet *r, MtfImage x, const MtfModelSettings *s) {
    bool small = mtf_image_stem_is_small(s);
    MtfImageConv conv = convolution(s->width, small ? 3 : 7, small ? 1 : 2, true);
    MtfImageWindow window = mtf_image_window(3, 2, 1);
    x = mtf_image_conv(&r->net, "stem", x, &conv);
    return small ? x : mtf_image_pool(&r->net, "stem/pool", x, MTF_IMAGE_MAX, &window);
}

/* Sets the number of blocks of each stage for a network of `layers` layers. */
static bool set_depth(ResNet *r, int64_t layers, GError **error) {
    static const struct {
        int64_t layers, blocks[STAGES];
    } depths[] = { { 10, { 1, 1, 1, 1 } },   { 18, { 2, 2, 2, 2 } },   { 34, { 3, 4, 6, 3 } },
                   { 50, { 3, 4, 6, 3 } },   { 101, { 3, 4, 23, 3 } }, { 152, { 3, 8, 36, 3 } },
                   { 200, { 3, 24, 36, 3 } } };
    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++)
        if (depths[i].layers == layers) {
            memcpy(r->blocks, depths[i].blocks, sizeof r->blocks);
            r->bottleneck = layers >= 50;
            return true;
        }
    return mtf_input_error(error,
                           "--layers: there is no residual network of %" PRId64
                           " layers, but of 10, 18, 34, 50, 101, 152 and 200",
                           layers);
}

static bool check_inner(const ResNet *r, const MtfModelSettings *s, GError **error) {
    if (!r->bottleneck && (s->widening > 1 || s->groups > 1))
        return mtf_input_error(error,
                               "--%s: a residual network of %" PRId64
                               " layers has no inner convolutions, only those of 50 and more have",
                               s->widening > 1 ? "widening" : "groups", s->layers);
    int64_t read = s->width * r->first_width, made = s->width * r->inner_width;
    if (read % r->groups != 0 || made % r->groups != 0)
        return mtf_input_error(error,
                               "--groups: the first 3x3 convolution takes %" PRId64
                               " channels to %" PRId64 ", which are not %" PRId64 " equal groups",
                               read, made, r->groups);
    return true;
}

static MtfGraph *build_resnet(ResNet *r, const MtfModelSettings *s, GError **error) {
    const int64_t size[] = { s->image, s->image };
    r->groups = MAX(1, s->groups);
    if (!set_depth(r, s->layers, error) || !check_inner(r, s, error))
        return NULL;
    mtf_image_net_init(&r->net, 2, s);
    MtfImage x = stem(r, mtf_image_input(&r->net, s->channels, size), s);
    for (int i = 0; i < STAGES; i++)
        x = stage(r, x, i, s->width << i);
    mtf_image_classify(&r->net, mtf_image_mean(&r->net, x), s->classes);
    return mtf_parts_end(r->net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    ResNet r = { .first_width = s->widening, .inner_width = s->widening };
    return build_resnet(&r, s, error);
}

static MtfGraph *build_alpa(const MtfModelSettings *s, GError **error) {
    ResNet r = { .first_width = 1, .inner_width = s->widening };
    return build_resnet(&r, s, error);
}

#define RESNET                                                                             \
    "batch=256 image=224 channels=3 classes=1000 width=64 widening=1 groups=1 stem=large " \
    "optimizer=momentum schedule=cosine rate=0.1 total=450000 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "10 layers of 8 to 64 channels on pictures of 8 by 8, trains in seconds",
               "layers=10 batch=16 image=8 channels=1 classes=10 width=8 widening=1 groups=1 "
               "optimizer=momentum schedule=linear_warmup rate=2e-3 warmup=5"),
    MTF_PRESET("resnet-18", "11,689,512 parameters", RESNET "layers=18"),
    MTF_PRESET("resnet-34", "21,797,672 parameters", RESNET "layers=34"),
    MTF_PRESET("resnet-50", "25,557,032 parameters", RESNET "layers=50"),
    MTF_PRESET("resnet-101", "44,549,160 parameters", RESNET "layers=101"),
    MTF_PRESET("resnet-152", "60,192,808 parameters", RESNET "layers=152"),
    MTF_PRESET("resnet-200", "64,673,832 parameters", RESNET "layers=200"),
    MTF_PRESET("resnext-50-32x4d", "25,028,904 parameters",
               RESNET "layers=50 widening=2 groups=32"),
    MTF_PRESET("resnext-101-32x8d", "88,791,336 parameters",
               RESNET "layers=101 widening=4 groups=32"),
    MTF_PRESET("resnext-101-64x4d", "83,455,272 parameters",
               RESNET "layers=101 widening=4 groups=64"),
    MTF_PRESET("wide-resnet-50", "68,883,240 parameters", RESNET "layers=50 widening=2"),
    MTF_PRESET("wide-resnet-101", "126,886,696 parameters", RESNET "layers=101 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-250m", "Alpa's, 254,000,200 parameters",
                  RESNET "layers=50 width=160 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-500m", "Alpa's, 494,874,120 parameters",
                  RESNET "layers=50 width=224 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-1b", "Alpa's, 1,005,407,400 parameters",
                  RESNET "layers=50 width=320 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-2b", "Alpa's, 1,964,666,920 parameters",
                  RESNET "layers=50 width=448 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-4b", "Alpa's, 4,000,445,800 parameters",
                  RESNET "layers=50 width=640 widening=2"),
    MTF_PRESET_BY(build_alpa, "alpa-6.8b", "Alpa's, 6,727,433,640 parameters",
                  RESNET "layers=50 width=320 widening=16"),
    MTF_PRESET_BY(build_alpa, "alpa-13b", "Alpa's, 12,633,141,160 parameters",
                  RESNET "layers=101 width=320 widening=16"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_resnet = {
    .name = "resnet",
    .summary = "residual networks, ResNeXt, Wide-ResNet as torchvision's and as Alpa's",
    .parameters = "layers batch image channels classes width widening groups stem norm-over",
    .presets = presets,
    .build = build,
};
