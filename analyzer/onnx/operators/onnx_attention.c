// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators of transformers: rotary positions, attention, and onnxruntime's fused ones (domain
 * com.microsoft). Inside all have the axes [batch, heads, places, features]. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* ---- Heads ----------------------------------------------------------------------------------- */

/* [batch, places, heads features] to [batch, heads, places, features]; what has heads already stays. */
static MtfOnnxValue *part_heads(MtfOnnxCall *call, MtfOnnxValue *x, int64_t heads) {
    static const int order[] = { 0, 2, 1, 3 };
    if (x == NULL || x->rank == 4)
        return x;
    if (x->rank != 3 || heads < 1 || x->sizes[2] % heads != 0)
        return mtf_onnx_fail(call->t, "its inputs should have four axes, or three and a number of "
                                      "heads that divides the last");
    const int64_t sizes[] = { x->sizes[0], x->sizes[1], heads, x->sizes[2] / heads };
    return mtf_onnx_transpose(call->t, mtf_onnx_reshape(call->t, x, 4, sizes), order);
}

static MtfOnnxValue *join_heads(MtfOnnxCall *call, MtfOnnxValue *x) {
    static const int order[] = { 0, 2, 1, 3 };
    if (x == NULL)
        return NULL;
    const int64_t sizes[] = { x->sizes[0], x->sizes[2], x->sizes[1] * x->sizes[3] };
    return mtf_onnx_reshape(call->t, mtf_onnx_transpose(call->t, x, order), 3, sizes);
}

/* ---- Rotary positions ------------------------------------------------------------------------ */

/* Pairs of features turned by their angles: of one half with the other, or of neighbours. */
static MtfOnnxValue *turn(MtfOnnxTranslation *t, MtfOnnxValue *x, MtfOnnxValue *cosine,
                          MtfOnnxValue *sine, bool neighbours) {
    int64_t half = x->sizes[3] / 2;
    MtfOnnxValue *a = mtf_onnx_slice(t, x, 3, 0, neighbours ? 2 : 1, half);
    MtfOnnxValue *b = mtf_onnx_slice(t, x, 3, neighbours ? 1 : half, neighbours ? 2 : 1, half);
    MtfOnnxValue *turned[] = {
        mtf_onnx_binary(t, MTF_OP_SUBTRACT, mtf_onnx_binary(t, MTF_OP_MULTIPLY, a, cosine),
                        mtf_onnx_binary(t, MTF_OP_MULTIPLY, b, sine)),
        mtf_onnx_binary(t, MTF_OP_ADD, mtf_onnx_binary(t, MTF_OP_MULTIPLY, a, sine),
                        mtf_onnx_binary(t, MTF_OP_MULTIPLY, b, cosine)),
    };
    if (!neighbours)
        return mtf_onnx_concat(t, 3, 2, turned);
    for (int i = 0; i < 2; i++)
        turned[i] = turned[i] == NULL ? NULL : mtf_onnx_unsqueeze(t, turned[i], 5, 1U << 4);
    return mtf_onnx_reshape(t, mtf_onnx_concat(t, 4, 2, turned), 4, x->sizes);
}

/* The angles' cosines or sines as [batch or 1, 1, places, pairs]; `ids` NULL: the table has them. */
static MtfOnnxValue *angles(MtfOnnxCall *call, MtfOnnxValue *table, MtfOnnxValue *ids,
                            const MtfOnnxValue *x) {
    MtfOnnxTranslation *t = call->t;
    table = mtf_onnx_weight(t, table, true);
    if (table != NULL && ids != NULL)
        table = mtf_onnx_lookup(t, table, ids, 0);
    if (table == NULL)
        return NULL;
    if (table->rank == 2)
        table = mtf_onnx_unsqueeze(t, table, 3, 1);
    if (table == NULL || table->rank != 3 || table->sizes[1] != x->sizes[2])
        return mtf_onnx_fail(t, "its cosines and sines should be [batch, places, pairs], or "
                                "[positions, pairs] with positions");
    return mtf_onnx_unsqueeze(t, table, 4, 2);
}

/* onnxruntime's positions may be the first one alone; `number` 1: its inputs come in another order. */
static MtfOnnxValue *rotary_embedding(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    bool microsoft = call->number == 1;
    int first = microsoft ? 2 : 1;
    MtfOnnxValue *ids = mtf_onnx_input(call, microsoft ? 1 : 3), *given = call->inputs[0];
    MtfOnnxValue *x = part_heads(call, given, mtf_onnx_int(call, "num_heads", 0));
    if (x == NULL || (microsoft && ids->rank != 2))
        return x == NULL ? NULL : mtf_onnx_fail(t, "positions should be [batch, places]");
    int64_t all = x->sizes[3], turns = mtf_onnx_int(call, "rotary_embedding_dim", 0);
    turns = turns == 0 ? all : turns;
    MtfOnnxValue *cosine = angles(call, call->inputs[first], ids, x);
    MtfOnnxValue *sine = angles(call, call->inputs[first + 1], ids, x);
    if (cosine == NULL || sine == NULL)
        return NULL;
    if (turns < 2 || turns > all || turns % 2 != 0 || cosine->sizes[3] != turns / 2)
        return mtf_onnx_fail(
            t, "%" PRId64 " features of %" PRId64 " cannot turn by %" PRId64 " angles", turns, all,
            cosine->sizes[3]);
    MtfOnnxValue *part = turns < all ? mtf_onnx_slice(t, x, 3, 0, 1, turns) : x;
    MtfOnnxValue *y = part == NULL
                          ? NULL
                          : turn(t, part, cosine, sine, mtf_onnx_int(call, "interleaved", 0) != 0);
    if (turns < all) {
        MtfOnnxValue *parts[] = { y, mtf_onnx_slice(t, x, 3, turns, 1, all - turns) };
        y = mtf_onnx_concat(t, 3, 2, parts);
    }
    return given->rank == 3 ? join_heads(call, y) : y;
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* Keys or values behind those of the past. */
static MtfOnnxValue *with_past(MtfOnnxTranslation *t, MtfOnnxValue *past, MtfOnnxValue *now) {
    MtfOnnxValue *both[] = { past, now };
    return past == NULL || mtf_onnx_elements(past) == 0 ? now : mtf_onnx_concat(t, 2, 2, both);
}

/* The number far below all scores, or the mask itself where it is one of numbers. */
static MtfOnnxValue *add_mask(MtfOnnxCall *call, MtfOnnxValue *scores, MtfOnnxValue *mask) {
    MtfOnnxTranslation *t = call->t;
    if (mask == NULL || scores == NULL)
        return scores;
    if (mask->sizes[mask->rank - 1] != scores->sizes[3])
        return mtf_onnx_fail(t, "a mask of %" PRId64 " places for %" PRId64 " is not supported",
                             mask->sizes[mask->rank - 1], scores->sizes[3]);
    if (mask->type != MTF_ONNX_BOOL)
        return mtf_onnx_binary(t, MTF_OP_ADD, scores, mask);
    return mtf_onnx_where(t, mask, scores, mtf_onnx_scalar(t, scores->type, -FLT_MAX / 2));
}

/* Place i sees places up to i + past. */
static MtfOnnxValue *causal_mask(MtfOnnxTranslation *t, const MtfOnnxValue *scores) {
    const int64_t *sizes = &scores->sizes[2];
    MtfOnnxValue *mask = mtf_onnx_known_new(t, MTF_ONNX_BOOL, 2, sizes);
    int64_t past = sizes[1] - sizes[0];
    for (int64_t i = 0; mask != NULL && i < sizes[0] * sizes[1]; i++)
        mask->known[i] = i % sizes[1] <= i / sizes[1] + past;
    return mask;
}

/* cap tanh(scores / cap) */
static MtfOnnxValue *cap_scores(MtfOnnxTranslation *t, MtfOnnxValue *scores, double cap) {
    if (cap <= 0)
        return scores;
    MtfOnnxValue *tanh = mtf_onnx_unary(t, MTF_OP_TANH, mtf_onnx_affine(t, scores, 1 / cap, 0));
    return mtf_onnx_affine(t, tanh, cap, 0);
}

/* Grouped queries: repeats each head of keys for the heads of queries that share it, which are neighbours. */
static MtfOnnxValue *multiply_heads(MtfOnnxCall *call, MtfOnnxValue *x, MtfOnnxValue *keys,
                                    bool values) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *inputs[] = { x, keys };
    if (x == NULL || keys == NULL)
        return NULL;
    int64_t heads = x->sizes[1], groups = keys->sizes[1];
    if (heads == groups)
        return mtf_onnx_product(t, values ? "bhqm,bhmd->bhqd" : "bhqd,bhmd->bhqm", 2, inputs);
    if (groups < 1 || heads % groups != 0)
        return mtf_onnx_fail(t, "%" PRId64 " heads cannot share %" PRId64 " of keys", heads,
                             groups);
    const int64_t parted[] = { x->sizes[0], groups, heads / groups, x->sizes[2], x->sizes[3] };
    inputs[0] = mtf_onnx_reshape(t, x, 5, parted);
    MtfOnnxValue *y =
        mtf_onnx_product(t, values ? "bghqm,bgmd->bghqd" : "bghqd,bgmd->bghqm", 2, inputs);
    if (y == NULL)
        return NULL;
    const int64_t joined[] = { x->sizes[0], heads, x->sizes[2], y->sizes[4] };
    return mtf_onnx_reshape(t, y, 4, joined);
}

static MtfOnnxValue *attention(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    int64_t heads = mtf_onnx_int(call, "q_num_heads", 0),
            groups = mtf_onnx_int(call, "kv_num_heads", 0);
    MtfOnnxValue *q = part_heads(call, call->inputs[0], heads);
    MtfOnnxValue *k = part_heads(call, call->inputs[1], groups);
    MtfOnnxValue *v = part_heads(call, call->inputs[2], groups);
    if (q == NULL || k == NULL || v == NULL)
        return NULL;
    if (mtf_onnx_input(call, 6) != NULL || call->n_outputs > 3)
        return mtf_onnx_fail(t, "lengths of keys and scores as an output are not supported");
    k = with_past(t, mtf_onnx_input(call, 4), k);
    v = with_past(t, mtf_onnx_input(call, 5), v);
    if (call->n_outputs > 1)
        call->outputs[1] = k;
    if (call->n_outputs > 2)
        call->outputs[2] = v;
    double scale = mtf_onnx_float(call, "scale", 1 / sqrt((double)q->sizes[3]));
    MtfOnnxValue *scores = mtf_onnx_affine(t, multiply_heads(call, q, k, false), scale, 0);
    scores = cap_scores(t, scores, mtf_onnx_float(call, "softcap", 0));
    scores = add_mask(call, scores, mtf_onnx_input(call, 3));
    if (scores != NULL && mtf_onnx_int(call, "is_causal", 0) != 0)
        scores = add_mask(call, scores, causal_mask(t, scores));
    MtfOnnxValue *shares = scores == NULL ? NULL : mtf_onnx_softmax(t, scores, 1U << 3);
    MtfOnnxValue *y = multiply_heads(call, shares, v, true);
    return call->inputs[0]->rank == 3 ? join_heads(call, y) : y;
}

/* ---- onnxruntime's fused operators ----------------------------------------------------------- */

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

const MtfOnnxOperator mtf_onnx_attention_operators[] = {
    { "Attention", attention, 0, 0, 3, 7, NULL },
    { "BiasGelu", bias_function, MTF_OP_GELU_EXACT, 0, 2, 2, "com.microsoft" },
    { "FastGelu", bias_function, MTF_OP_GELU, 0, 1, 2, "com.microsoft" },
    { "RotaryEmbedding", rotary_embedding, 0, 0, 3, 4, NULL },
    { "RotaryEmbedding", rotary_embedding, 0, 1, 4, 4, "com.microsoft" },
    { "SkipLayerNormalization", skip_norm, 0, 1, 3, 5, "com.microsoft" },
    { "SkipSimplifiedLayerNormalization", skip_norm, 0, 0, 3, 4, "com.microsoft" },
    { 0 },
};
