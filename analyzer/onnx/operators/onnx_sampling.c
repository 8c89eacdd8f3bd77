// SPDX-License-Identifier: GPL-3.0-or-later
/* GridSample: a picture read at places that are given as numbers from -1 to 1 along each axis, as spatial
 * transformers and deformable attention do. Along an axis a place p meets some elements, its *taps*, each with
 * a weight; a value is the sum over the taps of both axes:
 *
 *     y[n, c, m] = sum over i, j of wy_i[n, m] wx_j[n, m] x[n, c, y_i[n, m], x_j[n, m]]
 *
 *     nearest  round(p)                        linear  floor(p), floor(p) + 1
 *     cubic    floor(p) - 1 … floor(p) + 2     by Keys' polynomials with a = -3/4 */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"
#include "analyzer/onnx/operators/onnx_places.h"

#include <string.h>

#define TAPS 4

typedef struct {
    MtfOnnxTranslation *t;
    bool corners; /* -1 and 1 are the middles of the first and last elements, not their edges */
    bool zeros,
        turns; /* what lies beyond the ends is 0, or the same backwards; else it is the last */
    int mode;
    int64_t width; /* of the picture */
} Sampling;

enum { NEAREST, LINEAR, CUBIC };

typedef struct {
    int n;
    MtfOnnxValue *place[TAPS], *weight[TAPS];
} Taps;

static MtfOnnxValue *two(const Sampling *s, int kind, MtfOnnxValue *a, MtfOnnxValue *b) {
    return mtf_onnx_binary(s->t, kind, a, b);
}

static MtfOnnxValue *number(const Sampling *s, const MtfOnnxValue *like, double value) {
    return mtf_onnx_scalar(s->t, like == NULL ? MTF_ONNX_FLOAT : like->type, value);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static MtfOnnxValue *within(const Sampling *s, MtfOnnxValue *p, int64_t size) {
    p = two(s, MTF_OP_MAXIMUM, p, number(s, p, 0));
    return two(s, MTF_OP_MINIMUM, p, number(s, p, (double)size - 1));
}

/* Turned back at both ends as often as it takes: of the span L from `low` on, low + L - |L - (|p - low| mod 2
 * L)|. */
static MtfOnnxValue *turned(const Sampling *s, MtfOnnxValue *p, int64_t size) {
    double low = s->corners ? 0 : -0.5, span = (double)size - (s->corners ? 1 : 0);
    if (span == 0)
        return mtf_onnx_affine(s->t, p, 0, 0);
    p = mtf_onnx_unary(s->t, MTF_OP_ABS, mtf_onnx_affine(s->t, p, 1, -low));
    p = two(s, MTF_OP_MODULO, p, number(s, p, 2 * span));
    p = mtf_onnx_unary(s->t, MTF_OP_ABS, mtf_onnx_affine(s->t, p, -1, span));
    return mtf_onnx_affine(s->t, p, -1, low + span);
}

/* A place within the axis for one that may lie beyond its ends, where these say what is there. */
static MtfOnnxValue *brought_in(const Sampling *s, MtfOnnxValue *p, int64_t size) {
    return s->zeros ? p : within(s, s->turns ? turned(s, p, size) : p, size);
}

/* Coordinate k of the grid, [N, M], in elements of an axis of that size. */
static MtfOnnxValue *coordinate(const Sampling *s, MtfOnnxValue *grid, int k, int64_t size) {
    const int64_t shape[] = { grid->sizes[0], grid->sizes[1] * grid->sizes[2] };
    double half = (double)(s->corners ? size - 1 : size) / 2;
    MtfOnnxValue *p = mtf_onnx_reshape(s->t, mtf_onnx_slice(s->t, grid, 3, k, 1, 1), 2, shape);
    return mtf_onnx_affine(s->t, p, half, ((double)size - 1) / 2);
}

/* ---- Taps ------------------------------------------------------------------------------------ */

/* ((c3 f + c2) f + c1) f + c0 */
static MtfOnnxValue *polynomial(const Sampling *s, MtfOnnxValue *f, const double c[4]) {
    MtfOnnxValue *y = mtf_onnx_affine(s->t, f, c[3], c[2]);
    for (int k = 1; k >= 0; k--)
        y = mtf_onnx_affine(s->t, two(s, MTF_OP_MULTIPLY, y, f), 1, c[k]);
    return y;
}

/* Weights of the elements around a place that is f behind one. */
static void weigh(const Sampling *s, Taps *taps, MtfOnnxValue *f) {
    static const double near[] = { 1, 0, -2.25, 1.25 }, far[] = { 0, -0.75, 1.5, -0.75 };
    MtfOnnxValue *rest = mtf_onnx_affine(s->t, f, -1, 1);
    if (s->mode == LINEAR) {
        taps->weight[0] = rest;
        taps->weight[1] = f;
    }
    if (s->mode != CUBIC)
        return;
    taps->weight[0] = polynomial(s, f, far);
    taps->weight[1] = polynomial(s, f, near);
    taps->weight[2] = polynomial(s, rest, near);
    taps->weight[3] = polynomial(s, rest, far);
}

/* Beyond the ends there is an element with weight 0, or what the ends say. */
static void bound(const Sampling *s, Taps *taps, int i, int64_t size) {
    MtfOnnxValue *p = taps->place[i], *inside = within(s, p, size);
    if (s->zeros) {
        MtfOnnxValue *none = number(s, p, 0);
        taps->weight[i] = mtf_onnx_where(s->t, mtf_onnx_truth(s->t, MTF_OP_EQUAL, p, inside),
                                         taps->weight[i], none);
    }
    if (s->mode == CUBIC)
        inside = within(s, brought_in(s, p, size), size);
    taps->place[i] = mtf_onnx_cast(s->t, inside, MTF_ONNX_INT64);
}

static Taps taps_of(const Sampling *s, MtfOnnxValue *p, int64_t size) {
    Taps taps = { .n = (const int[]){ 1, 2, 4 }[s->mode] };
    if (s->mode != CUBIC)
        p = brought_in(s, p, size);
    MtfOnnxValue *base =
        s->mode == NEAREST ? mtf_onnx_round_even(s->t, p) : mtf_onnx_unary(s->t, MTF_OP_FLOOR, p);
    taps.weight[0] = number(s, p, 1);
    weigh(s, &taps, two(s, MTF_OP_SUBTRACT, p, base));
    for (int i = 0; i < taps.n; i++) {
        taps.place[i] = mtf_onnx_affine(s->t, base, 1, s->mode == CUBIC ? i - 1 : i);
        bound(s, &taps, i, size);
    }
    return taps;
}

/* ---- The operator ---------------------------------------------------------------------------- */

/* x [N, H W, C] at the taps, by their weights: [N, M, C]. */
static MtfOnnxValue *sum_of_taps(const Sampling *s, MtfOnnxValue *x, const Taps *rows,
                                 const Taps *columns, const int64_t sizes[3], int64_t m) {
    MtfOnnxValue *sum = NULL;
    for (int k = 0; k < rows->n * columns->n && s->t->error == NULL; k++) {
        int i = k / columns->n, j = k % columns->n;
        MtfOnnxValue *row = mtf_onnx_affine(s->t, rows->place[i], (double)s->width, 0);
        MtfOnnxValue *place = two(s, MTF_OP_ADD, row, columns->place[j]);
        MtfOnnxValue *value = mtf_onnx_read_rows(s->t, x, place, sizes, m);
        MtfOnnxValue *weight = two(s, MTF_OP_MULTIPLY, rows->weight[i], columns->weight[j]);
        weight =
            weight != NULL && weight->rank > 0 ? mtf_onnx_unsqueeze(s->t, weight, 3, 4) : weight;
        value = mtf_onnx_reshape(s->t, value, 3, (const int64_t[]){ sizes[0], m, sizes[2] });
        value = two(s, MTF_OP_MULTIPLY, value, weight);
        sum = sum == NULL ? value : two(s, MTF_OP_ADD, sum, value);
    }
    return sum;
}

/* The mode of that name, "bilinear" and "linear" being the same; or -1. */
static int mode_of(const char *name) {
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    for (int k = 0; k < 3; k++)
        if (strcmp(name, modes[k]) == 0 || (name[0] == 'b' && strcmp(name + 2, modes[k]) == 0))
            return k;
    return -1;
}

static MtfOnnxValue *grid_sample(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *grid = call->inputs[1];
    const char *mode = mtf_onnx_word(call, "mode", "linear");
    const char *beyond = mtf_onnx_word(call, "padding_mode", "zeros");
    Sampling s = { .t = t,
                   .corners = mtf_onnx_int(call, "align_corners", 0) != 0,
                   .zeros = strcmp(beyond, "zeros") == 0,
                   .turns = strcmp(beyond, "reflection") == 0,
                   .mode = mode_of(mode),
                   .width = x->rank == 4 ? x->sizes[3] : 0 };
    if (s.mode < 0)
        return mtf_onnx_fail(t, "mode \"%s\" is none of nearest, linear and cubic", mode);
    if (!s.zeros && !s.turns && strcmp(beyond, "border") != 0)
        return mtf_onnx_fail(t, "padding_mode \"%s\" is none of zeros, border and reflection",
                             beyond);
    if (x->rank != 4 || grid->rank != 4 || grid->sizes[3] != 2 || grid->sizes[0] != x->sizes[0])
        return mtf_onnx_fail(
            t, "only pictures [N, C, H, W] at places [N, rows, columns, 2] are supported");
    const int64_t *size = x->sizes, out[] = { size[0], grid->sizes[1], grid->sizes[2], size[1] };
    const int64_t rows[] = { size[0], size[2] * size[3], size[1] };
    Taps across = taps_of(&s, coordinate(&s, grid, 0, size[3]), size[3]);
    Taps down = taps_of(&s, coordinate(&s, grid, 1, size[2]), size[2]);
    MtfOnnxValue *elements = mtf_onnx_transpose(t, x, (const int[]){ 0, 2, 3, 1 });
    MtfOnnxValue *y = sum_of_taps(&s, mtf_onnx_reshape(t, elements, 3, rows), &down, &across, rows,
                                  out[1] * out[2]);
    return mtf_onnx_transpose(t, mtf_onnx_reshape(t, y, 4, out), (const int[]){ 0, 3, 1, 2 });
}

const MtfOnnxOperator mtf_onnx_sampling_operators[] = {
    { "GridSample", grid_sample, 0, 0, 2, 2, NULL },
    { 0 },
};
