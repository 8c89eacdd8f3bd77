// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/images/image_layers.h"

#include "layouts/base/error.h"
#include "layouts/graph/operation_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const axis_names[] = { "rows", "columns", "layers" };

MtfImageWindow mtf_image_window(int64_t kernel, int64_t stride, int64_t padding) {
    MtfImageWindow window;
    for (int i = 0; i < MTF_IMAGE_AXES; i++) {
        window.kernel[i] = kernel;
        window.stride[i] = stride;
        window.before[i] = window.after[i] = padding;
    }
    return window;
}

void mtf_image_net_init(MtfImageNet *net, int axes, const MtfModelSettings *settings) {
    net->p = mtf_parts_new();
    net->axes = axes;
    net->epsilon = 1e-5;
    net->momentum = 0.1;
    net->whole = g_strcmp0(settings->norm_over, "step") == 0;
    net->batch = mtf_parts_dimension(net->p, "batch", settings->batch);
}

bool mtf_image_stem_is_small(const MtfModelSettings *settings) {
    return settings->stem != NULL ? strcmp(settings->stem, "small") == 0 : settings->image <= 64;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

/* A dimension that belongs to no part, made once for each name and size. */
static int shared_dimension(MtfImageNet *net, const char *stem, int64_t size) {
    if (net->p->b.error != NULL)
        return -1;
    g_autofree char *name = g_strdup_printf("%s_%" PRId64, stem, size);
    int known = mtf_graph_find_dimension(net->p->b.graph, name);
    return known >= 0 ? known : mtf_parts_dimension(net->p, name, size);
}

/* Channels last: what goes over all channels of a place, norms and products, reads them side by side. */
static MtfShape image_shape(const MtfImageNet *net, const MtfImage *x) {
    MtfShape shape = { 1, { net->batch } };
    for (int i = 0; i < net->axes; i++)
        mtf_shape_append(&shape, x->space[i]);
    mtf_shape_append(&shape, x->channel_dim);
    return shape;
}

static MtfImage fail_size(MtfImageNet *net, const char *name, MtfImage x) {
    if (net->p->b.error == NULL)
        mtf_input_error(&net->p->b.error,
                        "\"%s\": pictures are too small, nothing is left of a side of %" PRId64
                        ": give a larger --image",
                        name, x.size[0]);
    return x;
}

MtfImage mtf_image_input(MtfImageNet *net, int64_t channels, const int64_t *size) {
    MtfImage x = { .channels = channels,
                   .channel_dim = mtf_parts_dimension(net->p, "channels", channels) };
    for (int i = 0; i < net->axes; i++) {
        x.size[i] = size[i];
        x.space[i] = shared_dimension(net, axis_names[i], size[i]);
    }
    MtfShape shape = { 2, { net->batch, x.channel_dim } }; /* as files of pictures have them */
    for (int i = 0; i < net->axes; i++)
        mtf_shape_append(&shape, x.space[i]);
    x.tensor = mtf_parts_input(net->p, "image", &shape, MTF_F32, MTF_FEED_FEATURES);
    return x;
}

/* The dimension of a size, or where windows read that one, its twin: what they read and what they
 * make are two. */
static int made_dimension(MtfImageNet *net, int axis, int64_t size, int read) {
    int dim = shared_dimension(net, axis_names[axis], size);
    if (dim != read)
        return dim;
    g_autofree char *stem = g_strdup_printf("other_%s", axis_names[axis]);
    return shared_dimension(net, stem, size);
}

/* What a window makes of the space of x; false where nothing is left. */
static bool set_space(MtfImageNet *net, MtfImage *y, const MtfImageWindow *w, bool transposed) {
    for (int i = 0; i < net->axes; i++) {
        int64_t padded = y->size[i] + w->before[i] + w->after[i] - w->kernel[i];
        y->size[i] =
            transposed ? (y->size[i] - 1) * w->stride[i] + w->kernel[i] - w->before[i] - w->after[i]
                       : padded / w->stride[i] + 1;
        if (padded < 0 || y->size[i] < 1)
            return false;
        y->space[i] = made_dimension(net, i, y->size[i], y->space[i]);
    }
    return true;
}

static int rename_dim(MtfImageNet *net, const char *name, int x, int from, int to) {
    net->p->b.attributes.from = from;
    net->p->b.attributes.to = to;
    return mtf_parts_apply(net->p, MTF_OP_RENAME, name, NULL, x, -1);
}

static int float_range(MtfImageNet *net, const char *name, int dim) {
    net->p->b.has_dtype = true;
    net->p->b.dtype = MTF_F32;
    return mtf_parts_range(net->p, name, dim);
}

/* The windows as the next operation's attributes: from `x` to `y`, whose filter has `kernels`. */
static void set_windows(MtfImageNet *net, const MtfImage *x, const MtfImage *y,
                        const MtfImageWindow *w, const int *kernels) {
    MtfAttributes *a = &net->p->b.attributes;
    a->n_windows = net->axes;
    for (int i = 0; i < net->axes; i++)
        a->windows[i] = (MtfWindow){ .from = x->space[i],
                                     .to = y->space[i],
                                     .kernel = kernels != NULL ? kernels[i] : -1,
                                     .size = kernels != NULL ? 1 : (int)w->kernel[i],
                                     .stride = (int)w->stride[i],
                                     .dilation = 1,
                                     .before = (int)w->before[i],
                                     .after = (int)w->after[i] };
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* Dimensions of a filter: [groups,] outputs, inputs (-1: what is made is what is read), kernels…. */
typedef struct {
    MtfShape shape;
    int kernels[MTF_IMAGE_AXES];
    int64_t inputs; /* products that make one output */
} Filter;

static Filter filter_of(MtfImageNet *net, int groups, int outputs, int inputs,
                        const MtfImageWindow *w) {
    Filter filter = { .inputs = inputs >= 0 ? mtf_graph_size(net->p->b.graph, inputs) : 1 };
    if (groups >= 0)
        mtf_shape_append(&filter.shape, groups);
    mtf_shape_append(&filter.shape, outputs);
    if (inputs >= 0)
        mtf_shape_append(&filter.shape, inputs);
    for (int i = 0; i < net->axes; i++) {
        g_autofree char *stem = g_strdup_printf("kernel_%s", axis_names[i]);
        filter.kernels[i] = shared_dimension(net, stem, w->kernel[i]);
        filter.inputs *= w->kernel[i];
        mtf_shape_append(&filter.shape, filter.kernels[i]);
    }
    return filter;
}

/* One product a place: a matrix, which needs no windows. */
static bool is_product(const MtfImageNet *net, const MtfImageWindow *w) {
    for (int i = 0; i < net->axes; i++)
        if (w->kernel[i] > 1 || w->stride[i] > 1 || w->before[i] > 0 || w->after[i] > 0)
            return false;
    return true;
}

/* y is complete but for its tensor. */
static int apply_filter(MtfImageNet *net, const MtfImage *x, const MtfImage *y,
                        const MtfImageConv *conv, const Filter *filter) {
    MtfShape shape = image_shape(net, y);
    int w = mtf_parts_variable(net->p, "w", &filter->shape, MTF_INIT_NORMAL,
                               sqrt(2 / (double)filter->inputs));
    if (!conv->transposed && !conv->turns && is_product(net, &conv->window))
        return mtf_parts_einsum(net->p, "y", &shape, x->tensor, w);
    set_windows(net, x, y, &conv->window, filter->kernels);
    return mtf_parts_apply(net->p, conv->transposed ? MTF_OP_CONV_TRANSPOSE : MTF_OP_CONV, "y",
                           &shape, x->tensor, w);
}

static int add_bias(MtfImageNet *net, const MtfImage *y) {
    MtfShape shape = { 1, { y->channel_dim } };
    int bias = mtf_parts_variable(net->p, "bias", &shape, MTF_INIT_CONSTANT, 0);
    return mtf_parts_add(net->p, "biased", y->tensor, bias);
}

static MtfImage activate(MtfImageNet *net, const char *name, MtfImage x) {
    if (net->slope > 0)
        net->p->b.attributes.slope = net->slope;
    x.tensor = mtf_parts_apply(net->p, net->slope > 0 ? MTF_OP_LEAKY_RELU : MTF_OP_RELU, name, NULL,
                               x.tensor, -1);
    return x;
}

/* x with its channels in groups: a dimension of groups before one of channels in each. */
static int split_channels(MtfImageNet *net, MtfImage *x, int64_t groups, int group_dim) {
    MtfShape shape = { 1, { net->batch } };
    x->channel_dim = shared_dimension(net, "channels", x->channels / groups);
    for (int i = 0; i < net->axes; i++)
        mtf_shape_append(&shape, x->space[i]);
    mtf_shape_append(&shape, group_dim);
    mtf_shape_append(&shape, x->channel_dim);
    return mtf_parts_apply(net->p, MTF_OP_RESHAPE, "grouped", &shape, x->tensor, -1);
}

/* A convolution of each group of channels with filters of its own. y has all but its tensor. */
static int convolve_groups(MtfImageNet *net, MtfImage x, const MtfImage *y,
                           const MtfImageConv *conv) {
    int groups = shared_dimension(net, "groups", conv->groups);
    int outputs = shared_dimension(net, "grouped", conv->channels / conv->groups);
    int grouped = split_channels(net, &x, conv->groups, groups);
    if (net->p->b.error != NULL)
        return -1;
    Filter filter = filter_of(net, groups, outputs, x.channel_dim, &conv->window);
    int w = mtf_parts_variable(net->p, "w", &filter.shape, MTF_INIT_NORMAL,
                               sqrt(2 / (double)filter.inputs));
    MtfShape shape = { 1, { net->batch } }, joined = image_shape(net, y);
    for (int i = 0; i < net->axes; i++)
        mtf_shape_append(&shape, y->space[i]);
    mtf_shape_append(&shape, groups);
    mtf_shape_append(&shape, outputs);
    set_windows(net, &x, y, &conv->window, filter.kernels);
    int made = mtf_parts_apply(net->p, MTF_OP_CONV, "y_grouped", &shape, grouped, w);
    return mtf_parts_apply(net->p, MTF_OP_RESHAPE, "y", &joined, made, -1);
}

static int convolve(MtfImageNet *net, const MtfImage *x, const MtfImage *y,
                    const MtfImageConv *conv) {
    if (net->p->b.error != NULL)
        return -1;
    if (conv->groups > 1)
        return convolve_groups(net, *x, y, conv);
    int inputs = conv->depthwise ? -1 : x->channel_dim;
    Filter filter = filter_of(net, -1, y->channel_dim, inputs, &conv->window);
    return apply_filter(net, x, y, conv, &filter);
}

/* Channels that are read and made have two names where they are as many. */
static int made_channels(MtfImageNet *net, int64_t channels, int read) {
    int dim = shared_dimension(net, "channels", channels);
    return dim != read ? dim : shared_dimension(net, "other_channels", channels);
}

MtfImage mtf_image_conv(MtfImageNet *net, const char *name, MtfImage x, const MtfImageConv *conv) {
    MtfImage y = x;
    y.channels = conv->channels;
    if (!conv->depthwise)
        y.channel_dim = made_channels(net, conv->channels, x.channel_dim);
    bool product =
        !conv->transposed && !conv->turns && conv->groups < 2 && is_product(net, &conv->window);
    if (!product && !set_space(net, &y, &conv->window, conv->transposed))
        return fail_size(net, name, x);
    mtf_parts_enter(net->p, name);
    y.tensor = convolve(net, &x, &y, conv);
    if (conv->bias)
        y.tensor = add_bias(net, &y);
    if (conv->norm)
        y = mtf_image_norm(net, "norm", y);
    if (conv->active)
        y = activate(net, "active", y);
    mtf_parts_leave(net->p);
    return y;
}

MtfImage mtf_image_active(MtfImageNet *net, const char *name, MtfImage x) {
    return activate(net, name, x);
}

/* ---- Norms ----------------------------------------------------------------------------------- */

/* The running statistic becomes old (1 - momentum) + `now` momentum `correction` after each step; x is
 * normalised by `now` in training, and by the running one where nothing is learned. */
static int run_statistic(MtfImageNet *net, const char *name, int old, int now, double correction) {
    g_autofree char *kept = g_strdup_printf("%s_kept", name);
    g_autofree char *share = g_strdup_printf("%s_share", name);
    g_autofree char *next = g_strdup_printf("%s_next", name);
    g_autofree char *chosen = g_strdup_printf("%s_chosen", name);
    net->p->b.attributes.factor = 1 - net->momentum;
    int left = mtf_parts_apply(net->p, MTF_OP_SCALE, kept, NULL, old, -1);
    net->p->b.attributes.factor = net->momentum * correction;
    int added = mtf_parts_apply(net->p, MTF_OP_SCALE, share, NULL, now, -1);
    int value = mtf_parts_add(net->p, next, left, added);
    if (net->p->b.error == NULL)
        mtf_graph_add_update(net->p->b.graph, old, value);
    return mtf_parts_apply(net->p, MTF_OP_IN_TRAIN_PHASE, chosen, NULL, now, old);
}

/* n / (n - 1), with which the variance of n elements of a sample is that of what it was drawn from. */
static double sample_correction(const MtfImageNet *net, const MtfImage *x) {
    if (net->p->b.error != NULL)
        return 1;
    MtfShape shape = image_shape(net, x);
    double n = (double)(mtf_graph_elements(net->p->b.graph, &shape) / MAX(x->channels, 1));
    return n > 1 ? n / (n - 1) : 1;
}

/* The mean or variance of each channel. */
static int batch_statistic(MtfImageNet *net, int kind, const char *name, MtfImage x, int mean) {
    MtfShape channels = { 1, { x.channel_dim } };
    net->p->b.attributes.per_microbatch = net->whole ? 0 : 1;
    return mtf_parts_apply(net->p, kind, name, &channels, x.tensor, mean);
}

/* Batch normalisation. The running statistics are for when nothing is learned. */
MtfImage mtf_image_norm(MtfImageNet *net, const char *name, MtfImage x) {
    MtfShape channels = { 1, { x.channel_dim } };
    mtf_parts_enter(net->p, name);
    int scale = mtf_parts_variable(net->p, "scale", &channels, MTF_INIT_CONSTANT, 1);
    int bias = mtf_parts_variable(net->p, "bias", &channels, MTF_INIT_CONSTANT, 0);
    int running_mean = mtf_parts_variable(net->p, "mean", &channels, MTF_INIT_CONSTANT, 0);
    int running_variance = mtf_parts_variable(net->p, "variance", &channels, MTF_INIT_CONSTANT, 1);
    if (net->p->b.error == NULL) {
        mtf_graph_tensor(net->p->b.graph, running_mean)->frozen = true;
        mtf_graph_tensor(net->p->b.graph, running_variance)->frozen = true;
    }
    int mean = batch_statistic(net, MTF_OP_REDUCE_MEAN, "batch_mean", x, -1);
    int variance = batch_statistic(net, MTF_OP_VARIANCE, "batch_variance", x, mean);
    double correction = sample_correction(net, &x);
    mean = run_statistic(net, "mean", running_mean, mean, 1);
    variance = run_statistic(net, "variance", running_variance, variance, correction);
    net->p->b.attributes.epsilon = net->epsilon;
    x.tensor = mtf_parts_apply_to(net->p, MTF_OP_NORMALIZE, "y", 5,
                                  (int[]){ x.tensor, mean, variance, scale, bias });
    mtf_parts_leave(net->p);
    return x;
}

/* x / (1 + 1e-4 / 5 times the sum of squares of 5 neighbouring channels)^0.75: a product with a band
 * of ones, so that the neighbours may lie on other processors. */
MtfImage mtf_image_response_norm(MtfImageNet *net, const char *name, MtfImage x) {
    mtf_parts_enter(net->p, name);
    int neighbours = made_channels(net, x.channels, x.channel_dim);
    MtfImage sums = x;
    sums.channel_dim = neighbours;
    int apart = mtf_parts_apply(net->p, MTF_OP_SUBTRACT, "apart", NULL,
                                float_range(net, "here", x.channel_dim),
                                float_range(net, "there", neighbours));
    int distance = mtf_parts_apply(net->p, MTF_OP_ABS, "distance", NULL, apart, -1);
    int band = mtf_parts_apply(net->p, MTF_OP_LESS_EQUAL, "band", NULL, distance,
                               mtf_parts_constant(net->p, "reach", 2));
    int square = mtf_parts_apply(net->p, MTF_OP_SQUARE, "square", NULL, x.tensor, -1);
    MtfShape shape = image_shape(net, &sums);
    int sum = mtf_parts_einsum(net->p, "sum", &shape, square, band);
    sum = rename_dim(net, "sum_here", sum, neighbours, x.channel_dim);
    net->p->b.attributes.factor = 1e-4 / 5;
    int share = mtf_parts_apply(net->p, MTF_OP_SCALE, "share", NULL, sum, -1);
    int total = mtf_parts_add(net->p, "total", share, mtf_parts_constant(net->p, "one", 1));
    net->p->b.attributes.exponent = -0.75;
    int power = mtf_parts_apply(net->p, mtf_operation_kind("power"), "power", NULL, total, -1);
    x.tensor = mtf_parts_apply(net->p, MTF_OP_MULTIPLY, "y", NULL, x.tensor, power);
    mtf_parts_leave(net->p);
    return x;
}

/* ---- Pools, sums, branches ------------------------------------------------------------------- */

MtfImage mtf_image_pool(MtfImageNet *net, const char *name, MtfImage x, MtfImagePool kind,
                        const MtfImageWindow *window) {
    MtfImage y = x;
    if (!set_space(net, &y, window, false))
        return fail_size(net, name, x);
    MtfShape shape = image_shape(net, &y);
    set_windows(net, &x, &y, window, NULL);
    y.tensor =
        mtf_parts_apply(net->p, kind == MTF_IMAGE_MAX ? MTF_OP_MAX_POOL : MTF_OP_AVERAGE_POOL, name,
                        &shape, x.tensor, -1);
    return y;
}

/* y with the names of space (and where `channels` of channels) that `like` has. */
static MtfImage with_names_of(MtfImageNet *net, const char *name, MtfImage y, const MtfImage *like,
                              bool channels) {
    for (int i = 0; i < net->axes; i++) {
        if (y.space[i] == like->space[i])
            continue;
        g_autofree char *full = g_strdup_printf("%s_%s", name, axis_names[i]);
        y.tensor = rename_dim(net, full, y.tensor, y.space[i], like->space[i]);
        y.space[i] = like->space[i];
    }
    if (channels && y.channel_dim != like->channel_dim) {
        g_autofree char *full = g_strdup_printf("%s_channels", name);
        y.tensor = rename_dim(net, full, y.tensor, y.channel_dim, like->channel_dim);
        y.channel_dim = like->channel_dim;
    }
    return y;
}

MtfImage mtf_image_add(MtfImageNet *net, const char *name, MtfImage x, MtfImage y) {
    y = with_names_of(net, name, y, &x, true);
    x.tensor = mtf_parts_add(net->p, name, x.tensor, y.tensor);
    return x;
}

MtfImage mtf_image_concat(MtfImageNet *net, const char *name, const MtfImage *parts, int n) {
    MtfImage all = parts[0];
    int tensors[8] = { 0 };
    all.channels = 0;
    for (int i = 0; i < n; i++) {
        g_autofree char *full = g_strdup_printf("%s_%d", name, i);
        tensors[i] = with_names_of(net, full, parts[i], &parts[0], false).tensor;
        all.channels += parts[i].channels;
    }
    all.channel_dim = shared_dimension(net, "channels", all.channels);
    MtfShape shape = image_shape(net, &all);
    all.tensor = mtf_parts_apply_shape_to(net->p, MTF_OP_CONCAT, name, &shape, n, tensors);
    return all;
}

/* ---- Heads ----------------------------------------------------------------------------------- */

int mtf_image_mean(MtfImageNet *net, MtfImage x) {
    MtfShape shape = { 2, { net->batch, x.channel_dim } };
    return mtf_parts_apply(net->p, MTF_OP_REDUCE_MEAN, "mean", &shape, x.tensor, -1);
}

/* x, whose dimensions but the batch are summed, to the dimension `out`, by weights of that deviation at
 * first, or of one that keeps the variance behind a relu (He and others, 2015) where it is 0. */
static int dense_to(MtfImageNet *net, const char *name, int x, int out, double spread) {
    if (net->p->b.error != NULL)
        return -1;
    MtfShape in = mtf_graph_tensor(net->p->b.graph, x)->shape, weight = { 0 };
    MtfShape result = { 2, { net->batch, out } }, bias = { 1, { out } };
    double inputs = 1;
    for (int i = 0; i < in.rank; i++) {
        if (in.dims[i] == net->batch)
            continue;
        mtf_shape_append(&weight, in.dims[i]);
        inputs *= (double)mtf_graph_size(net->p->b.graph, in.dims[i]);
    }
    mtf_shape_append(&weight, out);
    mtf_parts_enter(net->p, name);
    int w = mtf_parts_variable(net->p, "w", &weight, MTF_INIT_NORMAL,
                               spread > 0 ? spread : sqrt(2 / inputs));
    int y = mtf_parts_einsum(net->p, "y", &result, x, w);
    int b = mtf_parts_variable(net->p, "bias", &bias, MTF_INIT_CONSTANT, 0);
    int biased = mtf_parts_add(net->p, "biased", y, b);
    mtf_parts_leave(net->p);
    return biased;
}

int mtf_image_dense(MtfImageNet *net, const char *name, int x, int64_t outputs) {
    return dense_to(net, name, x, mtf_parts_dimension(net->p, name, outputs), 0);
}

int mtf_image_dense_active(MtfImageNet *net, const char *name, int x, int64_t outputs) {
    g_autofree char *active = g_strdup_printf("%s/active", name);
    MtfImage y = { .tensor = mtf_image_dense(net, name, x, outputs) };
    return activate(net, active, y).tensor;
}

int mtf_image_dense_to(MtfImageNet *net, const char *name, int x, int64_t classes) {
    int dim = net->p->b.error == NULL ? mtf_graph_find_dimension(net->p->b.graph, "classes") : -1;
    if (dim < 0)
        dim = mtf_parts_dimension(net->p, "classes", classes);
    return dense_to(net, name, x, dim, net->spread);
}

/* The mean cross entropy of scores and labels of that shape. */
static int mean_loss(MtfImageNet *net, const char *name, int scores, int labels,
                     const MtfShape *shape) {
    g_autofree char *each = g_strdup_printf("%ses", name);
    int losses = mtf_parts_apply(net->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, each, shape, scores, labels);
    return mtf_parts_apply(net->p, MTF_OP_REDUCE_MEAN, name, &(MtfShape){ 0 }, losses, -1);
}

void mtf_image_classify(MtfImageNet *net, int x, int64_t classes) {
    MtfShape each = { 1, { net->batch } };
    int scores = mtf_image_dense_to(net, "classifier", x, classes);
    int labels = mtf_parts_input(net->p, "labels", &each, MTF_I32, MTF_FEED_LABELS);
    net->p->b.graph->loss = mean_loss(net, "loss", scores, labels, &each);
}

void mtf_image_classify_too(MtfImageNet *net, int scores, double weight) {
    MtfShape each = { 1, { net->batch } };
    if (net->p->b.error != NULL)
        return;
    int labels = mtf_graph_find_tensor(net->p->b.graph, "labels");
    int loss = mean_loss(net, "second_loss", scores, labels, &each);
    net->p->b.attributes.factor = weight;
    int share = mtf_parts_apply(net->p, MTF_OP_SCALE, "second_share", NULL, loss, -1);
    net->p->b.graph->loss = mtf_parts_add(net->p, "whole_loss", net->p->b.graph->loss, share);
}

void mtf_image_label_places(MtfImageNet *net, MtfImage x) {
    MtfShape shape = { 1, { net->batch } };
    for (int i = 0; i < net->axes; i++)
        mtf_shape_append(&shape, x.space[i]);
    int labels = mtf_parts_input(net->p, "labels", &shape, MTF_I32, MTF_FEED_LABELS);
    net->p->b.graph->loss = mean_loss(net, "loss", x.tensor, labels, &shape);
}
