// SPDX-License-Identifier: GPL-3.0-or-later
/* Fourier's transforms of complex numbers whose parts are the last axis, as products with cosines and sines:
 *
 *     Y[k] = sum over n of x[n] (cos u - i sin u),   u = 2 pi k n / L
 *
 * The inverse one has i in place of -i and a factor of 1 / L. Of short pieces of a signal (STFT) the sums are
 * convolutions whose filters are the waves, times a window. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

/* The waves of the first `waves` frequencies at `places` places: cosines and sines [waves, places]. */
typedef struct {
    MtfOnnxValue *cosines, *sines;
} Waves;

static Waves waves_of(MtfOnnxTranslation *t, int64_t waves, int64_t places, int64_t length,
                      int type) {
    const int64_t sizes[] = { waves, places };
    MtfOnnxValue *k = mtf_onnx_range(t, MTF_ONNX_DOUBLE, 2, sizes, 0);
    MtfOnnxValue *n = mtf_onnx_range(t, MTF_ONNX_DOUBLE, 2, sizes, 1);
    MtfOnnxValue *turn = mtf_onnx_binary(t, MTF_OP_MULTIPLY, k, n);
    turn = mtf_onnx_binary(t, MTF_OP_MODULO, turn,
                           mtf_onnx_scalar(t, MTF_ONNX_DOUBLE, (double)length));
    turn = mtf_onnx_affine(t, turn, 2 * G_PI / (double)length, 0);
    return (Waves){ mtf_onnx_cast(t, mtf_onnx_unary(t, MTF_OP_COS, turn), type),
                    mtf_onnx_cast(t, mtf_onnx_unary(t, MTF_OP_SIN, turn), type) };
}

/* Real and imaginary parts beside each other along a new last axis. */
static MtfOnnxValue *beside(MtfOnnxTranslation *t, MtfOnnxValue *real, MtfOnnxValue *imaginary) {
    if (real == NULL || imaginary == NULL)
        return NULL;
    int rank = real->rank;
    MtfOnnxValue *parts[] = { mtf_onnx_unsqueeze(t, real, rank + 1, 1U << rank),
                              mtf_onnx_unsqueeze(t, imaginary, rank + 1, 1U << rank) };
    return mtf_onnx_concat(t, rank, 2, parts);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Part `which` of x, its axis `axis` summed with a matrix [waves, places]. */
static MtfOnnxValue *sum_with(MtfOnnxTranslation *t, MtfOnnxValue *x, int which, int axis,
                              MtfOnnxValue *matrix) {
    char in[] = "abcdefgh", out[] = "abcdefgh";
    int rest = x->rank - 1;
    MtfOnnxValue *part = mtf_onnx_squeeze(t, mtf_onnx_slice(t, x, rest, which, 1, 1), 1U << rest);
    in[rest] = out[rest] = 0;
    in[axis] = 'n';
    out[axis] = 'k';
    g_autofree char *letters = g_strdup_printf("%s,kn->%s", in, out);
    return mtf_onnx_product(t, letters, 2, (MtfOnnxValue *[]){ part, matrix });
}

static MtfOnnxValue *fourier(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 1), x->rank);
    double length = 0;
    if (axis < 0 || !mtf_onnx_known_input(call, 1, (double)x->sizes[axis], &length))
        return NULL;
    if (axis == x->rank - 1 || x->rank > 8 || x->sizes[x->rank - 1] > 2 || !(length >= 1))
        return mtf_onnx_fail(
            t, "the last axis should have the parts of numbers, and another be transformed");
    int64_t whole = (int64_t)length, read = MIN(whole, x->sizes[axis]);
    bool half = mtf_onnx_int(call, "onesided", 0) != 0,
         back = mtf_onnx_int(call, "inverse", 0) != 0;
    Waves w = waves_of(t, half ? whole / 2 + 1 : whole, read, whole, x->type);
    double sign = back ? -1 : 1;
    x = mtf_onnx_slice(t, x, axis, 0, 1, read);
    if (x == NULL)
        return NULL;
    MtfOnnxValue *real = sum_with(t, x, 0, axis, w.cosines);
    MtfOnnxValue *imaginary = mtf_onnx_affine(t, sum_with(t, x, 0, axis, w.sines), -sign, 0);
    if (x->sizes[x->rank - 1] == 2) {
        MtfOnnxValue *sines = mtf_onnx_affine(t, sum_with(t, x, 1, axis, w.sines), sign, 0);
        real = mtf_onnx_binary(t, MTF_OP_ADD, real, sines);
        imaginary = mtf_onnx_binary(t, MTF_OP_ADD, imaginary, sum_with(t, x, 1, axis, w.cosines));
    }
    return mtf_onnx_affine(t, beside(t, real, imaginary), back ? 1 / length : 1, 0);
}

/* ---- Of pieces ------------------------------------------------------------------------------- */

/* x [batch, 1, time] by waves, times the window where there is one, every `step` places: [batch, pieces,
 * waves]. */
static MtfOnnxValue *pieces(MtfOnnxTranslation *t, MtfOnnxValue *x, MtfOnnxValue *waves,
                            MtfOnnxValue *window, int64_t step) {
    MtfOnnxWindows windows = { .n = 1, .kind = MTF_OP_CONV, .letters = "nc,mc->nm" };
    if (window != NULL)
        waves = mtf_onnx_binary(t, MTF_OP_MULTIPLY, waves, window);
    if (waves == NULL || x == NULL)
        return NULL;
    windows.axis[0].places = waves->sizes[1];
    windows.axis[0].out = 1 + (x->sizes[2] - waves->sizes[1]) / step;
    windows.axis[0].stride = step;
    windows.axis[0].dilation = 1;
    MtfOnnxValue *y = mtf_onnx_windowed(t, &windows, x, mtf_onnx_unsqueeze(t, waves, 3, 2));
    return mtf_onnx_transpose(t, y, (const int[]){ 0, 2, 1 });
}

static MtfOnnxValue *fourier_of_pieces(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *window = mtf_onnx_input(call, 2);
    double step = 0, length = window != NULL && window->rank == 1 ? (double)window->sizes[0] : 0;
    if (!mtf_onnx_known_input(call, 1, 0, &step) || !mtf_onnx_known_input(call, 3, length, &length))
        return NULL;
    if (x->rank != 3 || x->sizes[2] != 1)
        return mtf_onnx_fail(t, "only signals [batch, time, 1] are supported");
    if (!(step >= 1) || !(length >= 1) || length > (double)x->sizes[1])
        return mtf_onnx_fail(t, "pieces of %g every %g places do not go into %" G_GINT64_FORMAT,
                             length, step, x->sizes[1]);
    int64_t all = (int64_t)length;
    bool half = mtf_onnx_int(call, "onesided", 1) != 0;
    Waves w = waves_of(t, half ? all / 2 + 1 : all, all, all, x->type);
    x = mtf_onnx_transpose(t, x, (const int[]){ 0, 2, 1 });
    MtfOnnxValue *real = pieces(t, x, w.cosines, window, (int64_t)step);
    MtfOnnxValue *imaginary = pieces(t, x, w.sines, window, (int64_t)step);
    return beside(t, real, mtf_onnx_affine(t, imaginary, -1, 0));
}

const MtfOnnxOperator mtf_onnx_spectrum_operators[] = {
    { "DFT", fourier, 0, 0, 1, 2, NULL },
    { "STFT", fourier_of_pieces, 0, 0, 2, 4, NULL },
    { 0 },
};
