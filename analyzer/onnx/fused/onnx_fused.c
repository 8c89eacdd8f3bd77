// SPDX-License-Identifier: GPL-3.0-or-later
/* onnxruntime's fused operators (domain com.microsoft), but for those of attention and of few bits. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <string.h>

/* x + bias, the argument of the activation. */
static MtfOnnxValue *with_bias(MtfOnnxCall *call, int k) {
    MtfOnnxValue *bias = mtf_onnx_input(call, k), *x = call->inputs[0];
    return bias == NULL
               ? x
               : mtf_onnx_binary(call->t, MTF_OP_ADD, x, mtf_onnx_weight(call->t, bias, false));
}

static MtfOnnxValue *bias_function(MtfOnnxCall *call) {
    return mtf_onnx_unary(call->t, call->kind, with_bias(call, 1));
}

/* The norm of input + skip + bias, which is the last output; inputs behind skip: scale, [shift,] bias. */
static MtfOnnxValue *skip_norm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    bool layer = call->number == 1;
    double epsilon = mtf_onnx_float(call, "epsilon", 1e-12);
    MtfOnnxValue *bias = mtf_onnx_input(call, layer ? 4 : 3);
    MtfOnnxValue *x = mtf_onnx_binary(t, MTF_OP_ADD, call->inputs[0], call->inputs[1]);
    MtfOnnxValue *scale = mtf_onnx_weight(t, call->inputs[2], false);
    if (bias != NULL)
        x = mtf_onnx_binary(t, MTF_OP_ADD, x, mtf_onnx_weight(t, bias, false));
    if (x == NULL)
        return NULL;
    if (call->n_outputs > 3)
        call->outputs[3] = x;
    MtfOnnxValue *shift = layer ? mtf_onnx_input(call, 3) : NULL;
    shift = shift == NULL ? NULL : mtf_onnx_weight(t, shift, false);
    return layer ? mtf_onnx_layer_norm(t, x, 1U << (x->rank - 1), scale, shift, epsilon)
                 : mtf_onnx_rms_norm(t, x, 1U << (x->rank - 1), scale, epsilon);
}

/* ---- Embeddings ------------------------------------------------------------------------------ */

/* Rows of a table for ids, or of a table of positions for those of a text; NULL: there is none. */
static MtfOnnxValue *rows_of(MtfOnnxCall *call, int table, MtfOnnxValue *ids) {
    MtfOnnxValue *rows = mtf_onnx_weight(call->t, mtf_onnx_input(call, table), false);
    return rows == NULL || ids == NULL ? NULL : mtf_onnx_lookup(call->t, rows, ids, 0);
}

/* Positions, which are counted where they are not given. */
static MtfOnnxValue *positions_of(MtfOnnxCall *call, int64_t places) {
    const int64_t sizes[] = { 1, places };
    MtfOnnxValue *given = mtf_onnx_input(call, 8);
    MtfOnnxValue *ids =
        given != NULL ? given : mtf_onnx_known_new(call->t, MTF_ONNX_INT64, 2, sizes);
    for (int64_t i = 0; given == NULL && ids != NULL && i < places; i++)
        ids->known[i] = (double)i;
    return ids;
}

/* The norm of what rows of tokens, positions and segments add up to; further outputs are how long texts are by the mask,
 * and that sum. Inputs: ids, segments, three tables, scale, shift, mask, positions. */
static MtfOnnxValue *embed_norm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *ids = call->inputs[0], *mask = mtf_onnx_input(call, 7);
    if (ids->rank != 2)
        return mtf_onnx_fail(t, "tokens should be [batch, places]");
    MtfOnnxValue *x = mtf_onnx_binary(t, MTF_OP_ADD, rows_of(call, 2, ids),
                                      rows_of(call, 3, positions_of(call, ids->sizes[1])));
    MtfOnnxValue *segments = mtf_onnx_input(call, 1);
    if (segments != NULL && mtf_onnx_input(call, 4) != NULL)
        x = mtf_onnx_binary(t, MTF_OP_ADD, x, rows_of(call, 4, segments));
    if (call->n_outputs > 1)
        call->outputs[1] =
            mask == NULL
                ? mtf_onnx_uniform(t, MTF_ONNX_INT32, 1, ids->sizes, 0)
                : mtf_onnx_squeeze(t, mtf_onnx_reduce(t, MTF_OP_REDUCE_SUM, mask, 2, NULL), 2);
    if (call->n_outputs > 2)
        call->outputs[2] = x;
    return mtf_onnx_layer_norm(t, x, 1U << 2, mtf_onnx_weight(t, mtf_onnx_input(call, 5), false),
                               mtf_onnx_weight(t, mtf_onnx_input(call, 6), false),
                               mtf_onnx_float(call, "epsilon", 1e-12));
}

/* ---- Products -------------------------------------------------------------------------------- */

/* The last two axes in the other order. */
static MtfOnnxValue *turned(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    int order[MTF_ONNX_MAX_RANK];
    for (int k = 0; k < x->rank; k++)
        order[k] = k < x->rank - 2 ? k : 2 * x->rank - 3 - k;
    return x->rank < 2 ? x : mtf_onnx_transpose(t, x, order);
}

/* An operator of ONNX's own on other inputs, with this node's attributes. */
static MtfOnnxValue *as_operator(MtfOnnxCall *call, const char *name, int n,
                                 MtfOnnxValue **inputs) {
    const MtfOnnxOperator *row = mtf_onnx_operator_find("", name);
    const MtfOnnxCall own = *call;
    call->inputs = inputs;
    call->n_inputs = n;
    call->number = row->number;
    call->kind = row->kind;
    MtfOnnxValue *value = row->rule(call);
    *call = own;
    return value;
}

/* alpha a b, each turned where the node says it. */
static MtfOnnxValue *fused_product(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    static const char *const keys[] = { "transA", "transB" };
    MtfOnnxValue *inputs[] = { call->inputs[0], mtf_onnx_weight(t, call->inputs[1], false) };
    if (mtf_onnx_int(call, "transBatchA", 0) != 0 || mtf_onnx_int(call, "transBatchB", 0) != 0)
        return mtf_onnx_fail(t, "\"transBatchA\" and \"transBatchB\" are not supported");
    for (int i = 0; i < 2 && inputs[1] != NULL; i++)
        if (mtf_onnx_int(call, keys[i], 0) != 0)
            inputs[i] = turned(t, inputs[i]);
    MtfOnnxValue *y =
        inputs[0] == NULL || inputs[1] == NULL ? NULL : as_operator(call, "MatMul", 2, inputs);
    return mtf_onnx_affine(t, y, mtf_onnx_float(call, "alpha", 1), 0);
}

/* The function that "activation" names, with the numbers of "activation_params". */
static MtfOnnxValue *activate(MtfOnnxCall *call, MtfOnnxValue *x) {
    MtfOnnxTranslation *t = call->t;
    const char *name = mtf_onnx_word(call, "activation", "");
    const MtfOnnxAttribute *given = mtf_onnx_attribute(call->node, "activation_params");
    const double *numbers = given != NULL ? (const double *)(void *)given->floats->data : NULL;
    guint n = given != NULL ? given->floats->len : 0;
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    if (strcmp(name, "LeakyRelu") == 0) {
        a.slope = n > 0 ? numbers[0] : 0.01;
        return mtf_onnx_map(t, MTF_OP_LEAKY_RELU, &a, 1, &x);
    }
    if (strcmp(name, "Clip") == 0 && n == 2) {
        a.low = numbers[0];
        a.high = numbers[1];
        return mtf_onnx_map(t, MTF_OP_CLIP, &a, 1, &x);
    }
    static const struct {
        const char *name;
        int kind;
    } plain[] = { { "Relu", MTF_OP_RELU }, { "Sigmoid", MTF_OP_SIGMOID }, { "Tanh", MTF_OP_TANH } };
    for (guint i = 0; i < G_N_ELEMENTS(plain); i++)
        if (strcmp(name, plain[i].name) == 0)
            return mtf_onnx_unary(t, plain[i].kind, x);
    return *name == '\0' ? x : mtf_onnx_fail(t, "the activation \"%s\" is not supported", name);
}

/* activation(conv(x) + further) */
static MtfOnnxValue *fused_convolution(MtfOnnxCall *call) {
    MtfOnnxValue *further = mtf_onnx_input(call, 3);
    MtfOnnxValue *y = as_operator(call, "Conv", MIN(call->n_inputs, 3), call->inputs);
    if (further != NULL)
        y = mtf_onnx_binary(call->t, MTF_OP_ADD, y, further);
    return y == NULL ? NULL : activate(call, y);
}

static MtfOnnxValue *fused_gemm(MtfOnnxCall *call) {
    MtfOnnxValue *y = as_operator(call, "Gemm", call->n_inputs, call->inputs);
    return y == NULL ? NULL : activate(call, y);
}

const MtfOnnxOperator mtf_onnx_fused_operators[] = {
    { "BiasGelu", bias_function, MTF_OP_GELU_EXACT, 0, 2, 2, "com.microsoft" },
    { "EmbedLayerNormalization", embed_norm, 0, 0, 7, 9, "com.microsoft" },
    { "FastGelu", bias_function, MTF_OP_GELU, 0, 1, 2, "com.microsoft" },
    { "FusedConv", fused_convolution, 0, 0, 2, 4, "com.microsoft" },
    { "FusedGemm", fused_gemm, 0, 0, 2, 3, "com.microsoft" },
    { "FusedMatMul", fused_product, 0, 0, 2, 2, "com.microsoft" },
    { "SkipLayerNormalization", skip_norm, 0, 1, 3, 5, "com.microsoft" },
    { "SkipSimplifiedLayerNormalization", skip_norm, 0, 0, 3, 4, "com.microsoft" },
    { 0 },
};
