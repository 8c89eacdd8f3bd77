// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutional networks as people publish them (MtfConvolutions): stages of blocks that add to their input, each stage
 * but the first on half as many rows and columns.
 *
 *     ResNet      x ─┬─ conv 3x3 ─ conv 3x3, or 1x1, 3x3, 1x1, each with batch statistics ─┬─ + ─ relu
 *                    └─ (conv 1x1 where sizes change) ─────────────────────────────────────┘
 *     ConvNeXt    x ─┬─ 7x7 of each channel ─ norm ─ 1x1 to 4 times as many ─ gelu ─ (response norm) ─ 1x1 ─ (factors) ─┬─ +
 *                    └──────────────────────────────────────────────────────────────────────────────────────────────────┘ */
#include "analyzer/models/architecture.h"
#include "analyzer/models/images/image_layers.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
    MtfImageNet net;
    const MtfArchitecture *n;
    char *files; /* prefix of the part's tensors in files */
} Published;

/* Says that files keep the variable called `name` here as `file` with those sizes, or with its own (NULL). */
static void keep(Published *p, const char *name, const char *file, const char *sizes) {
    int variable = mtf_parts_find(p->net.p, name);
    g_autoptr(GString) own = g_string_new(sizes);
    if (p->net.p->b.error != NULL || variable < 0)
        return;
    MtfTensor *tensor = mtf_graph_tensor(p->net.p->b.graph, variable);
    for (int i = 0; i < tensor->shape.rank && sizes == NULL; i++)
        g_string_append_printf(own, "%s%" PRId64, i > 0 ? "," : "",
                               mtf_graph_size(p->net.p->b.graph, tensor->shape.dims[i]));
    g_free(tensor->stored);
    tensor->stored = g_strdup_printf("%s%s[%s]", p->files, file, own->str);
}

/* The tensors of a part in files, "NAME.weight" and the like. */
static void keep_all(Published *p, const char *part, const char *file,
                     const char *const (*names)[2]) {
    for (int i = 0; names[i][0] != NULL; i++) {
        g_autofree char *name = g_strdup_printf("%s/%s", part, names[i][0]);
        g_autofree char *place = g_strdup_printf("%s.%s", file, names[i][1]);
        keep(p, name, place, NULL);
    }
}

static int apply(Published *p, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(p->net.p, kind, name, NULL, x, y);
}

/* The norm over the channels of each place. */
static int norm_channels(Published *p, const char *name, const char *file, int dim, double epsilon,
                         int x) {
    static const char *const names[][2] = { { "scale", "weight" }, { "bias", "bias" }, { NULL } };
    MtfParts *parts = p->net.p;
    mtf_parts_enter(parts, name);
    int scale = mtf_parts_variable(parts, "scale", &(MtfShape){ 1, { dim } }, MTF_INIT_CONSTANT, 1);
    int bias = mtf_parts_variable(parts, "bias", &(MtfShape){ 1, { dim } }, MTF_INIT_CONSTANT, 0);
    parts->b.attributes.dimension = dim;
    parts->b.attributes.epsilon = epsilon;
    int y = mtf_parts_apply_to(parts, MTF_OP_LAYER_NORM, "y", 3, (int[]){ x, scale, bias });
    mtf_parts_leave(parts);
    keep_all(p, name, file, names);
    return y;
}

/* ---- ResNet ------------------------------------------------------------------------------------ */

/* A convolution with batch statistics; a product turns space to its other names where a sum needs that. */
static MtfImage convolve(Published *p, const char *name, const char *file, MtfImage x,
                         const MtfImageConv *conv) {
    static const char *const names[][2] = { { "w", "convolution.weight" },
                                            { "norm/scale", "normalization.weight" },
                                            { "norm/bias", "normalization.bias" },
                                            { "norm/mean", "normalization.running_mean" },
                                            { "norm/variance", "normalization.running_var" },
                                            { NULL } };
    MtfImage y = mtf_image_conv(&p->net, name, x, conv);
    keep_all(p, name, file, names);
    return y;
}

static MtfImageConv square(int64_t channels, int64_t kernel, int64_t stride, bool active) {
    return (MtfImageConv){ .channels = channels,
                           .window = mtf_image_window(kernel, stride, kernel / 2),
                           .norm = true,
                           .active = active };
}

static MtfImage residual_block(Published *p, MtfImage x, int64_t channels, int64_t stride) {
    const MtfConvolutions *c = &p->n->convolutions;
    MtfImage y;
    if (c->block == MTF_BLOCK_BASIC) {
        MtfImageConv first = square(channels, 3, stride, true);
        MtfImageConv second = square(channels, 3, 1, false);
        y = convolve(p, "conv2", "layer.1", convolve(p, "conv1", "layer.0", x, &first), &second);
    } else {
        bool early = c->shrinks_early;
        MtfImageConv first = square(channels / 4, 1, early ? stride : 1, true);
        MtfImageConv second = square(channels / 4, 3, early ? 1 : stride, true);
        MtfImageConv third = square(channels, 1, 1, false);
        third.turns = stride == 1;
        y = convolve(p, "conv1", "layer.0", x, &first);
        y = convolve(p, "conv2", "layer.1", y, &second);
        y = convolve(p, "conv3", "layer.2", y, &third);
    }
    MtfImageConv shortcut = square(channels, 1, stride, false);
    if (stride > 1 || x.channels != channels)
        x = convolve(p, "shortcut", "shortcut", x, &shortcut);
    return mtf_image_active(&p->net, "relu", mtf_image_add(&p->net, "sum", y, x));
}

static MtfImage residual_stem(Published *p, MtfImage x) {
    MtfImageConv conv = square(p->n->convolutions.embedding, 7, 2, true);
    MtfImageWindow window = mtf_image_window(3, 2, 1);
    x = convolve(p, "stem", "embedder.embedder", x, &conv);
    return mtf_image_pool(&p->net, "stem/pool", x, MTF_IMAGE_MAX, &window);
}

/* ---- ConvNeXt ---------------------------------------------------------------------------------- */

#define NORM_EPSILON 1e-6

/* A convolution with a bias; `flat`: files keep its filter as a matrix. */
static MtfImage with_bias(Published *p, const char *name, const char *file, MtfImage x,
                          MtfImageConv conv, bool flat) {
    g_autofree char *filter = g_strdup_printf("%s/w", name),
                    *bias = g_strdup_printf("%s/bias", name);
    g_autofree char *weight = g_strdup_printf("%s.weight", file);
    g_autofree char *of_bias = g_strdup_printf("%s.bias", file);
    int64_t side = conv.window.kernel[0];
    g_autofree char *sizes =
        flat ? g_strdup_printf("%" PRId64 ",%" PRId64, conv.channels, x.channels)
        : conv.depthwise
            ? g_strdup_printf("%" PRId64 ",1,%" PRId64 ",%" PRId64, x.channels, side, side)
            : NULL;
    conv.bias = true;
    MtfImage y = mtf_image_conv(&p->net, name, x, &conv);
    keep(p, filter, weight, sizes);
    keep(p, bias, of_bias, NULL);
    return y;
}

/* Global response normalisation (Woo and others, ConvNeXt V2, 2023, algorithm 1): with g the length of a channel over
 * all places, x + scale x g / (mean of g over channels + 1e-6) + bias. */
static int respond(Published *p, MtfImage x) {
    MtfParts *parts = p->net.p;
    MtfShape lengths = { 2, { p->net.batch, x.channel_dim } }, each = { 1, { p->net.batch } };
    MtfShape channels = { 1, { x.channel_dim } };
    g_autofree char *sizes = g_strdup_printf("1,1,1,%" PRId64, x.channels);
    int scale = mtf_parts_variable(parts, "response_scale", &channels, MTF_INIT_CONSTANT, 0);
    int bias = mtf_parts_variable(parts, "response_bias", &channels, MTF_INIT_CONSTANT, 0);
    keep(p, "response_scale", "grn.weight", sizes);
    keep(p, "response_bias", "grn.bias", sizes);
    int squares = apply(p, MTF_OP_SQUARE, "squares", x.tensor, -1);
    int sum = mtf_parts_apply(parts, MTF_OP_REDUCE_SUM, "power", &lengths, squares, -1);
    int length = apply(p, MTF_OP_SQRT, "lengths", sum, -1);
    int mean = mtf_parts_apply(parts, MTF_OP_REDUCE_MEAN, "mean_length", &each, length, -1);
    int some = mtf_parts_add(parts, "some_length", mean,
                             mtf_parts_constant(parts, "least_length", NORM_EPSILON));
    int share = apply(p, MTF_OP_DIVIDE, "share", length, some);
    int by_share = apply(p, MTF_OP_MULTIPLY, "by_share", x.tensor, share);
    int scaled = apply(p, MTF_OP_MULTIPLY, "response", by_share, scale);
    return mtf_parts_add(parts, "with_response", x.tensor,
                         mtf_parts_add(parts, "biased_response", scaled, bias));
}

static MtfImage next_block(Published *p, MtfImage x, int64_t channels) {
    const MtfConvolutions *c = &p->n->convolutions;
    MtfImageConv apart = { .channels = channels,
                           .window = mtf_image_window(7, 1, 3),
                           .depthwise = true };
    MtfImageConv up = { .channels = 4 * channels, .window = mtf_image_window(1, 1, 0) };
    MtfImageConv down = { .channels = channels, .window = mtf_image_window(1, 1, 0) };
    MtfImage y = with_bias(p, "apart", "dwconv", x, apart, false);
    y.tensor = norm_channels(p, "norm", "layernorm", y.channel_dim, NORM_EPSILON, y.tensor);
    y = with_bias(p, "up", "pwconv1", y, up, true);
    y.tensor = mtf_parts_activation(p->net.p, p->n->encoder.activation, y.tensor);
    if (c->block == MTF_BLOCK_CONVNEXT_V2)
        y.tensor = respond(p, y);
    y = with_bias(p, "down", "pwconv2", y, down, true);
    if (c->factors) {
        MtfShape shape = { 1, { y.channel_dim } };
        int factors = mtf_parts_variable(p->net.p, "factors", &shape, MTF_INIT_CONSTANT, 1e-6);
        keep(p, "factors", "layer_scale_parameter", NULL);
        y.tensor = apply(p, MTF_OP_MULTIPLY, "by_factors", y.tensor, factors);
    }
    return mtf_image_add(&p->net, "sum", x, y);
}

static MtfImage next_stem(Published *p, MtfImage x) {
    int64_t side = p->n->patch_size;
    MtfImageConv conv = { .channels = p->n->convolutions.widths[0],
                          .window = mtf_image_window(side, side, 0) };
    x = with_bias(p, "stem", "embeddings.patch_embeddings", x, conv, false);
    x.tensor = norm_channels(p, "stem_norm", "embeddings.layernorm", x.channel_dim, NORM_EPSILON,
                             x.tensor);
    return x;
}

/* Half as many rows and columns. */
static MtfImage shrink(Published *p, MtfImage x, int64_t channels) {
    MtfImageConv conv = { .channels = channels, .window = mtf_image_window(2, 2, 0) };
    x.tensor = norm_channels(p, "shrink_norm", "downsampling_layer.0", x.channel_dim, NORM_EPSILON,
                             x.tensor);
    return with_bias(p, "shrink", "downsampling_layer.1", x, conv, false);
}

/* ---- The whole --------------------------------------------------------------------------------- */

static bool is_residual(const Published *p) {
    return p->n->convolutions.block <= MTF_BLOCK_BOTTLENECK;
}

static MtfImage build_stage(Published *p, MtfImage x, int number) {
    const MtfConvolutions *c = &p->n->convolutions;
    bool halves = number > 0 || c->shrinks_first;
    g_autofree char *name = g_strdup_printf("stage%d", number + 1);
    p->files = g_strdup_printf("encoder.stages.%d.", number);
    mtf_parts_enter(p->net.p, name);
    if (!is_residual(p) && halves)
        x = shrink(p, x, c->widths[number]);
    mtf_parts_leave(p->net.p);
    g_free(p->files);
    for (int i = 0; i < (int)c->depths[number] && p->net.p->b.error == NULL; i++) {
        p->files = g_strdup_printf("encoder.stages.%d.layers.%d.", number, i);
        mtf_parts_enter_layer(p->net.p, name, i);
        x = is_residual(p) ? residual_block(p, x, c->widths[number], halves && i == 0 ? 2 : 1)
                           : next_block(p, x, c->widths[number]);
        mtf_parts_leave_layer(p->net.p);
        g_free(p->files);
    }
    p->files = (char *)"";
    return x;
}

/* Scores of classes, whose matrix files keep as [classes, channels], and their loss. */
static void classify(Published *p, int x, int channel_dim) {
    static const char *const names[][2] = { { "w", "weight" }, { "bias", "bias" }, { NULL } };
    MtfParts *parts = p->net.p;
    int classes = mtf_parts_dimension(parts, "classes", p->n->classes);
    MtfShape matrix = { 2, { classes, channel_dim } }, each = { 1, { p->net.batch } };
    MtfShape scores = { 2, { p->net.batch, classes } }, one = { 1, { classes } };
    mtf_parts_enter(parts, "classifier");
    int w = mtf_parts_variable(parts, "w", &matrix, MTF_INIT_NORMAL, p->n->spread);
    int bias = mtf_parts_variable(parts, "bias", &one, MTF_INIT_CONSTANT, 0);
    int y = mtf_parts_add(parts, "biased", mtf_parts_einsum(parts, "y", &scores, x, w), bias);
    mtf_parts_leave(parts);
    keep_all(p, "classifier", is_residual(p) ? "classifier.1" : "classifier", names);
    int labels = mtf_parts_input(parts, "labels", &each, MTF_I32, MTF_FEED_LABELS);
    int losses = mtf_parts_apply(parts, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &each, y, labels);
    parts->b.graph->loss =
        mtf_parts_apply(parts, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
}

/* With the model's own prefix: norms of blocks are called so, too. */
static const char *final_norm_file(const MtfArchitecture *n) {
    bool second = n->convolutions.block == MTF_BLOCK_CONVNEXT_V2;
    return second ? "convnextv2.layernorm" : "convnext.layernorm";
}

MtfGraph *mtf_convolutions_build(const MtfArchitecture *network, GError **error) {
    Published p = { .n = network, .files = (char *)"" };
    MtfModelSettings settings = { .batch = network->batch };
    const int64_t size[] = { network->image_size, network->image_size };
    mtf_image_net_init(&p.net, 2, &settings);
    MtfImage x = mtf_image_input(&p.net, network->channels, size);
    x = is_residual(&p) ? residual_stem(&p, x) : next_stem(&p, x);
    for (int i = 0; i < network->convolutions.stages; i++)
        x = build_stage(&p, x, i);
    int mean = mtf_image_mean(&p.net, x);
    if (!is_residual(&p))
        mean = norm_channels(&p, "final_norm", final_norm_file(network), x.channel_dim,
                             network->epsilon, mean);
    classify(&p, mean, x.channel_dim);
    return mtf_parts_end(p.net.p, error);
}
