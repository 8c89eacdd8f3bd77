// SPDX-License-Identifier: GPL-3.0-or-later
/* Inception v3 (Szegedy and others, "Rethinking the Inception architecture", 2015), as torchvision
 * and PaSE build it. Each module runs x through branches and puts their channels side by side:
 *
 *     module      branches (a size is one of its convolution, 7 is 1x7 or 7x1)
 *     A           1 │ 1 5 │ 1 3 3 │ mean 1
 *     B           3/2 │ 1 3 3/2 │ max/2
 *     C           1 │ 1 1x7 7x1 │ 1 7x1 1x7 7x1 1x7 │ mean 1
 *     D           1 3/2 │ 1 1x7 7x1 3/2 │ max/2
 *     E           1 │ 1 (1x3 │ 3x1) │ 1 3 (1x3 │ 3x1) │ mean 1
 *
 * Every convolution is followed by a norm with epsilon 1e-3 and a relu. Scores begin nearly equal, as those of
 * torchvision's second head do: gradients grow from norm to norm, and with them what a relu changes that a
 * rounding turns. "…-aux" has a second head behind the last C, whose loss counts 0.4. All channels are multiples of `width` / 64. Three A, four
 * C and two E follow one another; the last `layers` of each with fewer of those. Each is a layer of
 * the block that is called like its kind, "c/2". */
#include "analyzer/models/images/image_layers.h"
#include "analyzer/models/model_family.h"
#include "layouts/base/error.h"

#include <inttypes.h>

typedef struct {
    MtfImageNet net;
    int64_t width, layers;
} Inception;

/* A convolution of a branch: rows x columns of its window, "a 7" being 1x7 or 7x1. */
typedef struct {
    int64_t channels; /* 0: the branch is over */
    int64_t rows, columns, stride;
} Step;

#define MOST_STEPS 6

static MtfImage step(Inception *n, const char *name, MtfImage x, const Step *s, bool padded) {
    MtfImageConv conv = { .channels = MAX(1, s->channels * n->width / 64),
                          .window = { .kernel = { s->rows, s->columns },
                                      .stride = { s->stride, s->stride } },
                          .norm = true,
                          .active = true };
    for (int i = 0; i < 2; i++)
        conv.window.before[i] = conv.window.after[i] = padded ? conv.window.kernel[i] / 2 : 0;
    return mtf_image_conv(&n->net, name, x, &conv);
}

/* Convolutions one after another. With a stride above 1 nothing is padded. */
static MtfImage branch(Inception *n, const char *name, MtfImage x, const Step *steps) {
    for (int i = 0; i < MOST_STEPS && steps[i].channels > 0; i++) {
        g_autofree char *part = g_strdup_printf("%s/%d", name, i);
        x = step(n, part, x, &steps[i], steps[i].stride == 1);
    }
    return x;
}

static MtfImage mean_branch(Inception *n, MtfImage x, int64_t channels) {
    MtfImageWindow window = mtf_image_window(3, 1, 1);
    MtfImage y = mtf_image_pool(&n->net, "mean", x, MTF_IMAGE_AVERAGE, &window);
    return branch(n, "projected", y, (Step[]){ { channels, 1, 1, 1 }, { 0 } });
}

static MtfImage max_branch(Inception *n, MtfImage x) {
    MtfImageWindow window = mtf_image_window(3, 2, 0);
    return mtf_image_pool(&n->net, "max", x, MTF_IMAGE_MAX, &window);
}

static MtfImage join(Inception *n, const MtfImage *parts, int count) {
    MtfImage y = mtf_image_concat(&n->net, "joined", parts, count);
    mtf_parts_leave_layer(n->net.p);
    return y;
}

static MtfImage module_a(Inception *n, int number, MtfImage x, int64_t projected) {
    mtf_parts_enter_layer(n->net.p, "a", number);
    MtfImage parts[] = {
        branch(n, "one", x, (Step[]){ { 64, 1, 1, 1 }, { 0 } }),
        branch(n, "five", x, (Step[]){ { 48, 1, 1, 1 }, { 64, 5, 5, 1 }, { 0 } }),
        branch(n, "three", x, (Step[]){ { 64, 1, 1, 1 }, { 96, 3, 3, 1 }, { 96, 3, 3, 1 }, { 0 } }),
        mean_branch(n, x, projected),
    };
    return join(n, parts, 4);
}

static MtfImage module_b(Inception *n, MtfImage x) {
    mtf_parts_enter_layer(n->net.p, "b", 0);
    MtfImage parts[] = {
        branch(n, "three", x, (Step[]){ { 384, 3, 3, 2 }, { 0 } }),
        branch(n, "twice", x, (Step[]){ { 64, 1, 1, 1 }, { 96, 3, 3, 1 }, { 96, 3, 3, 2 }, { 0 } }),
        max_branch(n, x),
    };
    return join(n, parts, 3);
}

static MtfImage module_c(Inception *n, int number, MtfImage x, int64_t c7) {
    mtf_parts_enter_layer(n->net.p, "c", number);
    MtfImage parts[] = {
        branch(n, "one", x, (Step[]){ { 192, 1, 1, 1 }, { 0 } }),
        branch(n, "seven", x,
               (Step[]){ { c7, 1, 1, 1 }, { c7, 1, 7, 1 }, { 192, 7, 1, 1 }, { 0 } }),
        branch(n, "twice", x,
               (Step[]){ { c7, 1, 1, 1 },
                         { c7, 7, 1, 1 },
                         { c7, 1, 7, 1 },
                         { c7, 7, 1, 1 },
                         { 192, 1, 7, 1 },
                         { 0 } }),
        mean_branch(n, x, 192),
    };
    return join(n, parts, 4);
}

static MtfImage module_d(Inception *n, MtfImage x) {
    mtf_parts_enter_layer(n->net.p, "d", 0);
    MtfImage parts[] = {
        branch(n, "three", x, (Step[]){ { 192, 1, 1, 1 }, { 320, 3, 3, 2 }, { 0 } }),
        branch(n, "seven", x,
               (Step[]){
                   { 192, 1, 1, 1 }, { 192, 1, 7, 1 }, { 192, 7, 1, 1 }, { 192, 3, 3, 2 }, { 0 } }),
        max_branch(n, x),
    };
    return join(n, parts, 3);
}

static MtfImage module_e(Inception *n, int number, MtfImage x) {
    mtf_parts_enter_layer(n->net.p, "e", number);
    MtfImage three = branch(n, "three", x, (Step[]){ { 384, 1, 1, 1 }, { 0 } });
    MtfImage twice = branch(n, "twice", x, (Step[]){ { 448, 1, 1, 1 }, { 384, 3, 3, 1 }, { 0 } });
    MtfImage parts[] = {
        branch(n, "one", x, (Step[]){ { 320, 1, 1, 1 }, { 0 } }),
        branch(n, "three/rows", three, (Step[]){ { 384, 1, 3, 1 }, { 0 } }),
        branch(n, "three/columns", three, (Step[]){ { 384, 3, 1, 1 }, { 0 } }),
        branch(n, "twice/rows", twice, (Step[]){ { 384, 1, 3, 1 }, { 0 } }),
        branch(n, "twice/columns", twice, (Step[]){ { 384, 3, 1, 1 }, { 0 } }),
        mean_branch(n, x, 192),
    };
    return join(n, parts, 6);
}

static MtfImage stem(Inception *n, MtfImage x) {
    mtf_parts_enter(n->net.p, "stem");
    x = step(n, "conv1", x, &(Step){ 32, 3, 3, 2 }, false);
    x = step(n, "conv2", x, &(Step){ 32, 3, 3, 1 }, false);
    x = step(n, "conv3", x, &(Step){ 64, 3, 3, 1 }, true);
    MtfImageWindow window = mtf_image_window(3, 2, 0);
    x = mtf_image_pool(&n->net, "pool1", x, MTF_IMAGE_MAX, &window);
    x = step(n, "conv4", x, &(Step){ 80, 1, 1, 1 }, false);
    x = step(n, "conv5", x, &(Step){ 192, 3, 3, 1 }, false);
    x = mtf_image_pool(&n->net, "pool2", x, MTF_IMAGE_MAX, &window);
    mtf_parts_leave(n->net.p);
    return x;
}

/* The scores of the second head. */
static int second_head(Inception *n, MtfImage x, int64_t classes) {
    MtfImageWindow window = mtf_image_window(5, 3, 0);
    mtf_parts_enter(n->net.p, "second");
    x = mtf_image_pool(&n->net, "pool", x, MTF_IMAGE_AVERAGE, &window);
    x = step(n, "conv1", x, &(Step){ 128, 1, 1, 1 }, false);
    x = step(n, "conv2", x, &(Step){ 768, 5, 5, 1 }, false);
    int y = mtf_image_dense_to(&n->net, "scores", mtf_image_mean(&n->net, x), classes);
    mtf_parts_leave(n->net.p);
    return y;
}

#define AS 3
#define CS 4
#define ES 2

/* Which of `all` modules alike is the first. */
static int first_of(const Inception *n, int all) {
    return (int)MAX(0, all - n->layers);
}

static MtfImage modules_a(Inception *n, MtfImage x) {
    static const int projected[AS] = { 32, 64, 64 };
    int first = first_of(n, AS);
    for (int i = first; i < AS; i++)
        x = module_a(n, i - first, x, projected[i]);
    return x;
}

static MtfImage modules_c(Inception *n, MtfImage x) {
    static const int sevens[CS] = { 128, 160, 160, 192 };
    int first = first_of(n, CS);
    for (int i = first; i < CS; i++)
        x = module_c(n, i - first, x, sevens[i]);
    return x;
}

static MtfImage modules_e(Inception *n, MtfImage x) {
    int first = first_of(n, ES);
    for (int i = first; i < ES; i++)
        x = module_e(n, i - first, x);
    return x;
}

static MtfGraph *build_inception(const MtfModelSettings *s, bool second, GError **error) {
    const int64_t size[] = { s->image, s->image };
    if (s->layers < 1 || s->layers > CS) {
        mtf_input_error(error, "--layers: Inception v3 has 1 to %d modules of a kind, not %" PRId64,
                        CS, s->layers);
        return NULL;
    }
    Inception n = { .width = s->width, .layers = s->layers };
    mtf_image_net_init(&n.net, 2, s);
    n.net.epsilon = 1e-3;
    n.net.spread = 1e-3;
    MtfImage x = stem(&n, mtf_image_input(&n.net, s->channels, size));
    x = modules_c(&n, module_b(&n, modules_a(&n, x)));
    int other = second ? second_head(&n, x, s->classes) : -1;
    x = modules_e(&n, module_d(&n, x));
    mtf_image_classify(&n.net, mtf_image_mean(&n.net, x), s->classes);
    if (second)
        mtf_image_classify_too(&n.net, other, 0.4);
    return mtf_parts_end(n.net.p, error);
}

static MtfGraph *build(const MtfModelSettings *s, GError **error) {
    return build_inception(s, false, error);
}

static MtfGraph *build_with_second(const MtfModelSettings *s, GError **error) {
    return build_inception(s, true, error);
}

#define INCEPTION                                                                       \
    "layers=4 batch=256 image=299 channels=3 width=64 classes=1000 optimizer=momentum " \
    "schedule=cosine rate=0.045 total=450000"

static const MtfModelPreset presets[] = {
    MTF_PRESET("tiny", "one module of each kind, a sixteenth of the channels, trains in seconds",
               "layers=1 batch=8 image=107 channels=1 width=4 classes=10 optimizer=momentum "
               "schedule=constant rate=2e-4"),
    MTF_PRESET("inception3", "without a second head, 23,834,568 parameters", INCEPTION),
    MTF_PRESET_BY(build_with_second, "inception3-aux", "with it, 27,161,264 parameters", INCEPTION),
    MTF_NO_PRESET,
};

const MtfModelFamily mtf_model_inception3 = {
    .name = "inception3",
    .summary = "Inception v3: branches side by side",
    .parameters = "layers batch image channels width classes norm-over",
    .presets = presets,
    .build = build,
};
