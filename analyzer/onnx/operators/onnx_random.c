// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that draw numbers, anew in each step; a seed that the file gives is not what ours begins from. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

/* Numbers as the node's attributes say: MTF_OP_RANDOM_NORMAL or _UNIFORM. */
static MtfOnnxValue *draw(MtfOnnxCall *call, const MtfOnnxValue *like) {
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    if (!mtf_dtype_is_float(mtf_onnx_dtype(like->type)))
        return mtf_onnx_fail(call->t, "numbers of type %s are not drawn",
                             mtf_onnx_type_name(like->type));
    attributes.mean = mtf_onnx_float(call, "mean", 0);
    attributes.deviation = mtf_onnx_float(call, "scale", 1);
    attributes.low = mtf_onnx_float(call, "low", 0);
    attributes.high = mtf_onnx_float(call, "high", 1);
    return mtf_onnx_random(call->t, call->kind, &attributes, like);
}

static MtfOnnxValue *of_shape(MtfOnnxCall *call) {
    int64_t sizes[2 * MTF_ONNX_MAX_RANK];
    int rank, type = (int)mtf_onnx_int(call, "dtype", MTF_ONNX_FLOAT);
    if (!mtf_onnx_ints(call, "shape", -1, sizes, &rank))
        return NULL;
    if (rank < 0 || rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(call->t, "its \"shape\" should have at most %d dimensions",
                             MTF_ONNX_MAX_RANK);
    MtfOnnxValue *like = mtf_onnx_value_new(call->t, type, rank, sizes);
    return like == NULL ? NULL : draw(call, like);
}

static MtfOnnxValue *like_input(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0];
    int type = (int)mtf_onnx_int(call, "dtype", x->type);
    MtfOnnxValue *like = mtf_onnx_value_new(call->t, type, x->rank, x->sizes);
    return like == NULL ? NULL : draw(call, like);
}

/* 1 with the probability that the input says. */
static MtfOnnxValue *bernoulli(MtfOnnxCall *call) {
    MtfOnnxValue *x = call->inputs[0], *drawn = draw(call, x);
    int type = (int)mtf_onnx_int(call, "dtype", x->type);
    return mtf_onnx_cast(call->t, mtf_onnx_binary(call->t, MTF_OP_LESS, drawn, x), type);
}

const MtfOnnxOperator mtf_onnx_random_operators[] = {
    { "Bernoulli", bernoulli, MTF_OP_RANDOM_UNIFORM, 0, 1, 1, NULL },
    { "RandomNormal", of_shape, MTF_OP_RANDOM_NORMAL, 0, 0, 0, NULL },
    { "RandomNormalLike", like_input, MTF_OP_RANDOM_NORMAL, 0, 1, 1, NULL },
    { "RandomUniform", of_shape, MTF_OP_RANDOM_UNIFORM, 0, 0, 0, NULL },
    { "RandomUniformLike", like_input, MTF_OP_RANDOM_UNIFORM, 0, 1, 1, NULL },
    { 0 },
};
