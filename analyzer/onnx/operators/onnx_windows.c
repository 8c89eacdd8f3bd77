// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions and pools: how many windows there are, and what padding they have. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <string.h>

#define SPACE MTF_MAX_WINDOWS /* spatial axes at most */

/* The windows along one axis; of transposed ones `out` may have more elements than they reach. */
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

/* What a transposed window's last element leaves behind it, but for what a stride skips. */
static int64_t reached(const Windows *windows, const Window *w) {
    int64_t reach = w->stride * (w->in - 1) + span(w) - w->before - w->after + w->stride - 1;
    return windows->transposed ? MIN(w->out, reach) : w->out;
}

/* The windows as an operation has them. */
static MtfOnnxWindows windowed(const Windows *windows, int kind, const char *letters) {
    MtfOnnxWindows result = { .n = windows->n, .kind = kind, .letters = letters };
    for (int i = 0; i < windows->n; i++) {
        const Window *w = &windows->axis[i];
        result.axis[i].out = reached(windows, w);
        result.axis[i].places = w->places;
        result.axis[i].stride = w->stride;
        result.axis[i].dilation = w->dilation;
        result.axis[i].before = w->before;
        result.axis[i].after = w->after;
    }
    return result;
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

/* One place a window, side by side: a product. */
static bool is_product(const Windows *windows) {
    for (int i = 0; i < windows->n; i++) {
        const Window *w = &windows->axis[i];
        if (w->places > 1 || w->stride > 1 || w->in != w->out || w->before > 0)
            return false;
    }
    return true;
}

/* Letters: n batch, g group, c channels in, m channels out; with those of space, a… and of places, p…. */
static char *letters_of(const Windows *windows, bool grouped, bool spatial) {
    const char *filter = windows->transposed ? "cm" : "mc", *g = grouped ? "g" : "";
    g_autofree char *space = g_strndup("ABC", spatial ? (gsize)windows->n : 0);
    g_autofree char *places = g_strndup("pqr", spatial ? (gsize)windows->n : 0);
    return g_strdup_printf("n%sc%s,%s%s%s->n%sm%s", g, space, g, filter, places, g, space);
}

/* y with the elements that no window reaches, which are 0, behind the others. */
static MtfOnnxValue *lengthen(MtfOnnxTranslation *t, const Windows *windows, MtfOnnxValue *y) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.start = 0;
    a.stride = 1;
    for (int i = 0; i < windows->n && y != NULL; i++)
        if (reached(windows, &windows->axis[i]) < windows->axis[i].out)
            y = mtf_onnx_along(t, MTF_OP_RESAMPLE, a, y, i + 2, windows->axis[i].out);
    return y;
}

static MtfOnnxValue *convolve_windows(MtfOnnxTranslation *t, const Windows *windows, int64_t groups,
                                      MtfOnnxValue *x, MtfOnnxValue *filter) {
    g_autofree char *letters = letters_of(windows, groups > 1, is_product(windows));
    MtfOnnxValue *inputs[] = { group(t, x, 1, groups), group(t, filter, 0, groups) };
    if (is_product(windows))
        return mtf_onnx_product(t, letters, 2, inputs);
    MtfOnnxWindows operation =
        windowed(windows, windows->transposed ? MTF_OP_CONV_TRANSPOSE : MTF_OP_CONV, letters);
    return mtf_onnx_windowed(t, &operation, inputs[0], inputs[1]);
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
    groups = groups > INT32_MAX ? 0 : groups; /* none of that many channels */
    int64_t taken = windows.transposed ? filter->sizes[0] : filter->sizes[1] * groups;
    if (filter->rank != x->rank || groups < 1 || taken != x->sizes[1] ||
        filter->sizes[0] % groups != 0)
        return mtf_onnx_fail(t, "its filter is not for %" PRId64 " channels in %" PRId64 " groups",
                             x->rank > 1 ? x->sizes[1] : 0, groups);
    if (!read_windows(call, x, &filter->sizes[2], &windows))
        return NULL;
    int64_t made = windows.transposed ? filter->sizes[1] * groups : filter->sizes[0];
    MtfOnnxValue *y = convolve_windows(t, &windows, groups, x, filter);
    if (y == NULL)
        return NULL;
    sizes[0] = x->sizes[0];
    sizes[1] = made;
    for (int i = 0; i < windows.n; i++)
        sizes[i + 2] =
            is_product(&windows) ? windows.axis[i].out : reached(&windows, &windows.axis[i]);
    y = mtf_onnx_reshape(t, y, windows.n + 2, sizes);
    return add_bias(call, lengthen(t, &windows, y));
}

/* ---- Pools ----------------------------------------------------------------------------------- */

/* sum + step (factor a + term) */
static MtfOnnxValue *add_steps(MtfOnnxTranslation *t, MtfOnnxValue *sum, int64_t step,
                               MtfOnnxValue *a, int64_t factor, int64_t term) {
    return mtf_onnx_binary(t, MTF_OP_ADD, sum,
                           mtf_onnx_affine(t, a, (double)(step * factor), (double)(step * term)));
}

/* How far apart two neighbours along spatial axis `i` of x lie, with the last axis fastest or the first. */
static int64_t step_along(const Windows *windows, int i, bool first_fastest) {
    int64_t step = 1;
    for (int k = first_fastest ? 0 : i + 1; k < (first_fastest ? i : windows->n); k++)
        step *= windows->axis[k].in;
    return step;
}

/* Where in x each maximum stands, counted over all of its elements, from the place within its window, which
 * counts row by row: its digit along each axis tells how far behind the window's begin it is. */
static MtfOnnxValue *places_in_input(MtfOnnxCall *call, const Windows *windows,
                                     MtfOnnxValue *place) {
    MtfOnnxTranslation *t = call->t;
    const MtfOnnxValue *x = call->inputs[0];
    bool first_fastest = mtf_onnx_int(call, "storage_order", 0) != 0;
    MtfOnnxValue *at = mtf_onnx_scalar(t, MTF_ONNX_DOUBLE, 0);
    int64_t volume = step_along(windows, windows->n, true);
    place = mtf_onnx_cast(t, place, MTF_ONNX_DOUBLE);
    for (int i = windows->n - 1; i >= 0 && place != NULL; i--) {
        const Window *w = &windows->axis[i];
        MtfOnnxValue *size = mtf_onnx_scalar(t, MTF_ONNX_DOUBLE, (double)w->places);
        MtfOnnxValue *digit = mtf_onnx_binary(t, MTF_OP_MODULO, place, size);
        MtfOnnxValue *window = mtf_onnx_range(t, MTF_ONNX_DOUBLE, place->rank, place->sizes, i + 2);
        int64_t step = step_along(windows, i, first_fastest);
        at = add_steps(t, at, step, digit, w->dilation, -w->before);
        at = add_steps(t, at, step, window, w->stride, 0);
        /* half a place more, so that no rounding takes one away */
        double one = 1 / (double)w->places;
        place = mtf_onnx_unary(t, MTF_OP_FLOOR, mtf_onnx_affine(t, place, one, one / 2));
    }
    for (int k = 0; k < 2 && place != NULL; k++)
        at = add_steps(t, at, k == 0 ? volume * x->sizes[1] : volume,
                       mtf_onnx_range(t, MTF_ONNX_DOUBLE, place->rank, place->sizes, k), 1, 0);
    return mtf_onnx_cast(t, at, MTF_ONNX_INT64);
}

static MtfOnnxValue *pool(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    Windows windows = { 0 };
    if (x == NULL || !read_windows(call, x, NULL, &windows))
        return NULL;
    int type = x->type;
    if (mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    MtfOnnxWindows operation = windowed(&windows, call->kind, "nc->nc");
    operation.counted = mtf_onnx_int(call, "count_include_pad", 0) != 0;
    MtfOnnxValue *y = mtf_onnx_windowed(t, &operation, x, NULL);
    if (call->n_outputs > 1)
        call->outputs[1] = places_in_input(call, &windows, mtf_onnx_element_places(t, y));
    return mtf_onnx_cast(t, y, type);
}

const MtfOnnxOperator mtf_onnx_window_operators[] = {
    { "AveragePool", pool, MTF_OP_AVERAGE_POOL, 0, 1, 1, NULL },
    { "Conv", convolve, 0, 0, 2, 3, NULL },
    { "ConvTranspose", convolve, 0, 1, 2, 3, NULL },
    { "MaxPool", pool, MTF_OP_MAX_POOL, 0, 1, 1, NULL },
    { 0 },
};
