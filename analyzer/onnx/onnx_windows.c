// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions and pools, by shifted copies of their input: along a spatial axis of n elements, copy k
 * of a window has at place o what the window's k-th place sees there,
 *
 *     convolution   x[o stride + k dilation - before]       0 where there is no such element
 *     transposed    x[(o + before - k dilation) / stride]   and where that is no whole number
 *
 * A convolution stacks the copies and multiplies them with its filter in one product, whose
 * multiply-adds are the convolution's; a pool takes their maximum or their mean. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <string.h>

#define SPACE 3 /* spatial axes at most */

/* The windows along one axis. */
typedef struct {
    int64_t in, out, places, stride, dilation, before, after;
} Window;

typedef struct {
    int n;
    Window axis[SPACE];
    bool transposed;
} Windows;

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* A list attribute with a number for each axis; `standard` where it is left out. */
static bool read_list(MtfOnnxCall *call, const char *name, int n, int64_t standard,
                      int64_t *numbers) {
    int64_t list[2 * MTF_ONNX_MAX_RANK];
    int count;
    if (!mtf_onnx_ints(call, name, -1, list, &count))
        return false;
    for (int i = 0; i < n; i++) {
        numbers[i] = count < 0 ? standard : i < count ? list[i] : -1;
        if (numbers[i] < 0 || numbers[i] > INT32_MAX)
            return mtf_onnx_fail(call->t, "\"%s\" should have %d numbers from 0 on", name, n) !=
                   NULL;
    }
    return count <= n || mtf_onnx_fail(call->t, "\"%s\" should have %d numbers", name, n) != NULL;
}

static int64_t span(const Window *w) {
    return w->dilation * (w->places - 1) + 1;
}

/* How many windows there are: as many as fit, or with ceil_mode all that begin before the padding
 * behind. */
static int64_t count_windows(const Window *w, bool ceiling) {
    int64_t room = w->in + w->before + w->after - span(w);
    int64_t n = room < 0 ? 0 : room / w->stride + 1;
    if (ceiling && room >= 0 && room % w->stride != 0 && n * w->stride < w->in + w->before)
        n++;
    return n;
}

/* Padding that makes ceil(in / stride) windows; the odd element lies behind (`upper`) or before. */
static void pad_same(Window *w, bool upper) {
    int64_t out = (w->in + w->stride - 1) / w->stride;
    int64_t total = MAX((out - 1) * w->stride + span(w) - w->in, 0);
    w->before = upper ? total / 2 : total - total / 2;
    w->after = total - w->before;
}

static void size_forward(MtfOnnxCall *call, Window *w) {
    const char *mode = mtf_onnx_word(call, "auto_pad", "NOTSET");
    if (strcmp(mode, "VALID") == 0)
        w->before = w->after = 0;
    if (g_str_has_prefix(mode, "SAME"))
        pad_same(w, strcmp(mode, "SAME_UPPER") == 0);
    w->out = count_windows(w, mtf_onnx_int(call, "ceil_mode", 0) != 0);
}

/* `asked` is the size that "output_shape" asks for, or 0. */
static void size_transposed(MtfOnnxCall *call, Window *w, int64_t extra, int64_t asked) {
    const char *mode = mtf_onnx_word(call, "auto_pad", "NOTSET");
    int64_t whole = w->stride * (w->in - 1) + extra + span(w);
    if (asked == 0 && g_str_has_prefix(mode, "SAME"))
        asked = w->in * w->stride;
    if (asked > 0) {
        int64_t total = MAX(whole - asked, 0);
        w->before = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        w->after = total - w->before;
        w->out = asked;
        return;
    }
    w->out = whole - w->before - w->after;
}

/* The windows of a node whose filter has `places` (or NULL: as "kernel_shape" says). */
static bool read_windows(MtfOnnxCall *call, const MtfOnnxValue *x, const int64_t *places,
                         Windows *windows) {
    int64_t kernel[SPACE], strides[SPACE], dilations[SPACE], pads[2 * SPACE], extra[SPACE],
        asked[SPACE];
    int n = windows->n = x->rank - 2;
    if (n < 1 || n > SPACE)
        return mtf_onnx_fail(call->t, "its input should have from 3 to 5 axes") != NULL;
    if (!read_list(call, "kernel_shape", n, 0, kernel) ||
        !read_list(call, "strides", n, 1, strides) ||
        !read_list(call, "dilations", n, 1, dilations) ||
        !read_list(call, "pads", 2 * n, 0, pads) ||
        !read_list(call, "output_padding", n, 0, extra) ||
        !read_list(call, "output_shape", n, 0, asked))
        return false;
    for (int i = 0; i < n; i++) {
        Window *w = &windows->axis[i];
        *w = (Window){ x->sizes[i + 2],
                       0,
                       places != NULL ? places[i] : kernel[i],
                       strides[i],
                       dilations[i],
                       pads[i],
                       pads[n + i] };
        if (w->places < 1 || w->stride < 1 || w->dilation < 1 || w->places > 1024)
            return mtf_onnx_fail(call->t, "windows have from 1 to 1024 places, strides and "
                                          "dilations from 1 on") != NULL;
        if (windows->transposed)
            size_transposed(call, w, extra[i], asked[i]);
        else
            size_forward(call, w);
        if (w->out < 1)
            return mtf_onnx_fail(call->t, "no window fits along axis %d", i + 2) != NULL;
    }
    return true;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* The whole axis is one window. */
static bool is_whole(const Windows *windows, const Window *w) {
    return !windows->transposed && w->out == 1 && w->places == w->in && w->dilation == 1 &&
           w->before == 0;
}

/* What place `k` of each window sees along an axis of x. */
static MtfOnnxValue *see(MtfOnnxTranslation *t, const Windows *windows, const Window *w,
                         MtfOnnxValue *x, int axis, int64_t k) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    int64_t first = k * w->dilation - w->before;
    a.start = (double)(windows->transposed ? -first : first);
    a.stride = (double)(windows->transposed ? 1 : w->stride);
    a.dilation = (double)(windows->transposed ? w->stride : 1);
    if (a.start == 0 && a.stride == 1 && a.dilation == 1 && w->in == w->out)
        return x;
    return mtf_onnx_along(t, MTF_OP_RESAMPLE, a, x, axis, w->out);
}

/* x with axis `axis` replaced by two, place within the window and window. */
static MtfOnnxValue *unfold(MtfOnnxTranslation *t, const Windows *windows, const Window *w,
                            MtfOnnxValue *x, int axis) {
    g_autofree MtfOnnxValue **copies = g_new0(MtfOnnxValue *, w->places);
    if (x == NULL || x->rank >= MTF_ONNX_MAX_RANK)
        return NULL;
    if (is_whole(windows, w)) /* its places are the axis itself */
        return mtf_onnx_unsqueeze(t, x, x->rank + 1, 1U << (axis + 1));
    for (int64_t k = 0; k < w->places; k++) {
        MtfOnnxValue *copy = see(t, windows, w, x, axis, k);
        copies[k] = copy == NULL ? NULL : mtf_onnx_unsqueeze(t, copy, x->rank + 1, 1U << axis);
        if (copies[k] == NULL)
            return NULL;
    }
    return w->places == 1 ? copies[0] : mtf_onnx_concat(t, axis, (int)w->places, copies);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* [N, C, …] as [N, G, C / G, …], and a filter likewise. */
static MtfOnnxValue *group(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int64_t groups) {
    int64_t sizes[MTF_ONNX_MAX_RANK];
    if (x == NULL || groups == 1)
        return x;
    if (x->rank >= MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(t, "more than %d dimensions", MTF_ONNX_MAX_RANK);
    for (int k = 0; k <= x->rank; k++)
        sizes[k] = k < axis    ? x->sizes[k]
                   : k == axis ? groups
                               : x->sizes[k - 1] / (k == axis + 1 ? groups : 1);
    return mtf_onnx_reshape(t, x, x->rank + 1, sizes);
}

/* Letters: n batch, g group, c channels in, m channels out, a… places, A… windows. */
static char *letters_of(const Windows *windows, bool grouped) {
    g_autoptr(GString) x = g_string_new(grouped ? "ngc" : "nc");
    g_autoptr(GString) out = g_string_new(grouped ? "ngm" : "nm");
    g_autoptr(GString) filter = g_string_new(grouped ? "g" : "");
    g_string_append(filter, windows->transposed ? "cm" : "mc");
    for (int i = 0; i < windows->n; i++) {
        g_string_append_printf(x, "%c%c", 'p' + i, 'A' + i);
        g_string_append_c(filter, (char)('p' + i));
        g_string_append_c(out, (char)('A' + i));
    }
    return g_strdup_printf("%s,%s->%s", x->str, filter->str, out->str);
}

static MtfOnnxValue *add_bias(MtfOnnxCall *call, MtfOnnxValue *y) {
    MtfOnnxValue *bias = mtf_onnx_input(call, 2);
    if (bias == NULL || y == NULL)
        return y;
    bias = mtf_onnx_weight(call->t, bias, false);
    unsigned behind = ((1U << (y->rank - 1)) - 1) & ~1U;
    return bias == NULL ? NULL
                        : mtf_onnx_binary(call->t, MTF_OP_ADD, y,
                                          mtf_onnx_unsqueeze(call->t, bias, y->rank - 1, behind));
}

static MtfOnnxValue *convolve(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    MtfOnnxValue *filter = mtf_onnx_weight(t, call->inputs[1], false);
    Windows windows = { .transposed = call->number != 0 };
    int64_t groups = mtf_onnx_int(call, "group", 1), sizes[MTF_ONNX_MAX_RANK];
    if (x == NULL || filter == NULL)
        return NULL;
    int64_t taken = windows.transposed ? filter->sizes[0] : filter->sizes[1] * groups;
    if (filter->rank != x->rank || groups < 1 || taken != x->sizes[1] ||
        filter->sizes[0] % groups != 0)
        return mtf_onnx_fail(t, "its filter is not for %" PRId64 " channels in %" PRId64 " groups",
                             x->rank > 1 ? x->sizes[1] : 0, groups);
    if (!read_windows(call, x, &filter->sizes[2], &windows))
        return NULL;
    int64_t made = windows.transposed ? filter->sizes[1] * groups : filter->sizes[0];
    for (int i = windows.n - 1; i >= 0; i--)
        x = unfold(t, &windows, &windows.axis[i], x, i + 2);
    MtfOnnxValue *inputs[] = { group(t, x, 1, groups), group(t, filter, 0, groups) };
    g_autofree char *letters = letters_of(&windows, groups > 1);
    MtfOnnxValue *y = mtf_onnx_product(t, letters, 2, inputs);
    if (y == NULL)
        return NULL;
    sizes[0] = x->sizes[0];
    sizes[1] = made;
    for (int i = 0; i < windows.n; i++)
        sizes[i + 2] = windows.axis[i].out;
    return add_bias(call, mtf_onnx_reshape(t, y, windows.n + 2, sizes));
}

/* ---- Pools ----------------------------------------------------------------------------------- */

/* Padding that no maximum takes. */
#define LOWEST (-3.4028234663852886e38)

/* A one for each element along the axis of x, in all else equal. */
static MtfOnnxValue *ones_along(MtfOnnxTranslation *t, const Window *w, const MtfOnnxValue *x,
                                int axis) {
    int64_t sizes[MTF_ONNX_MAX_RANK];
    for (int k = 0; k < x->rank; k++)
        sizes[k] = k == axis ? w->in : 1;
    return mtf_onnx_real(t, mtf_onnx_uniform(t, x->type, x->rank, sizes, 1));
}

/* What place k of each window sees, LOWEST where that is padding. */
static MtfOnnxValue *see_or_low(MtfOnnxTranslation *t, const Windows *windows, const Window *w,
                                MtfOnnxValue *x, int axis, int64_t k) {
    int64_t first = k * w->dilation - w->before, last = first + (w->out - 1) * w->stride;
    MtfOnnxValue *seen = see(t, windows, w, x, axis, k);
    if (seen == NULL || (first >= 0 && last < w->in))
        return seen;
    MtfOnnxValue *there = see(t, windows, w, ones_along(t, w, x, axis), axis, k);
    return mtf_onnx_where(t, there, seen, mtf_onnx_scalar(t, x->type, LOWEST));
}

/* The maximum or sum of what the places of each window see along one axis. */
static MtfOnnxValue *pool_axis(MtfOnnxTranslation *t, int kind, const Windows *windows,
                               const Window *w, MtfOnnxValue *x, int axis) {
    MtfOnnxValue *y = NULL;
    if (is_whole(windows, w))
        return mtf_onnx_reduce(t, kind == MTF_OP_ADD ? MTF_OP_REDUCE_SUM : MTF_OP_REDUCE_MAX, x,
                               1U << axis, NULL);
    for (int64_t k = 0; k < w->places && (k == 0 || y != NULL); k++) {
        MtfOnnxValue *seen = kind == MTF_OP_ADD ? see(t, windows, w, x, axis, k)
                                                : see_or_low(t, windows, w, x, axis, k);
        y = k == 0 ? seen : mtf_onnx_binary(t, kind, y, seen);
    }
    return y;
}

static MtfOnnxValue *max_pool(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    Windows windows = { 0 };
    if (call->n_outputs > 1)
        return mtf_onnx_fail(t, "the places of maxima (its second output) are not supported");
    if (x == NULL || !read_windows(call, x, NULL, &windows))
        return NULL;
    int type = x->type;
    if (mtf_onnx_dtype(type) == MTF_I32)
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    for (int i = 0; i < windows.n && x != NULL; i++)
        x = pool_axis(t, MTF_OP_MAXIMUM, &windows, &windows.axis[i], x, i + 2);
    return mtf_onnx_cast(t, x, type);
}

/* How many elements each window holds: those of x, or of the padding too, but not those that only
 * ceil_mode makes room for. */
static MtfOnnxValue *count_axis(MtfOnnxTranslation *t, const Windows *windows, const Window *w,
                                const MtfOnnxValue *x, int axis, bool padded) {
    int64_t end = (w->out - 1) * w->stride + span(w) - w->before;
    Window counted = *w;
    if (padded) {
        counted.in += w->before + w->after;
        counted.before = 0;
    }
    bool full = counted.before == 0 && end + w->before - counted.before <= counted.in;
    if (full)
        return mtf_onnx_scalar(t, x->type, (double)w->places);
    MtfOnnxValue *ones = ones_along(t, &counted, x, axis);
    return ones == NULL ? NULL : pool_axis(t, MTF_OP_ADD, windows, &counted, ones, axis);
}

static MtfOnnxValue *average_pool(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    Windows windows = { 0 };
    bool padded = mtf_onnx_int(call, "count_include_pad", 0) != 0;
    if (x == NULL || !read_windows(call, x, NULL, &windows))
        return NULL;
    MtfOnnxValue *y = x;
    for (int i = 0; i < windows.n && y != NULL; i++) {
        const Window *w = &windows.axis[i];
        double number;
        MtfOnnxValue *count = count_axis(t, &windows, w, x, i + 2, padded);
        y = pool_axis(t, MTF_OP_ADD, &windows, w, y, i + 2);
        if (y == NULL || count == NULL)
            return NULL;
        y = mtf_onnx_is_number(t, count, &number) ? mtf_onnx_affine(t, y, 1 / number, 0)
                                                  : mtf_onnx_binary(t, MTF_OP_DIVIDE, y, count);
    }
    return y;
}

const MtfOnnxOperator mtf_onnx_window_operators[] = {
    { "AveragePool", average_pool, 0, 0, 1, 1, NULL },
    { "Conv", convolve, 0, 0, 2, 3, NULL },
    { "ConvTranspose", convolve, 0, 1, 2, 3, NULL },
    { "MaxPool", max_pool, 0, 0, 1, 1, NULL },
    { 0 },
};
