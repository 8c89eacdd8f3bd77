// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention and rotary positions, as ONNX has them. */
#include "analyzer/onnx/onnx_heads.h"
#include "analyzer/onnx/onnx_steps.h"

#include <math.h>

/* onnxruntime's inputs come in another order (`number` 1), and its only position is the first. */
static MtfOnnxValue *rotary_embedding(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    bool microsoft = call->number == 1;
    int first = microsoft ? 2 : 1;
    MtfOnnxValue *ids = mtf_onnx_input(call, microsoft ? 1 : 3), *given = call->inputs[0];
    int64_t turns = mtf_onnx_int(call, "rotary_embedding_dim", 0);
    int64_t heads = mtf_onnx_int(call, "num_heads", 0);
    if (microsoft && heads == 0 && turns == 0 && given->rank == 3)
        heads = given->sizes[2] / MAX(1, 2 * call->inputs[first]->sizes[1]);
    MtfOnnxValue *x = mtf_onnx_part_heads(call, given, heads);
    if (x == NULL)
        return NULL;
    if (microsoft && mtf_onnx_elements(ids) == 1 && x->sizes[2] > 1)
        ids = mtf_onnx_places_from(t, ids, x->sizes[2]);
    else if (microsoft && ids->rank != 2)
        return mtf_onnx_fail(t, "positions should be [batch, places], or the first one");
    const MtfOnnxRotary rotary = { call->inputs[first], call->inputs[first + 1], ids, turns,
                                   mtf_onnx_int(call, "interleaved", 0) != 0 };
    MtfOnnxValue *y = mtf_onnx_rotate(call, &rotary, x);
    return given->rank == 3 ? mtf_onnx_join_heads(call, y) : y;
}

/* Lengths of what texts have of keys [batch] as truths [batch, 1, 1, places]. */
static MtfOnnxValue *within(MtfOnnxTranslation *t, MtfOnnxValue *lengths, const MtfOnnxValue *k) {
    const int64_t rows[] = { k->sizes[0], 1, 1, 1 }, row[] = { 1, 1, 1, k->sizes[2] };
    if (lengths == NULL)
        return NULL;
    return mtf_onnx_truth(t, MTF_OP_LESS, mtf_onnx_range(t, lengths->type, 4, row, 3),
                          mtf_onnx_reshape(t, lengths, 4, rows));
}

static MtfOnnxValue *attention(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    int64_t heads = mtf_onnx_int(call, "q_num_heads", 0),
            groups = mtf_onnx_int(call, "kv_num_heads", 0);
    MtfOnnxAttention a = { .q = mtf_onnx_part_heads(call, call->inputs[0], heads),
                           .k = mtf_onnx_part_heads(call, call->inputs[1], groups),
                           .v = mtf_onnx_part_heads(call, call->inputs[2], groups),
                           .masks = { mtf_onnx_input(call, 3) },
                           .causal = mtf_onnx_int(call, "is_causal", 0) != 0,
                           .softcap = mtf_onnx_float(call, "softcap", 0) };
    if (a.q == NULL || a.k == NULL || a.v == NULL)
        return NULL;
    if (call->n_outputs > 3)
        return mtf_onnx_fail(t, "scores as an output are not supported");
    a.k = mtf_onnx_with_past(t, mtf_onnx_input(call, 4), a.k);
    a.v = mtf_onnx_with_past(t, mtf_onnx_input(call, 5), a.v);
    if (a.k == NULL || a.v == NULL)
        return NULL;
    a.masks[1] = within(t, mtf_onnx_input(call, 6), a.k);
    if (call->n_outputs > 1)
        call->outputs[1] = a.k;
    if (call->n_outputs > 2)
        call->outputs[2] = a.v;
    a.scale = mtf_onnx_float(call, "scale", 1 / sqrt((double)a.q->sizes[3]));
    MtfOnnxValue *y = mtf_onnx_attend(call, &a);
    return call->inputs[0]->rank == 3 ? mtf_onnx_join_heads(call, y) : y;
}

const MtfOnnxOperator mtf_onnx_attention_operators[] = {
    { "Attention", attention, 0, 0, 3, 7, NULL },
    { "RotaryEmbedding", rotary_embedding, 0, 0, 3, 4, NULL },
    { "RotaryEmbedding", rotary_embedding, 0, 1, 4, 4, "com.microsoft" },
    { 0 },
};
