// SPDX-License-Identifier: GPL-3.0-or-later
/* Resizing: an element of the result is a sum of a few of x along each axis that changes,
 *
 *     y[…, o, …] = sum over i of x[…, i, …] W[i, o]
 *
 * Element o lies in x at p = a o + b. W[i, o] is 1 where i is the nearest to p, or 1 - |p - i| (linear), or
 * Keys' cubic of p - i, with what lies beyond the ends given to the first and last. W is made of two ranges,
 * so that it is no weight and is split as the axes are; whole factors of the nearest element are repeats
 * instead. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MOST (2 * MTF_ONNX_MAX_RANK)

typedef enum { NEAREST, LINEAR, CUBIC } Mode;

typedef struct {
    MtfOnnxCall *call;
    int mode; /* Mode */
    const char *where, *nearest;
} Resize;

/* One axis: element o of `out` lies at a o + b of `in`. */
typedef struct {
    int64_t in, out;
    double scale, first, last; /* first, last: of what is cropped, as parts of the whole */
    double a, b;
} Side;

/* ---- What is asked for ----------------------------------------------------------------------- */

/* Numbers of attribute `name` or input `k`, `*n` of them; -1: neither. */
static bool read_numbers(MtfOnnxCall *call, const char *name, int k, double *numbers, int *n) {
    const MtfOnnxAttribute *a = name != NULL ? mtf_onnx_attribute(call->node, name) : NULL;
    MtfOnnxValue *input = a == NULL ? mtf_onnx_input(call, k) : NULL;
    *n = a != NULL ? (int)MIN(a->floats->len, MOST + 1) : -1;
    for (int i = 0; i < *n && i < MOST; i++)
        numbers[i] = g_array_index(a->floats, double, i);
    if (input == NULL || mtf_onnx_elements(input) == 0)
        return true;
    if (!mtf_onnx_is_known(call->t, input))
        return mtf_onnx_fail(call->t, "only known sizes and scales are supported") != NULL;
    *n = (int)MIN(mtf_onnx_elements(input), MOST + 1);
    for (int i = 0; i < *n && i < MOST; i++)
        numbers[i] = mtf_onnx_known_at(input, i);
    return true;
}

/* The axes that the lists are for: all, or "axes". */
static bool read_axes(MtfOnnxCall *call, int rank, int *axes, int *n) {
    int64_t given[MOST];
    unsigned mask;
    if (!mtf_onnx_ints(call, "axes", -1, given, n) ||
        (*n >= 0 && !mtf_onnx_axes(call, given, *n, rank, &mask)))
        return false;
    for (int i = 0; *n >= 0 && i < *n; i++)
        axes[i] = mtf_onnx_axis(call, given[i], rank);
    for (int k = 0; *n < 0 && k < rank; k++)
        axes[k] = k;
    *n = *n < 0 ? rank : *n;
    return true;
}

/* Sizes and scales of axes; those that nothing is said of stay. */
static bool read_sides(MtfOnnxCall *call, const MtfOnnxValue *x, Side *sides) {
    double scales[MOST], sizes[MOST], roi[MOST];
    int axes[MTF_ONNX_MAX_RANK], n, n_scales, n_sizes, n_roi, at = call->opset >= 11 ? 2 : 1;
    if (!read_axes(call, x->rank, axes, &n) ||
        !read_numbers(call, "scales", at, scales, &n_scales) ||
        !read_numbers(call, NULL, 3, sizes, &n_sizes) ||
        !read_numbers(call, NULL, at == 2 ? 1 : 4, roi, &n_roi))
        return false;
    for (int k = 0; k < x->rank; k++)
        sides[k] = (Side){ x->sizes[k], x->sizes[k], 1, 0, 1, 1, 0 };
    if (n_scales != n && n_sizes != n)
        return mtf_onnx_fail(call->t, "it should have a scale or a size for each of %d axes", n) !=
               NULL;
    for (int i = 0; i < n; i++) {
        Side *s = &sides[axes[i]];
        bool is_batch = axes[i] == 0 && call->t->batch > 0 && s->in == call->t->batch;
        if (is_batch && n_sizes == n && sizes[i] == (double)call->t->file_batch)
            continue;
        s->first = n_roi == 2 * n ? roi[i] : 0;
        s->last = n_roi == 2 * n ? roi[n + i] : 1;
        bool crops = n_roi == 2 * n;
        double wanted = n_scales == n ? scales[i] : sizes[i] / (double)s->in;
        double out = n_scales == n
                         ? floor((double)s->in * wanted * (crops ? s->last - s->first : 1))
                         : sizes[i];
        if (!(wanted > 0 && out >= 1 && out <= 0x1p31))
            return mtf_onnx_fail(call->t, "axis %d cannot be scaled by %g", axes[i], wanted) !=
                   NULL;
        s->scale = wanted;
        s->out = (int64_t)out;
    }
    return true;
}

/* Sets a and b; false for a way that is none. */
static bool set_places(const Resize *r, Side *s) {
    double in = (double)s->in, out = (double)s->out, whole = in * s->scale;
    bool single = s->out == 1;
    s->a = 1 / s->scale;
    s->b = 0.5 / s->scale - 0.5;
    if (strcmp(r->where, "half_pixel") == 0)
        return true;
    if (strcmp(r->where, "half_pixel_symmetric") == 0)
        s->b += in / 2 * (1 - out / whole);
    else if (strcmp(r->where, "pytorch_half_pixel") == 0)
        s->b = single ? 0 : s->b;
    else if (strcmp(r->where, "tf_half_pixel_for_nn") == 0)
        s->b = 0.5 / s->scale;
    else if (strcmp(r->where, "asymmetric") == 0)
        s->b = 0;
    else if (strcmp(r->where, "align_corners") == 0) {
        s->a = single ? 0 : (in - 1) / (whole - 1);
        s->b = 0;
    } else if (strcmp(r->where, "tf_crop_and_resize") == 0) {
        s->a = single ? 0 : (s->last - s->first) * (in - 1) / (out - 1);
        s->b = (single ? (s->first + s->last) / 2 : s->first) * (in - 1);
    } else
        return false;
    return true;
}

/* ---- The matrix of an axis ------------------------------------------------------------------- */

/* One step with a number. */
static MtfOnnxValue *with(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x, double number) {
    return x == NULL ? NULL : mtf_onnx_binary(t, kind, x, mtf_onnx_scalar(t, x->type, number));
}

static MtfOnnxValue *within(MtfOnnxTranslation *t, MtfOnnxValue *x, double low, double high) {
    MtfAttributes ends = MTF_NO_ATTRIBUTES;
    ends.low = low;
    ends.high = high;
    return mtf_onnx_map(t, MTF_OP_CLIP, &ends, 1, &x);
}

/* a o + b along the second axis of two. */
static MtfOnnxValue *places(MtfOnnxTranslation *t, const Side *s, double a, double b) {
    const int64_t sizes[2] = { 1, s->out };
    return mtf_onnx_affine(t, mtf_onnx_range(t, MTF_ONNX_FLOAT, 2, sizes, 1), a, b);
}

static MtfOnnxValue *elements(MtfOnnxTranslation *t, const Side *s) {
    const int64_t sizes[2] = { s->in, 1 };
    return mtf_onnx_range(t, MTF_ONNX_FLOAT, 2, sizes, 0);
}

/* What a tie must be moved by, so that float32 rounds it as exact numbers are: half of the way to the nearest
 * that is none. `up` 1: floor, whole numbers stay; -1: ceil. 0 where it is too little. */
static double guard(const Side *s, double shift, int up) {
    double least = 0.5, most = 1;
    for (int64_t o = 0; o < s->out; o++) {
        double q = s->a * (double)o + s->b + shift, rest = up * (round(q) - q);
        most = fmax(most, fabs(q));
        if (rest > 1e-9)
            least = fmin(least, rest);
    }
    return least / 2 > 4 * most * 0x1p-23 ? up * least / 2 : 0;
}

/* 1 where i is nearest to p. */
static MtfOnnxValue *nearest(const Resize *r, const Side *s) {
    static const struct {
        const char *name;
        int kind, up;
        double shift;
    } ways[] = { { "floor", MTF_OP_FLOOR, 1, 0 },
                 { "ceil", MTF_OP_CEIL, -1, 0 },
                 { "round_prefer_floor", MTF_OP_CEIL, -1, -0.5 },
                 { "round_prefer_ceil", MTF_OP_FLOOR, 1, 0.5 } };
    MtfOnnxTranslation *t = r->call->t;
    guint w = 0;
    while (w < G_N_ELEMENTS(ways) && strcmp(ways[w].name, r->nearest) != 0)
        w++;
    if (w == G_N_ELEMENTS(ways))
        return mtf_onnx_fail(t, "nearest_mode \"%s\" is not supported", r->nearest);
    double tie = guard(s, ways[w].shift, ways[w].up);
    if (tie == 0)
        return mtf_onnx_fail(
            t, "%" PRId64 " elements in the place of %" PRId64 " are too many for single precision",
            s->out, s->in);
    MtfOnnxValue *at =
        mtf_onnx_unary(t, ways[w].kind, places(t, s, s->a, s->b + ways[w].shift + tie));
    return mtf_onnx_binary(t, MTF_OP_EQUAL, elements(t, s), within(t, at, 0, (double)s->in - 1));
}

static MtfOnnxValue *linear(const Resize *r, const Side *s) {
    MtfOnnxTranslation *t = r->call->t;
    MtfOnnxValue *p = within(t, places(t, s, s->a, s->b), 0, (double)s->in - 1);
    MtfOnnxValue *far = mtf_onnx_binary(t, MTF_OP_SUBTRACT, elements(t, s), p);
    return mtf_onnx_unary(t, MTF_OP_RELU,
                          mtf_onnx_affine(t, mtf_onnx_unary(t, MTF_OP_ABS, far), -1, 1));
}

/* Of d = |distance|: ((c + 2) d - (c + 3)) d^2 + 1 up to 1, ((c d - 5 c) d + 8 c) d - 4 c up to 2, 0 beyond
 * (Keys: Cubic convolution interpolation for digital image processing, eq. 4 and 8). */
static MtfOnnxValue *keys(MtfOnnxTranslation *t, MtfOnnxValue *distance, double c) {
    MtfOnnxValue *d = within(t, mtf_onnx_unary(t, MTF_OP_ABS, distance), 0, 2);
    MtfOnnxValue *square = mtf_onnx_unary(t, MTF_OP_SQUARE, d);
    MtfOnnxValue *inner = mtf_onnx_affine(
        t, mtf_onnx_binary(t, MTF_OP_MULTIPLY, mtf_onnx_affine(t, d, c + 2, -(c + 3)), square), 1,
        1);
    MtfOnnxValue *bend = mtf_onnx_binary(t, MTF_OP_MULTIPLY, mtf_onnx_affine(t, d, c, -5 * c), d);
    MtfOnnxValue *outer = mtf_onnx_affine(
        t, mtf_onnx_binary(t, MTF_OP_MULTIPLY, mtf_onnx_affine(t, bend, 1, 8 * c), d), 1, -4 * c);
    return mtf_onnx_where(t, with(t, MTF_OP_LESS_EQUAL, d, 1), inner, outer);
}

/* Adds what element `end`, the first or last, gets from the two or three beyond it. */
static MtfOnnxValue *add_beyond(const Resize *r, const Side *s, MtfOnnxValue *all, double end,
                                int step, double c) {
    MtfOnnxTranslation *t = r->call->t;
    MtfOnnxValue *sum = NULL;
    for (int k = 1; k <= 3; k++) {
        MtfOnnxValue *one = keys(t, places(t, s, s->a, s->b - end - step * k), c);
        sum = sum == NULL ? one : mtf_onnx_binary(t, MTF_OP_ADD, sum, one);
    }
    MtfOnnxValue *here = with(t, MTF_OP_EQUAL, elements(t, s), end);
    return mtf_onnx_binary(t, MTF_OP_ADD, all, mtf_onnx_binary(t, MTF_OP_MULTIPLY, here, sum));
}

static MtfOnnxValue *cubic(const Resize *r, const Side *s) {
    MtfOnnxTranslation *t = r->call->t;
    double c = mtf_onnx_float(r->call, "cubic_coeff_a", -0.75);
    MtfOnnxValue *p = places(t, s, s->a, s->b);
    MtfOnnxValue *all = keys(t, mtf_onnx_binary(t, MTF_OP_SUBTRACT, p, elements(t, s)), c);
    if (mtf_onnx_int(r->call, "exclude_outside", 0) != 0)
        return mtf_onnx_binary(t, MTF_OP_DIVIDE, all,
                               mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, all, 1, NULL));
    all = add_beyond(r, s, all, 0, -1, c);
    return add_beyond(r, s, all, (double)s->in - 1, 1, c);
}

/* ---- The operator ---------------------------------------------------------------------------- */

/* What lies beyond x is a number where a part of x is cropped. */
static MtfOnnxValue *fill_outside(const Resize *r, const Side *s, MtfOnnxValue *y, int axis) {
    MtfOnnxTranslation *t = r->call->t;
    if (strcmp(r->where, "tf_crop_and_resize") != 0 || y == NULL)
        return y;
    MtfOnnxValue *p = mtf_onnx_squeeze(t, places(t, s, s->a, s->b), 1);
    MtfOnnxValue *low = with(t, MTF_OP_GREATER_EQUAL, p, 0);
    MtfOnnxValue *inside =
        mtf_onnx_binary(t, MTF_OP_MULTIPLY, low, with(t, MTF_OP_LESS_EQUAL, p, (double)s->in - 1));
    int behind = y->rank - axis;
    if (behind > 1)
        inside = mtf_onnx_unsqueeze(t, inside, behind, ((1U << behind) - 1) & ~1U);
    double value = mtf_onnx_float(r->call, "extrapolation_value", 0);
    return mtf_onnx_where(t, inside, y, mtf_onnx_scalar(t, y->type, value));
}

static MtfOnnxValue *resize_axis(const Resize *r, const Side *s, MtfOnnxValue *x, int axis) {
    static MtfOnnxValue *(*const matrices[])(const Resize *, const Side *) = { nearest, linear,
                                                                               cubic };
    char letters[2 * MTF_ONNX_MAX_RANK + 8] = "";
    MtfOnnxTranslation *t = r->call->t;
    MtfOnnxValue *inputs[2] = { x, mtf_onnx_cast(t, matrices[r->mode](r, s), x->type) };
    int n = x->rank, at = 0;
    for (int k = 0; k < n; k++)
        letters[at++] = (char)(k == axis ? 'i' : 'A' + k);
    at += g_snprintf(letters + at, 8, ",io->");
    for (int k = 0; k < n; k++)
        letters[at++] = (char)(k == axis ? 'o' : 'A' + k);
    return fill_outside(r, s, mtf_onnx_product(t, letters, 2, inputs), axis);
}

/* "nearest" by whole factors repeats every element. */
static bool is_repeat(const Resize *r, const MtfOnnxValue *x, const Side *sides, int64_t *times) {
    bool centred =
        strcmp(r->where, "half_pixel") == 0 && g_str_has_prefix(r->nearest, "round_prefer");
    bool begun = strcmp(r->where, "asymmetric") == 0 && strcmp(r->nearest, "floor") == 0;
    bool whole = r->mode == NEAREST && (centred || begun);
    for (int k = 0; k < x->rank && whole; k++) {
        times[k] = (int64_t)sides[k].scale;
        whole = sides[k].scale >= 1 && sides[k].scale == floor(sides[k].scale) &&
                sides[k].out == sides[k].in * times[k];
    }
    return whole;
}

static bool read_ways(Resize *r) {
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    MtfOnnxCall *call = r->call;
    bool old = call->opset < 11 || strcmp(call->node->op, "Upsample") == 0;
    const char *mode = mtf_onnx_word(call, "mode", "nearest");
    r->where =
        mtf_onnx_word(call, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    r->nearest = mtf_onnx_word(call, "nearest_mode", old ? "floor" : "round_prefer_floor");
    for (r->mode = 0; r->mode <= CUBIC; r->mode++)
        if (strcmp(modes[r->mode], mode) == 0)
            break;
    if (r->mode > CUBIC)
        return mtf_onnx_fail(call->t, "mode \"%s\" is none of nearest, linear and cubic", mode) !=
               NULL;
    if (mtf_onnx_int(call, "antialias", 0) != 0)
        return mtf_onnx_fail(call->t, "antialias is not supported") != NULL;
    const char *policy = mtf_onnx_word(call, "keep_aspect_ratio_policy", "stretch");
    return strcmp(policy, "stretch") == 0 ||
           mtf_onnx_fail(call->t, "keep_aspect_ratio_policy \"%s\" is not supported", policy) !=
               NULL;
}

static MtfOnnxValue *resize(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int type = x->type;
    Side sides[MTF_ONNX_MAX_RANK];
    int64_t times[MTF_ONNX_MAX_RANK];
    Resize r = { .call = call };
    if (!read_ways(&r) || !read_sides(call, x, sides))
        return NULL;
    for (int k = 0; k < x->rank; k++)
        if (!set_places(&r, &sides[k]))
            return mtf_onnx_fail(call->t, "coordinate_transformation_mode \"%s\" is not supported",
                                 r.where);
    if (is_repeat(&r, x, sides, times))
        return mtf_onnx_repeat(call->t, x, times, true);
    if (mtf_onnx_type_is_integer(type))
        x = mtf_onnx_cast(call->t, x, MTF_ONNX_FLOAT);
    for (int k = 0; x != NULL && k < x->rank; k++)
        if (sides[k].out != sides[k].in || sides[k].a != 1 || sides[k].b != 0)
            x = resize_axis(&r, &sides[k], x, k);
    return mtf_onnx_cast(call->t, x, type);
}

const MtfOnnxOperator mtf_onnx_resize_operators[] = {
    { "Resize", resize, 0, 0, 1, 4, NULL },
    { "Upsample", resize, 0, 0, 1, 2, NULL },
    { 0 },
};
