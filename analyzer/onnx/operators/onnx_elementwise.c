// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that compute element by element. */
#include "analyzer/onnx/onnx_known.h"
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static bool is_integer(const MtfOnnxValue *x) {
    return x != NULL && mtf_onnx_type_is_integer(x->type);
}

/* The value as a float, for functions that integers lack, and back. */
static MtfOnnxValue *as_float(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    return is_integer(x) ? mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE) : x;
}

static MtfOnnxValue *with_number(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x, double number) {
    return x == NULL ? NULL : mtf_onnx_binary(t, kind, x, mtf_onnx_scalar(t, x->type, number));
}

static MtfOnnxValue *unary(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    bool exact = mtf_operation_row(call->kind)->integers;
    MtfOnnxValue *y = mtf_onnx_unary(call->t, call->kind, exact ? x : as_float(call->t, x));
    return mtf_onnx_cast(call->t, y, x->type);
}

/* Before opset 7 the second input's first axis could be told. */
static MtfOnnxValue *second(MtfOnnxCall *call) {
    MtfOnnxValue *a = call->inputs[0], *b = call->inputs[1];
    int64_t axis = mtf_onnx_int(call, "axis", -1);
    if (call->opset >= 7 || mtf_onnx_int(call, "broadcast", 0) == 0 || axis < 0 ||
        axis + b->rank >= a->rank)
        return b;
    int rank = a->rank - (int)axis;
    return mtf_onnx_unsqueeze(call->t, b, rank, ((1U << rank) - 1) & ~((1U << b->rank) - 1));
}

static MtfOnnxValue *binary(MtfOnnxCall *call) {
    return mtf_onnx_binary(call->t, call->kind, call->inputs[0], second(call));
}

/* A single factor is a scale, which stays linear. */
static MtfOnnxValue *multiply(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *a = call->inputs[0], *b = second(call);
    double number;
    if (b == NULL || mtf_onnx_all_fold(t, 2, (MtfOnnxValue *[]){ a, b }) || is_integer(a))
        return mtf_onnx_binary(t, MTF_OP_MULTIPLY, a, b);
    if (b->rank <= a->rank && mtf_onnx_folds(t, b) && mtf_onnx_is_number(t, b, &number))
        return mtf_onnx_affine(t, a, number, 0);
    if (a->rank <= b->rank && mtf_onnx_folds(t, a) && mtf_onnx_is_number(t, a, &number))
        return mtf_onnx_affine(t, b, number, 0);
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, a, b);
}

/* sign(q) floor(|q|) */
static MtfOnnxValue *truncated(MtfOnnxTranslation *t, MtfOnnxValue *q) {
    MtfOnnxValue *size = mtf_onnx_unary(t, MTF_OP_FLOOR, mtf_onnx_unary(t, MTF_OP_ABS, q));
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, mtf_onnx_unary(t, MTF_OP_SIGN, q), size);
}

static MtfOnnxValue *divide(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *a = call->inputs[0], *b = second(call);
    double number;
    bool known = b != NULL && mtf_onnx_all_fold(t, 2, (MtfOnnxValue *[]){ a, b });
    if (is_integer(a) && !known) {
        MtfOnnxValue *q = mtf_onnx_binary(t, MTF_OP_DIVIDE, as_float(t, a), as_float(t, b));
        return mtf_onnx_cast(t, truncated(t, q), a->type);
    }
    if (b != NULL && !known && b->rank <= a->rank && mtf_onnx_folds(t, b) &&
        mtf_onnx_is_number(t, b, &number) && number != 0)
        return mtf_onnx_affine(t, a, 1 / number, 0);
    return mtf_onnx_binary(t, MTF_OP_DIVIDE, a, b);
}

/* Remainders have the divisor's sign, or with fmod the dividend's. */
static MtfOnnxValue *remainder_of(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *a = call->inputs[0], *b = call->inputs[1];
    if (mtf_onnx_int(call, "fmod", 0) == 0)
        return mtf_onnx_binary(t, MTF_OP_MODULO, a, b);
    int type = a->type;
    a = as_float(t, a);
    b = as_float(t, b);
    MtfOnnxValue *whole = truncated(t, mtf_onnx_binary(t, MTF_OP_DIVIDE, a, b));
    MtfOnnxValue *rest =
        mtf_onnx_binary(t, MTF_OP_SUBTRACT, a, mtf_onnx_binary(t, MTF_OP_MULTIPLY, b, whole));
    return mtf_onnx_cast(t, rest, type);
}

/* a 2^b within the type's bits, or floor(a / 2^b). */
static MtfOnnxValue *bit_shift(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    int type = call->inputs[0]->type;
    double bits = type == MTF_ONNX_UINT8 ? 8 : type == MTF_ONNX_UINT16 ? 16 : 32;
    const char *way = mtf_onnx_word(call, "direction", "");
    MtfOnnxValue *a = mtf_onnx_cast(t, call->inputs[0], MTF_ONNX_DOUBLE);
    MtfOnnxValue *b = mtf_onnx_cast(t, call->inputs[1], MTF_ONNX_DOUBLE);
    MtfOnnxValue *two = mtf_onnx_scalar(t, MTF_ONNX_DOUBLE, 2);
    MtfOnnxValue *times = mtf_onnx_binary(t, MTF_OP_POWER, two, b), *y;
    if (strcmp(way, "LEFT") == 0)
        y = mtf_onnx_binary(t, MTF_OP_MODULO, mtf_onnx_binary(t, MTF_OP_MULTIPLY, a, times),
                            mtf_onnx_scalar(t, MTF_ONNX_DOUBLE, exp2(bits)));
    else if (strcmp(way, "RIGHT") == 0)
        y = mtf_onnx_unary(t, MTF_OP_FLOOR, mtf_onnx_binary(t, MTF_OP_DIVIDE, a, times));
    else
        return mtf_onnx_fail(t, "direction \"%s\" is neither LEFT nor RIGHT", way);
    return mtf_onnx_cast(t, y, type);
}

static MtfOnnxValue *power(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *a = as_float(t, call->inputs[0]), *b = second(call);
    MtfAttributes raised = MTF_NO_ATTRIBUTES;
    bool number = a != NULL && b != NULL && b->rank <= a->rank && mtf_onnx_folds(t, b) &&
                  mtf_onnx_is_number(t, b, &raised.exponent);
    MtfOnnxValue *y;
    if (number && raised.exponent == 2)
        y = mtf_onnx_unary(t, MTF_OP_SQUARE, a);
    else if (number && raised.exponent == 0.5)
        y = mtf_onnx_unary(t, MTF_OP_SQRT, a);
    else if (number)
        y = mtf_onnx_map(t, MTF_OP_RAISE, &raised, 1, &a);
    else
        y = mtf_onnx_binary(t, MTF_OP_POWER, a, mtf_onnx_cast(t, b, a == NULL ? 0 : a->type));
    return mtf_onnx_cast(t, y, call->inputs[0]->type);
}

/* Comparisons and logic. */
static MtfOnnxValue *truth(MtfOnnxCall *call) {
    return mtf_onnx_truth(call->t, call->kind, call->inputs[0], second(call));
}

static MtfOnnxValue *negation(MtfOnnxCall *call) {
    return mtf_onnx_unary(call->t, MTF_OP_LOGICAL_NOT, call->inputs[0]);
}

/* NaN differs from itself. */
static MtfOnnxValue *is_nan(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    MtfOnnxValue *y = mtf_onnx_binary(call->t, MTF_OP_NOT_EQUAL, x, x);
    return mtf_onnx_cast(call->t, y, MTF_ONNX_BOOL);
}

/* Of one or more inputs; `number` 1: their mean. */
static MtfOnnxValue *variadic(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *y = call->inputs[0];
    if (call->n_inputs > 1 && call->kind == MTF_OP_ADD)
        y = mtf_onnx_map(t, MTF_OP_ADD, NULL, call->n_inputs, call->inputs);
    for (int k = 1; k < call->n_inputs && call->kind != MTF_OP_ADD; k++)
        y = mtf_onnx_binary(t, call->kind, y, call->inputs[k]);
    return call->number == 0 ? y : mtf_onnx_affine(t, y, 1 / (double)call->n_inputs, 0);
}

static MtfOnnxValue *where(MtfOnnxCall *call) {
    return mtf_onnx_where(call->t, call->inputs[0], call->inputs[1], call->inputs[2]);
}

static MtfOnnxValue *same(MtfOnnxCall *call) {
    return call->inputs[0];
}

/* At inference, and at a ratio of 0, nothing is dropped; the mask is all true. In training the graph drops anew in
 * each step, and what it dropped is not told. */
static MtfOnnxValue *dropout(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    double training, ratio;
    if (!mtf_onnx_known_input(call, 1, mtf_onnx_float(call, "ratio", 0.5), &ratio) ||
        !mtf_onnx_known_input(call, 2, 0, &training))
        return NULL;
    bool drops = training != 0 && ratio != 0;
    if (drops && call->n_outputs > 1)
        return mtf_onnx_fail(call->t, "the mask of dropout in training is not supported");
    if (call->n_outputs > 1)
        call->outputs[1] = mtf_onnx_uniform(call->t, MTF_ONNX_BOOL, x->rank, x->sizes, 1);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.rate = ratio;
    return drops ? mtf_onnx_map(call->t, MTF_OP_DROPOUT, &attributes, 1, &x) : x;
}

static MtfOnnxValue *cast(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int to = call->n_inputs > 1 ? call->inputs[1]->type : (int)mtf_onnx_int(call, "to", 0);
    if (mtf_onnx_type_bytes(x->type) == 0 || mtf_onnx_type_bytes(to) == 0)
        return mtf_onnx_fail(t, "from %s to %s is not supported", mtf_onnx_type_name(x->type),
                             mtf_onnx_type_name(to));
    return mtf_onnx_cast(t, x, to);
}

/* Whether a value is known and finite, as a graph's attributes are. */
static bool is_finite(MtfOnnxTranslation *t, MtfOnnxValue *x, double *number) {
    return mtf_onnx_folds(t, x) && mtf_onnx_is_number(t, x, number) && isfinite(*number);
}

/* x within low … high; `number` says which attributes are there. */
static MtfOnnxValue *clip(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *low = mtf_onnx_input(call, 1),
                 *high = mtf_onnx_input(call, 2);
    if (mtf_onnx_attribute(call->node, "min") != NULL)
        low = mtf_onnx_scalar(t, x->type, mtf_onnx_float(call, "min", 0));
    if (mtf_onnx_attribute(call->node, "max") != NULL)
        high = mtf_onnx_scalar(t, x->type, mtf_onnx_float(call, "max", 0));
    MtfAttributes ends = MTF_NO_ATTRIBUTES;
    if (low != NULL && high != NULL && !is_integer(x) && is_finite(t, low, &ends.low) &&
        is_finite(t, high, &ends.high) && ends.low <= ends.high)
        return mtf_onnx_map(t, MTF_OP_CLIP, &ends, 1, &x);
    if (low != NULL)
        x = mtf_onnx_binary(t, MTF_OP_MAXIMUM, x, low);
    return high != NULL ? mtf_onnx_binary(t, MTF_OP_MINIMUM, x, high) : x;
}

/* ---- Functions of hidden layers -------------------------------------------------------------- */

static MtfOnnxValue *leaky(MtfOnnxCall *call) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.slope = mtf_onnx_float(call, "alpha", call->number);
    return mtf_onnx_map(call->t, call->kind, &a, 1, call->inputs);
}

/* gamma elu(x), of slope alpha. */
static MtfOnnxValue *selu(MtfOnnxCall *call) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.slope = mtf_onnx_float(call, "alpha", 1.67326319217681884765625);
    MtfOnnxValue *y = mtf_onnx_map(call->t, MTF_OP_ELU, &a, 1, call->inputs);
    return mtf_onnx_affine(call->t, y, mtf_onnx_float(call, "gamma", 1.05070102214813232421875), 0);
}

/* max(x, 0) + alpha min(0, e^(x / alpha) - 1) */
static MtfOnnxValue *celu(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    double alpha = mtf_onnx_float(call, "alpha", 1);
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.slope = 1;
    MtfOnnxValue *scaled = mtf_onnx_affine(t, call->inputs[0], 1 / alpha, 0);
    MtfOnnxValue *y = mtf_onnx_map(t, MTF_OP_ELU, &a, 1, &scaled);
    return mtf_onnx_affine(t, y, alpha, 0);
}

static MtfOnnxValue *clipped(MtfOnnxTranslation *t, MtfOnnxValue *x, double low, double high) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.low = low;
    a.high = high;
    return mtf_onnx_map(t, MTF_OP_CLIP, &a, 1, &x);
}

static MtfOnnxValue *hard_sigmoid(MtfOnnxCall *call) {
    MtfOnnxValue *line =
        mtf_onnx_affine(call->t, call->inputs[0], mtf_onnx_float(call, "alpha", 0.2),
                        mtf_onnx_float(call, "beta", 0.5));
    return clipped(call->t, line, 0, 1);
}

static MtfOnnxValue *hard_swish(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, x,
                           clipped(t, mtf_onnx_affine(t, x, 1.0 / 6, 0.5), 0, 1));
}

static MtfOnnxValue *thresholded_relu(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    MtfOnnxValue *above = with_number(t, MTF_OP_GREATER, x, mtf_onnx_float(call, "alpha", 1));
    return mtf_onnx_where(t, above, x, mtf_onnx_scalar(t, x->type, 0));
}

static MtfOnnxValue *softsign(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    return mtf_onnx_binary(t, MTF_OP_DIVIDE, x,
                           mtf_onnx_affine(t, mtf_onnx_unary(t, MTF_OP_ABS, x), 1, 1));
}

/* max(x, 0) + slope min(x, 0); the slope's axes are x's last or, before opset 7, its channels. */
static MtfOnnxValue *prelu(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *slope = mtf_onnx_weight(t, call->inputs[1], false);
    if (slope != NULL && call->opset < 7 && slope->rank == 1 && x->rank > 2)
        slope = mtf_onnx_unsqueeze(t, slope, x->rank - 1, ((1U << (x->rank - 1)) - 1) & ~1U);
    MtfOnnxValue *below = with_number(t, MTF_OP_MINIMUM, x, 0);
    return mtf_onnx_binary(
        t, MTF_OP_ADD, mtf_onnx_unary(t, MTF_OP_RELU, as_float(t, x)),
        mtf_onnx_binary(t, MTF_OP_MULTIPLY, as_float(t, below), as_float(t, slope)));
}

static MtfOnnxValue *gelu(MtfOnnxCall *call) {
    bool tanh = strcmp(mtf_onnx_word(call, "approximate", "none"), "tanh") == 0;
    return mtf_onnx_unary(call->t, tanh ? MTF_OP_GELU : MTF_OP_GELU_EXACT, call->inputs[0]);
}

static MtfOnnxValue *mish(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, x,
                           mtf_onnx_unary(t, MTF_OP_TANH, mtf_onnx_unary(t, MTF_OP_SOFTPLUS, x)));
}

/* x sigmoid(alpha x) */
static MtfOnnxValue *swish(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    double alpha = mtf_onnx_float(call, "alpha", 1);
    if (alpha == 1)
        return mtf_onnx_unary(t, MTF_OP_SILU, x);
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, x,
                           mtf_onnx_unary(t, MTF_OP_SIGMOID, mtf_onnx_affine(t, x, alpha, 0)));
}

/* ---- Functions from others ------------------------------------------------------------------- */

static MtfOnnxValue *tangent(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    return mtf_onnx_binary(t, MTF_OP_DIVIDE, mtf_onnx_unary(t, MTF_OP_SIN, call->inputs[0]),
                           mtf_onnx_unary(t, MTF_OP_COS, call->inputs[0]));
}

/* (e^x + number e^-x) / 2 */
static MtfOnnxValue *hyperbolic(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    MtfOnnxValue *up = mtf_onnx_unary(t, MTF_OP_EXP, x);
    MtfOnnxValue *down = mtf_onnx_unary(t, MTF_OP_EXP, mtf_onnx_unary(t, MTF_OP_NEGATE, x));
    return mtf_onnx_affine(
        t, mtf_onnx_binary(t, MTF_OP_ADD, up, mtf_onnx_affine(t, down, call->number, 0)), 0.5, 0);
}

/* log(x + sqrt(x^2 + number)) */
static MtfOnnxValue *area(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    MtfOnnxValue *square = mtf_onnx_affine(t, mtf_onnx_unary(t, MTF_OP_SQUARE, x), 1, call->number);
    MtfOnnxValue *root = mtf_onnx_unary(t, MTF_OP_SQRT, square);
    return mtf_onnx_unary(t, MTF_OP_LOG, mtf_onnx_binary(t, MTF_OP_ADD, x, root));
}

/* log((1 + x) / (1 - x)) / 2 */
static MtfOnnxValue *area_tangent(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    MtfOnnxValue *ratio = mtf_onnx_binary(t, MTF_OP_DIVIDE, mtf_onnx_affine(t, x, 1, 1),
                                          mtf_onnx_affine(t, x, -1, 1));
    return mtf_onnx_affine(t, mtf_onnx_unary(t, MTF_OP_LOG, ratio), 0.5, 0);
}

/* arctan x: three times half of the angle, x / (1 + sqrt(1 + x^2)), lie within pi / 16, where x - x^3/3 + … -
 * x^15/15 is exact to 1e-13. */
static MtfOnnxValue *arc_tangent_of(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    for (int halves = 0; halves < 3; halves++) {
        MtfOnnxValue *square = mtf_onnx_unary(t, MTF_OP_SQUARE, x);
        MtfOnnxValue *root = mtf_onnx_unary(t, MTF_OP_SQRT, mtf_onnx_affine(t, square, 1, 1));
        x = mtf_onnx_binary(t, MTF_OP_DIVIDE, x, mtf_onnx_affine(t, root, 1, 1));
    }
    MtfOnnxValue *square = mtf_onnx_unary(t, MTF_OP_SQUARE, x);
    MtfOnnxValue *sum = mtf_onnx_affine(t, square, -1.0 / 15, 1.0 / 13);
    for (int k = 11; k >= 1; k -= 2)
        sum = mtf_onnx_affine(t, mtf_onnx_binary(t, MTF_OP_MULTIPLY, sum, square), 1,
                              (k % 4 == 1 ? 1.0 : -1.0) / k);
    return mtf_onnx_affine(t, mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, sum), 8, 0);
}

static MtfOnnxValue *arc_tangent(MtfOnnxCall *call) {
    return arc_tangent_of(call->t, call->inputs[0]);
}

/* arcsin x = 2 arctan(x / (1 + sqrt(1 - x^2))), and arccos x what is left of a right angle (number 1). */
static MtfOnnxValue *arc_sine(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *square = mtf_onnx_unary(t, MTF_OP_SQUARE, x);
    MtfOnnxValue *root = mtf_onnx_unary(t, MTF_OP_SQRT, mtf_onnx_affine(t, square, -1, 1));
    MtfOnnxValue *half =
        arc_tangent_of(t, mtf_onnx_binary(t, MTF_OP_DIVIDE, x, mtf_onnx_affine(t, root, 1, 1)));
    return call->number == 0 ? mtf_onnx_affine(t, half, 2, 0)
                             : mtf_onnx_affine(t, half, -2, G_PI_2);
}

static MtfOnnxValue *round_even(MtfOnnxCall *call) {
    return mtf_onnx_round_even(call->t, call->inputs[0]);
}

/* x + bias below -lambda, x - bias above it, else 0. */
static MtfOnnxValue *shrink(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    double bias = mtf_onnx_float(call, "bias", 0), lambda = mtf_onnx_float(call, "lambd", 0.5);
    MtfOnnxValue *moved =
        mtf_onnx_where(t, with_number(t, MTF_OP_GREATER, x, lambda),
                       mtf_onnx_affine(t, x, 1, -bias), mtf_onnx_scalar(t, x->type, 0));
    return mtf_onnx_where(t, with_number(t, MTF_OP_LESS, x, -lambda),
                          mtf_onnx_affine(t, x, 1, bias), moved);
}

/* Nothing but infinity is more than the largest number. */
static MtfOnnxValue *is_infinite(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    double most = mtf_onnx_dtype(x->type) == MTF_F32 ? FLT_MAX : DBL_MAX;
    bool above = mtf_onnx_int(call, "detect_positive", 1) != 0,
         below = mtf_onnx_int(call, "detect_negative", 1) != 0;
    if (above && below)
        x = mtf_onnx_unary(t, MTF_OP_ABS, x);
    else if (below)
        x = mtf_onnx_unary(t, MTF_OP_NEGATE, x);
    if (!above && !below)
        return mtf_onnx_uniform(t, MTF_ONNX_BOOL, x->rank, x->sizes, 0);
    return mtf_onnx_cast(t, with_number(t, MTF_OP_GREATER, x, most), MTF_ONNX_BOOL);
}

#define UNARY(name, kind) \
    { name, unary, kind, 0, 1, 1, NULL }
#define TRUTH(name, kind) \
    { name, truth, kind, 0, 2, 2, NULL }

const MtfOnnxOperator mtf_onnx_elementwise_operators[] = {
    UNARY("Abs", MTF_OP_ABS),
    { "Acosh", area, 0, -1, 1, 1, NULL },
    { "Acos", arc_sine, 0, 1, 1, 1, NULL },
    { "Add", binary, MTF_OP_ADD, 0, 2, 2, NULL },
    TRUTH("And", MTF_OP_LOGICAL_AND),
    { "Asin", arc_sine, 0, 0, 1, 1, NULL },
    { "Asinh", area, 0, 1, 1, 1, NULL },
    { "Atan", arc_tangent, 0, 0, 1, 1, NULL },
    { "Atanh", area_tangent, 0, 0, 1, 1, NULL },
    { "BitShift", bit_shift, 0, 0, 2, 2, NULL },
    { "Cast", cast, 0, 0, 1, 1, NULL },
    { "CastLike", cast, 0, 0, 2, 2, NULL },
    UNARY("Ceil", MTF_OP_CEIL),
    { "Celu", celu, 0, 0, 1, 1, NULL },
    { "Clip", clip, 0, 0, 1, 3, NULL },
    UNARY("Cos", MTF_OP_COS),
    { "Cosh", hyperbolic, 0, 1, 1, 1, NULL },
    { "Div", divide, 0, 0, 2, 2, NULL },
    { "Dropout", dropout, 0, 0, 1, 3, NULL },
    { "Elu", leaky, MTF_OP_ELU, 1, 1, 1, NULL },
    TRUTH("Equal", MTF_OP_EQUAL),
    UNARY("Erf", MTF_OP_ERF),
    UNARY("Exp", MTF_OP_EXP),
    UNARY("Floor", MTF_OP_FLOOR),
    { "Gelu", gelu, 0, 0, 1, 1, NULL },
    { "Gelu", gelu, 0, 0, 1, 1, "com.microsoft" },
    TRUTH("Greater", MTF_OP_GREATER),
    TRUTH("GreaterOrEqual", MTF_OP_GREATER_EQUAL),
    { "HardSigmoid", hard_sigmoid, 0, 0, 1, 1, NULL },
    { "HardSwish", hard_swish, 0, 0, 1, 1, NULL },
    { "Identity", same, 0, 0, 1, 1, NULL },
    { "IsInf", is_infinite, 0, 0, 1, 1, NULL },
    { "IsNaN", is_nan, 0, 0, 1, 1, NULL },
    { "LeakyRelu", leaky, MTF_OP_LEAKY_RELU, 0.01, 1, 1, NULL },
    TRUTH("Less", MTF_OP_LESS),
    TRUTH("LessOrEqual", MTF_OP_LESS_EQUAL),
    UNARY("Log", MTF_OP_LOG),
    { "Max", variadic, MTF_OP_MAXIMUM, 0, 1, INT_MAX, NULL },
    { "Mean", variadic, MTF_OP_ADD, 1, 1, INT_MAX, NULL },
    { "Min", variadic, MTF_OP_MINIMUM, 0, 1, INT_MAX, NULL },
    { "Mish", mish, 0, 0, 1, 1, NULL },
    { "Mod", remainder_of, 0, 0, 2, 2, NULL },
    { "Mul", multiply, 0, 0, 2, 2, NULL },
    UNARY("Neg", MTF_OP_NEGATE),
    { "Not", negation, 0, 0, 1, 1, NULL },
    TRUTH("Or", MTF_OP_LOGICAL_OR),
    { "PRelu", prelu, 0, 0, 2, 2, NULL },
    { "Pow", power, 0, 0, 2, 2, NULL },
    { "QuickGelu", swish, 0, 0, 1, 1, "com.microsoft" },
    UNARY("Reciprocal", MTF_OP_RECIPROCAL),
    UNARY("Relu", MTF_OP_RELU),
    { "Round", round_even, 0, 0, 1, 1, NULL },
    { "Selu", selu, 0, 0, 1, 1, NULL },
    { "Shrink", shrink, 0, 0, 1, 1, NULL },
    UNARY("Sigmoid", MTF_OP_SIGMOID),
    UNARY("Sign", MTF_OP_SIGN),
    UNARY("Sin", MTF_OP_SIN),
    { "Sinh", hyperbolic, 0, -1, 1, 1, NULL },
    UNARY("Softplus", MTF_OP_SOFTPLUS),
    { "Softsign", softsign, 0, 0, 1, 1, NULL },
    UNARY("Sqrt", MTF_OP_SQRT),
    { "Sub", binary, MTF_OP_SUBTRACT, 0, 2, 2, NULL },
    { "Sum", variadic, MTF_OP_ADD, 0, 1, INT_MAX, NULL },
    { "Swish", swish, 0, 0, 1, 1, NULL },
    { "Tan", tangent, 0, 0, 1, 1, NULL },
    UNARY("Tanh", MTF_OP_TANH),
    { "ThresholdedRelu", thresholded_relu, 0, 0, 1, 1, NULL },
    { "Where", where, 0, 0, 3, 3, NULL },
    TRUTH("Xor", MTF_OP_LOGICAL_XOR),
    { 0 },
};
