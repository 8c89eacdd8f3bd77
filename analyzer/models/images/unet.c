// SPDX-License-Identifier: GPL-3.0-or-later
/* U-Nets: a class for each place of a picture or a volume. On the way down space halves, on the way
 * up it doubles, and what was there before is put beside it.
 *
 *     x ─ conv conv ───────────────────────────── concat ─ conv conv ─ conv 1 ─► classes
 *            └ pool ─ conv conv ──────── concat ─ conv conv ┘ up
 *                        └ pool ─ conv conv ┘ up
 *
 *     presets          whose                                   block on level i           up
 *     unet-2d          Ronneberger and others, 2015, filled    2 x width 2^i, biases      halves
 *                      up so that sizes stay                                              channels
 *     unet-3d          Cicek and others, 2016, as LBANN        width 2^i, width 2^(i+1),  keeps
 *                      builds it                               norms                      them
 *     mesh             Mesh-TensorFlow's experimental/unet.py  2 x width 2^i, norms,      halves
 *                                                              leaky relu, dropout        channels  */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

#define MOST_LEVELS 8

typedef struct {
    MtfImageNet net;
    const MtfModelSettings *s;
    bool biases, norm;
    bool growing;  /* the second convolution of a block has twice the first one's channels */
    bool up_keeps; /* going up leaves the number of channels as it is */
} UNet;

static MtfImage convolve(UNet *u, const char *name, MtfImage x, int64_t channels) {
    MtfImageConv conv = { .channels = channels,
                          .window = mtf_image_window(3, 1, 1),
                          .bias = u->biases,
                          .norm = u->norm,
                          .active = true };
    return mtf_image_conv(&u->net, name, x, &conv);
}

static MtfImage block(UNet *u, MtfImage x, int64_t first, int64_t second) {
    x = convolve(u, "conv1", x, first);
    x.tensor = mtf_parts_dropout(u->net.p, "dropped", u->s->dropout, x.tensor);
    return convolve(u, "conv2", x, second);
}

/* A level on the way down, which is a layer with the pool that leads to it. */
static MtfImage down(UNet *u, MtfImage x, int level) {
    int64_t channels = u->s->width << level;
    MtfImageWindow window = mtf_image_window(2, 2, 0);
    mtf_parts_enter_layer(u->net.p, "down", level);
    x = level > 0 ? mtf_image_pool(&u->net, "pool", x, MTF_IMAGE_MAX, &window) : x;
    x = block(u, x, channels, u->growing ? 2 * channels : channels);
    mtf_parts_leave_layer(u->net.p);
    return x;
}

/* Doubles space, and joins what came by on that level; number 0 is the lowest. */
static MtfImage up(UNet *u, MtfImage x, MtfImage beside, int number) {
    MtfImageConv conv = { .channels = u->up_keeps ? x.channels : x.channels / 2,
                          .window = mtf_image_window(2, 2, 0),
                          .bias = u->biases,
                          .transposed = true };
    mtf_parts_enter_layer(u->net.p, "up", number);
    x = mtf_image_conv(&u->net, "widen", x, &conv);
    x = mtf_image_concat(&u->net, "joined", (MtfImage[]){ beside, x }, 2);
    x = block(u, x, beside.channels, beside.channels);
    mtf_parts_leave_layer(u->net.p);
    return x;
}

static MtfImage contract_and_expand(UNet *u, MtfImage x) {
    MtfImage levels[MOST_LEVELS];
    int last = (int)u->s->layers - 1;
    for (int i = 0; i <= last; i++)
        x = levels[i] = down(u, x, i);
    for (int i = 0; i < last; i++)
        x = up(u, x, levels[last - 1 - i], i);
    return x;
}

/* Each level but the lowest is halved on the way down and doubled on the way up, to what is put beside it. */
static bool sides_halve(const MtfModelSettings *s, GError **error) {
    if (s->layers < 1 || s->layers > MOST_LEVELS)
        return mtf_input_error(error, "--layers: a U-Net has 1 to %d levels, not %" PRId64,
                               MOST_LEVELS, s->layers);
    int64_t times = INT64_C(1) << (s->layers - 1), below = s->image - s->image % times;
    if (below == s->image)
        return true;
    return mtf_input_error(error,
                           "--image: a side of %" PRId64 " is no multiple of %" PRId64
                           ", so that %" PRId64
                           " levels cannot halve it and come back to it: give %" PRId64,
                           s->image, times, s->layers, below > 0 ? below : times);
}

static MtfGraph *build_unet(UNet *u, int axes, const MtfModelSettings *s, GError **error) {
    const int64_t size[] = { s->image, s->image, s->image };
    if (!sides_halve(s, error))
        return NULL;
    u->s = s;
    mtf_image_net_init(&u->net, axes, s);
    MtfImage x = contract_and_expand(u, mtf_image_input(&u->net, s->channels, size));
    MtfImageConv last = { .channels = s->classes,
                          .window = mtf_image_window(1, 1, 0),
                          .bias = u->biases };
    mtf_image_label_places(&u->net, mtf_image_conv(&u->net, "classes", x, &last));
    return mtf_parts_end(u->net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    return build_unet(&(UNet){ .biases = true }, 2, s, error);
}

static MtfGraph *build_3d(const MtfModelSettings *s, GError **error) {
    return build_unet(&(UNet){ .norm = true, .growing = true, .up_keeps = true }, 3, s, error);
}

static MtfGraph *build_mesh(const MtfModelSettings *s, GError **error) {
    UNet u = { .norm = true, .net = { .slope = 0.1 } };
    return build_unet(&u, 3, s, error);
}

#define UNET "batch=1 channels=1 optimizer=adam schedule=constant rate=1e-3 "

static const MtfModelPreset presets[] = {
    MTF_PRESET_BY(build_3d, "tiny", "cubes of 8 on two levels, trains in seconds",
                  "layers=2 batch=2 image=8 channels=1 width=4 classes=3 optimizer=adam "
                  "schedule=constant rate=3e-3"),
    MTF_PRESET("unet-2d", "pictures of 512, 31,030,658 parameters",
               UNET "layers=5 image=512 width=64 classes=2"),
    MTF_PRESET_BY(build_3d, "unet-3d", "LBANN's, cubes of 128, 19,070,560 parameters",
                  UNET "layers=4 image=128 width=32 classes=3"),
    MTF_PRESET_BY(build_3d, "unet-3d-256", "the same, cubes of 256",
                  UNET "layers=4 image=256 width=32 classes=3"),
    MTF_PRESET_BY(build_mesh, "mesh", "Mesh-TensorFlow's, cubes of 128, 5,600,960 parameters",
                  UNET "layers=4 image=128 width=32 classes=3"),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_unet = {
    .name = "unet",
    .summary = "a class for each place of pictures or volumes",
    .parameters = "layers batch image channels width classes dropout norm-over",
    .presets = presets,
    .build = build,
};
