// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that sum and normalise over axes. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <string.h>

#define MOST (2 * MTF_ONNX_MAX_RANK)

/* Axes first … end of `rank` as bits. */
static unsigned axes_between(int first, int end) {
    return ((1U << end) - 1) & ~((1U << first) - 1);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The axes that a reduction names, all where it names none. */
static bool reduced_axes(MtfOnnxCall *call, int rank, unsigned *mask, bool *nothing) {
    int64_t axes[MOST];
    int n;
    if (!mtf_onnx_ints(call, "axes", 1, axes, &n))
        return false;
    bool none = n <= 0;
    *nothing = none && mtf_onnx_int(call, "noop_with_empty_axes", 0) != 0;
    *mask = axes_between(0, rank);
    return none || mtf_onnx_axes(call, axes, n, rank, mask);
}

static MtfOnnxValue *finish(MtfOnnxCall *call, MtfOnnxValue *y, unsigned mask, int type) {
    y = mtf_onnx_cast(call->t, y, type);
    return y == NULL || mtf_onnx_int(call, "keepdims", 1) != 0 ? y
                                                               : mtf_onnx_squeeze(call->t, y, mask);
}

/* What is done to each element before, and to the sums after. */
typedef enum { PLAIN, OF_SIZES, OF_SQUARES, ROOT_OF_SQUARES, LOG_OF_SUM } Around;

static MtfOnnxValue *reduce(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    Around around = (Around)call->number;
    int type = x->type;
    unsigned mask;
    bool nothing;
    if (!reduced_axes(call, x->rank, &mask, &nothing))
        return NULL;
    if (nothing)
        return x;
    if (x->tensor >= 0 && mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    if (around == OF_SIZES)
        x = mtf_onnx_unary(t, MTF_OP_ABS, x);
    if (around == OF_SQUARES || around == ROOT_OF_SQUARES)
        x = mtf_onnx_unary(t, MTF_OP_SQUARE, x);
    MtfOnnxValue *y = mtf_onnx_reduce(t, call->kind, x, mask, NULL);
    if (around == ROOT_OF_SQUARES)
        y = mtf_onnx_unary(t, MTF_OP_SQRT, y);
    if (around == LOG_OF_SUM)
        y = mtf_onnx_unary(t, MTF_OP_LOG, y);
    return finish(call, y, mask, type);
}

/* The place of the first of the largest along an axis, which stays. */
static MtfOnnxValue *first_largest(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis) {
    x = mtf_onnx_real(t, x);
    x = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (x == NULL)
        return NULL;
    if (x->axes[axis] < 0)
        return mtf_onnx_uniform(t, MTF_ONNX_INT64, x->rank, x->sizes, 0);
    x->type = MTF_ONNX_INT32; /* of places in our table */
    return mtf_onnx_cast(t, mtf_onnx_reduce(t, MTF_OP_ARGMAX, x, 1U << axis, NULL), MTF_ONNX_INT64);
}

/* The first place of the largest; `number` -1: of the smallest. */
static MtfOnnxValue *arg_max(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    if (axis < 0)
        return NULL;
    bool last = mtf_onnx_int(call, "select_last_index", 0) != 0;
    int64_t size = x->sizes[axis];
    if (mtf_dtype_is_integer(mtf_onnx_dtype(x->type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    if (call->number < 0)
        x = mtf_onnx_unary(t, MTF_OP_NEGATE, x);
    if (last && x != NULL && size > 1)
        x = mtf_onnx_slice(t, x, axis, size - 1, -1, size);
    MtfOnnxValue *y = first_largest(t, x, axis);
    if (last && y != NULL)
        y = mtf_onnx_affine(t, y, -1, (double)(size - 1));
    return finish(call, y, 1U << axis, MTF_ONNX_INT64);
}

static MtfOnnxValue *cumulative_sum(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    double number;
    if (!mtf_onnx_known_input(call, 1, 0, &number))
        return NULL;
    int axis = mtf_onnx_axis(call, (int64_t)number, x->rank);
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.exclusive = (double)(mtf_onnx_int(call, "exclusive", 0) != 0);
    a.reverse = (double)(mtf_onnx_int(call, "reverse", 0) != 0);
    return axis < 0 ? NULL : mtf_onnx_along(call->t, MTF_OP_CUMULATIVE_SUM, a, x, axis, 0);
}

/* ---- Softmax --------------------------------------------------------------------------------- */

/* From opset 13 along one axis; before along all from it on. */
static bool softmax_axes(MtfOnnxCall *call, int rank, unsigned *mask) {
    bool single = call->opset >= 13;
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", single ? -1 : 1), rank);
    if (axis < 0)
        return false;
    *mask = single ? 1U << axis : axes_between(axis, rank);
    return true;
}

/* `number` 1: its logarithm. */
static MtfOnnxValue *softmax(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    unsigned mask;
    if (!softmax_axes(call, x->rank, &mask))
        return NULL;
    return call->number == 0 ? mtf_onnx_softmax(call->t, x, mask)
                             : mtf_onnx_log_softmax(call->t, x, mask);
}

/* 1 at the first of the largest, 0 elsewhere. */
static MtfOnnxValue *hardmax(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[MTF_ONNX_MAX_RANK], flat[2] = { 1, 1 };
    int rank = x->rank,
        axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", call->opset >= 13 ? -1 : 1), rank);
    if (axis < 0)
        return NULL;
    memcpy(sizes, x->sizes, sizeof sizes);
    for (int k = 0; k < rank; k++)
        flat[k >= axis] *= sizes[k];
    bool joined = call->opset < 13 && axis < rank - 1;
    x = joined ? mtf_onnx_reshape(t, x, 2, flat) : x;
    axis = joined ? 1 : axis;
    MtfOnnxValue *most = first_largest(t, x, axis);
    if (most == NULL)
        return NULL;
    int64_t units[MTF_ONNX_MAX_RANK];
    for (int k = 0; k < x->rank; k++)
        units[k] = k == axis ? x->sizes[k] : 1;
    MtfOnnxValue *place = mtf_onnx_range(t, MTF_ONNX_INT64, x->rank, units, axis);
    MtfOnnxValue *y = mtf_onnx_cast(t, mtf_onnx_binary(t, MTF_OP_EQUAL, most, place), x->type);
    return joined ? mtf_onnx_reshape(t, y, rank, sizes) : y;
}

/* ---- Norms ----------------------------------------------------------------------------------- */

/* (x - mean) scale / sqrt(variance + epsilon) + bias, bias may be NULL. */
static MtfOnnxValue *normalize(MtfOnnxTranslation *t, MtfOnnxValue *const *inputs, double epsilon) {
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.epsilon = epsilon;
    return mtf_onnx_map(t, MTF_OP_NORMALIZE, &a, inputs[4] != NULL ? 5 : 4, inputs);
}

MtfOnnxValue *mtf_onnx_layer_norm(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned mask,
                                  MtfOnnxValue *scale, MtfOnnxValue *bias, double epsilon) {
    x = mtf_onnx_real(t, x);
    MtfOnnxValue *mean = x == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_REDUCE_MEAN, x, mask, NULL);
    MtfOnnxValue *variance =
        mean == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_VARIANCE, x, mask, mean);
    if (variance == NULL)
        return NULL;
    if (scale == NULL)
        scale = mtf_onnx_scalar(t, x->type, 1);
    MtfOnnxValue *inputs[] = { x, mean, variance, scale, bias };
    return normalize(t, inputs, epsilon);
}

/* A vector over channels, axis 1, as broadcasting has it. */
static MtfOnnxValue *over_channels(MtfOnnxCall *call, int k, int rank, bool frozen) {
    MtfOnnxValue *x = mtf_onnx_input(call, k);
    if (x == NULL)
        return NULL;
    x = mtf_onnx_weight(call->t, x, frozen);
    return x == NULL || rank < 3
               ? x
               : mtf_onnx_unsqueeze(call->t, x, rank - 1, axes_between(1, rank - 1));
}

/* old momentum + new (1 - momentum), for each channel. */
static MtfOnnxValue *running(MtfOnnxCall *call, int k, MtfOnnxValue *now, unsigned mask) {
    MtfOnnxTranslation *t = call->t;
    double momentum = mtf_onnx_float(call, "momentum", 0.9);
    MtfOnnxValue *old = mtf_onnx_weight(t, mtf_onnx_input(call, k), true);
    return mtf_onnx_binary(t, MTF_OP_ADD, mtf_onnx_affine(t, old, momentum, 0),
                           mtf_onnx_affine(t, mtf_onnx_squeeze(t, now, mask), 1 - momentum, 0));
}

/* A statistic of the examples at hand: of each micro-batch, where a step has several. */
static MtfOnnxValue *batch_statistic(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x,
                                     unsigned mask, MtfOnnxValue *mean) {
    MtfOnnxValue *value = mtf_onnx_reduce(t, kind, x, mask, mean);
    int producer = value == NULL || value->tensor < 0
                       ? -1
                       : mtf_axis_tensor(t->graph, value->tensor)->producer;
    MtfAxisOperation *operation =
        producer < 0 ? NULL : &g_array_index(t->graph->operations, MtfAxisOperation, producer);
    if (operation != NULL && operation->kind == kind)
        operation->attributes.per_microbatch = 1;
    return value;
}

/* With the statistics of the batch; further outputs are the running ones. */
static MtfOnnxValue *batch_norm_training(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    if (x == NULL || x->rank < 2)
        return mtf_onnx_fail(t, "its input should have 2 axes or more");
    unsigned mask = axes_between(0, x->rank) & ~2U;
    MtfOnnxValue *mean = batch_statistic(t, MTF_OP_REDUCE_MEAN, x, mask, NULL);
    MtfOnnxValue *variance =
        mean == NULL ? NULL : batch_statistic(t, MTF_OP_VARIANCE, x, mask, mean);
    MtfOnnxValue *inputs[] = { x, mean, variance, over_channels(call, 1, x->rank, false),
                               over_channels(call, 2, x->rank, false) };
    if (variance == NULL || inputs[3] == NULL || inputs[4] == NULL)
        return NULL;
    if (call->n_outputs > 1)
        call->outputs[1] = running(call, 3, mean, mask);
    if (call->n_outputs > 2)
        call->outputs[2] = running(call, 4, variance, mask);
    return normalize(t, inputs, mtf_onnx_float(call, "epsilon", 1e-5));
}

/* With the statistics that the file holds: x a + b, a = scale / sqrt(variance + epsilon), b = bias - mean a.
 */
static MtfOnnxValue *batch_norm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    double epsilon = mtf_onnx_float(call, "epsilon", 1e-5);
    if (mtf_onnx_int(call, "training_mode", 0) != 0)
        return batch_norm_training(call);
    MtfOnnxValue *scale = over_channels(call, 1, x->rank, false);
    MtfOnnxValue *bias = over_channels(call, 2, x->rank, false);
    MtfOnnxValue *mean = over_channels(call, 3, x->rank, true);
    MtfOnnxValue *variance = over_channels(call, 4, x->rank, true);
    MtfOnnxValue *root = mtf_onnx_unary(t, MTF_OP_RSQRT, mtf_onnx_affine(t, variance, 1, epsilon));
    MtfOnnxValue *factor = mtf_onnx_binary(t, MTF_OP_MULTIPLY, scale, root);
    MtfOnnxValue *term = mtf_onnx_binary(t, MTF_OP_SUBTRACT, bias,
                                         mtf_onnx_binary(t, MTF_OP_MULTIPLY, mean, factor));
    return mtf_onnx_binary(t, MTF_OP_ADD, mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, factor), term);
}

static MtfOnnxValue *instance_norm(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    return mtf_onnx_layer_norm(
        call->t, x, axes_between(MIN(2, x->rank), x->rank), over_channels(call, 1, x->rank, false),
        over_channels(call, 2, x->rank, false), mtf_onnx_float(call, "epsilon", 1e-5));
}

/* Channels in groups: [N, G, C / G, …]; scale and bias are by channel. */
static MtfOnnxValue *group_norm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t sizes[MTF_ONNX_MAX_RANK], groups = mtf_onnx_int(call, "num_groups", 0);
    if (groups < 1 || x->rank < 2 || x->rank >= MTF_ONNX_MAX_RANK || x->sizes[1] % groups != 0)
        return mtf_onnx_fail(t, "num_groups should divide the channels");
    sizes[0] = x->sizes[0];
    sizes[1] = groups;
    sizes[2] = x->sizes[1] / groups;
    for (int k = 2; k < x->rank; k++)
        sizes[k + 1] = x->sizes[k];
    MtfOnnxValue *parted = mtf_onnx_reshape(t, x, x->rank + 1, sizes);
    MtfOnnxValue *y = mtf_onnx_layer_norm(t, parted, axes_between(2, x->rank + 1), NULL, NULL,
                                          mtf_onnx_float(call, "epsilon", 1e-5));
    y = mtf_onnx_reshape(t, y, x->rank, x->sizes);
    y = mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, over_channels(call, 1, x->rank, false));
    return mtf_onnx_binary(t, MTF_OP_ADD, y, over_channels(call, 2, x->rank, false));
}

static MtfOnnxValue *layer_norm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = mtf_onnx_real(t, call->inputs[0]);
    if (x == NULL)
        return NULL;
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", -1), x->rank);
    double epsilon = mtf_onnx_float(call, "epsilon", 1e-5);
    if (axis < 0)
        return NULL;
    unsigned mask = axes_between(axis, x->rank);
    MtfOnnxValue *scale = mtf_onnx_weight(t, call->inputs[1], false);
    MtfOnnxValue *bias = mtf_onnx_input(call, 2);
    bias = bias == NULL ? NULL : mtf_onnx_weight(t, bias, false);
    if (call->n_outputs > 1) {
        MtfOnnxValue *mean = mtf_onnx_reduce(t, MTF_OP_REDUCE_MEAN, x, mask, NULL);
        MtfOnnxValue *variance =
            mean == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_VARIANCE, x, mask, mean);
        call->outputs[1] = mean;
        if (call->n_outputs > 2)
            call->outputs[2] =
                mtf_onnx_unary(t, MTF_OP_RSQRT, mtf_onnx_affine(t, variance, 1, epsilon));
        MtfOnnxValue *inputs[] = { x, mean, variance, scale, bias };
        return variance == NULL ? NULL : normalize(t, inputs, epsilon);
    }
    return mtf_onnx_layer_norm(t, x, mask, scale, bias, epsilon);
}

MtfOnnxValue *mtf_onnx_rms_norm(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned mask,
                                MtfOnnxValue *scale, double epsilon) {
    MtfOnnxValue *squares = mtf_onnx_unary(t, MTF_OP_SQUARE, x);
    MtfOnnxValue *mean = mtf_onnx_reduce(t, MTF_OP_REDUCE_MEAN, squares, mask, NULL);
    MtfOnnxValue *root = mtf_onnx_unary(t, MTF_OP_RSQRT, mtf_onnx_affine(t, mean, 1, epsilon));
    MtfOnnxValue *y = mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, root);
    return scale == NULL ? y : mtf_onnx_binary(t, MTF_OP_MULTIPLY, y, scale);
}

static MtfOnnxValue *rms_norm(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", -1), x->rank);
    return axis < 0 ? NULL
                    : mtf_onnx_rms_norm(call->t, x, axes_between(axis, x->rank),
                                        mtf_onnx_weight(call->t, call->inputs[1], false),
                                        mtf_onnx_float(call, "epsilon", 1e-5));
}

static MtfOnnxValue *mean_variance_norm(MtfOnnxCall *call) {
    static const int64_t standard[] = { 0, 2, 3 };
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t axes[MOST];
    int n;
    unsigned mask;
    if (!mtf_onnx_ints(call, "axes", -1, axes, &n))
        return NULL;
    if (!mtf_onnx_axes(call, n < 0 ? standard : axes, n < 0 ? 3 : n, x->rank, &mask))
        return NULL;
    MtfOnnxValue *mean = mtf_onnx_reduce(t, MTF_OP_REDUCE_MEAN, x, mask, NULL);
    MtfOnnxValue *variance =
        mean == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_VARIANCE, x, mask, mean);
    MtfOnnxValue *deviation = mtf_onnx_affine(t, mtf_onnx_unary(t, MTF_OP_SQRT, variance), 1, 1e-9);
    return mtf_onnx_binary(t, MTF_OP_DIVIDE, mtf_onnx_binary(t, MTF_OP_SUBTRACT, x, mean),
                           deviation);
}

/* Of all places beyond batch and channels. */
static MtfOnnxValue *global_pool(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    if (x->rank < 3)
        return mtf_onnx_fail(call->t, "its input should have at least three axes");
    return mtf_onnx_reduce(call->t, call->kind, x, axes_between(2, x->rank), NULL);
}

const MtfOnnxOperator mtf_onnx_reduction_operators[] = {
    { "ArgMax", arg_max, 0, 1, 1, 1, NULL },
    { "ArgMin", arg_max, 0, -1, 1, 1, NULL },
    { "BatchNormalization", batch_norm, 0, 0, 5, 5, NULL },
    { "CumSum", cumulative_sum, 0, 0, 2, 2, NULL },
    { "GlobalAveragePool", global_pool, MTF_OP_REDUCE_MEAN, 0, 1, 1, NULL },
    { "GlobalMaxPool", global_pool, MTF_OP_REDUCE_MAX, 0, 1, 1, NULL },
    { "GroupNormalization", group_norm, 0, 0, 3, 3, NULL },
    { "Hardmax", hardmax, 0, 0, 1, 1, NULL },
    { "InstanceNormalization", instance_norm, 0, 0, 3, 3, NULL },
    { "LayerNormalization", layer_norm, 0, 0, 2, 3, NULL },
    { "LogSoftmax", softmax, 0, 1, 1, 1, NULL },
    { "MeanVarianceNormalization", mean_variance_norm, 0, 0, 1, 1, NULL },
    { "RMSNormalization", rms_norm, 0, 0, 2, 2, NULL },
    { "ReduceL1", reduce, MTF_OP_REDUCE_SUM, OF_SIZES, 1, 2, NULL },
    { "ReduceL2", reduce, MTF_OP_REDUCE_SUM, ROOT_OF_SQUARES, 1, 2, NULL },
    { "ReduceLogSum", reduce, MTF_OP_REDUCE_SUM, LOG_OF_SUM, 1, 2, NULL },
    { "ReduceLogSumExp", reduce, MTF_OP_LOG_SUM_EXP, PLAIN, 1, 2, NULL },
    { "ReduceMax", reduce, MTF_OP_REDUCE_MAX, PLAIN, 1, 2, NULL },
    { "ReduceMean", reduce, MTF_OP_REDUCE_MEAN, PLAIN, 1, 2, NULL },
    { "ReduceMin", reduce, MTF_OP_REDUCE_MIN, PLAIN, 1, 2, NULL },
    { "ReduceProd", reduce, MTF_OP_REDUCE_PROD, PLAIN, 1, 2, NULL },
    { "ReduceSum", reduce, MTF_OP_REDUCE_SUM, PLAIN, 1, 2, NULL },
    { "ReduceSumSquare", reduce, MTF_OP_REDUCE_SUM, OF_SQUARES, 1, 2, NULL },
    { "SimplifiedLayerNormalization", rms_norm, 0, 0, 2, 2, NULL },
    { "Softmax", softmax, 0, 0, 1, 1, NULL },
    { 0 },
};
