// SPDX-License-Identifier: GPL-3.0-or-later
/* AlexNet (Krizhevsky and others, "ImageNet classification with deep convolutional neural networks",
 * 2012) on pictures of 227:
 *
 *     conv 96@11x11/4 ─ pool ─ conv 256@5x5 ─ pool ─ conv 384, 384, 256@3x3 ─ pool ─ 4096 ─ 4096 ─ 1000
 *
 * "alexnet" as PaSE and others train it, in one piece; "bvlc" as Caffe's reference model has it: the
 * second, fourth and fifth convolutions in two groups, response normalisation before the first two
 * pools; "torchvision" on pictures of 224, with the channels of "One weird trick" (Krizhevsky, 2014):
 * 64, 192, 384, 256, 256. */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

typedef struct {
    MtfImageNet net;
    int64_t width; /* 32: the paper's */
    bool grouped;
    bool later; /* the channels of 2014 */
} AlexNet;

static MtfImage convolve(AlexNet *a, const char *name, MtfImage x, int64_t channels,
                         const MtfImageWindow *window, bool grouped) {
    MtfImageConv conv = { .channels = channels,
                          .window = *window,
                          .groups = grouped ? 2 : 1,
                          .bias = true,
                          .active = true };
    return mtf_image_conv(&a->net, name, x, &conv);
}

static MtfImage pool(AlexNet *a, const char *name, MtfImage x) {
    MtfImageWindow window = mtf_image_window(3, 2, 0);
    return mtf_image_pool(&a->net, name, x, MTF_IMAGE_MAX, &window);
}

static MtfImage features(AlexNet *a, MtfImage x, const MtfModelSettings *s) {
    int64_t w = a->width;
    bool large = !mtf_image_stem_is_small(s), g = a->grouped, later = a->later;
    MtfImageWindow first =
        large ? mtf_image_window(11, 4, later ? 2 : 0) : mtf_image_window(3, 1, 1);
    MtfImageWindow second = mtf_image_window(5, 1, 2), third = mtf_image_window(3, 1, 1);
    x = convolve(a, "conv1", x, (later ? 2 : 3) * w, &first, false);
    x = pool(a, "pool1", g ? mtf_image_response_norm(&a->net, "norm1", x) : x);
    x = convolve(a, "conv2", x, (later ? 6 : 8) * w, &second, g);
    x = pool(a, "pool2", g ? mtf_image_response_norm(&a->net, "norm2", x) : x);
    x = convolve(a, "conv3", x, 12 * w, &third, false);
    x = convolve(a, "conv4", x, (later ? 8 : 12) * w, &third, g);
    x = convolve(a, "conv5", x, 8 * w, &third, g);
    return pool(a, "pool5", x);
}

static MtfGraph *build_alexnet(AlexNet *a, const MtfModelSettings *s, GError **error) {
    const int64_t size[] = { s->image, s->image };
    a->width = s->width;
    if (a->grouped && s->width % 2 != 0) {
        mtf_input_error(error,
                        "--width: %" PRId64 " is odd, but the second convolution reads 3 times as "
                        "many channels in two groups",
                        s->width);
        return NULL;
    }
    mtf_image_net_init(&a->net, 2, s);
    MtfImage x = features(a, mtf_image_input(&a->net, s->channels, size), s);
    int y = mtf_image_dense_active(&a->net, "dense6", x.tensor, s->hidden);
    y = mtf_image_dense_active(&a->net, "dense7", y, s->hidden);
    mtf_image_classify(&a->net, y, s->classes);
    return mtf_parts_end(a->net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    return build_alexnet(&(AlexNet){ .grouped = false }, s, error);
}

static MtfGraph *build_grouped(const MtfModelSettings *s, GError **error) {
    return build_alexnet(&(AlexNet){ .grouped = true }, s, error);
}

static MtfGraph *build_later(const MtfModelSettings *s, GError **error) {
    return build_alexnet(&(AlexNet){ .later = true }, s, error);
}

#define ALEXNET                                                                                  \
    "batch=128 channels=3 width=32 stem=large hidden=4096 optimizer=momentum schedule=constant " \
    "rate=0.01 "

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "pictures of 16 by 16, trains in seconds",
               "batch=16 image=16 channels=1 classes=10 width=4 hidden=32 optimizer=adam "
               "schedule=constant rate=1e-3"),
    MTF_PRESET("alexnet", "without groups, 62,378,344 parameters",
               ALEXNET "image=227 classes=1000"),
    MTF_PRESET_BY(build_grouped, "bvlc", "with groups as in bvlc_alexnet, 60,965,224 parameters",
                  ALEXNET "image=227 classes=1000"),
    MTF_PRESET_BY(build_later, "torchvision", "torchvision's, 61,100,840 parameters",
                  ALEXNET "image=224 classes=1000"),
    MTF_PRESET("pase", "PaSE's, 1024 classes", ALEXNET "image=227 classes=1024"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_alexnet = {
    .name = "alexnet",
    .summary = "five convolutions and three dense layers",
    .parameters = "batch image channels classes width hidden stem",
    .presets = presets,
    .build = build,
};
