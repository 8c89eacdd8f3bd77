// SPDX-License-Identifier: GPL-3.0-or-later
/* onnxruntime's operators of attention (domain com.microsoft). */
#include "analyzer/onnx/onnx_heads.h"
#include "analyzer/onnx/onnx_steps.h"

#include <math.h>

/* `n` features of the last axis from `begin` on. */
static MtfOnnxValue *features(MtfOnnxTranslation *t, MtfOnnxValue *x, int64_t begin, int64_t n) {
    if (x == NULL || x->rank < 1 || n < 1 || begin + n > x->sizes[x->rank - 1])
        return x == NULL ? NULL : mtf_onnx_fail(t, "an input has too few features");
    return mtf_onnx_slice(t, x, x->rank - 1, begin, 1, n);
}

/* Keys and values that are seen, which a node hands on as outputs `first` and `first` + 1. */
static bool hand_on(MtfOnnxCall *call, MtfOnnxAttention *a, int past, int first) {
    a->k = mtf_onnx_with_past(call->t, past < 0 ? NULL : mtf_onnx_input(call, past), a->k);
    a->v = mtf_onnx_with_past(call->t, past < 0 ? NULL : mtf_onnx_input(call, past + 1), a->v);
    if (a->q == NULL || a->k == NULL || a->v == NULL)
        return false;
    if (call->n_outputs > first)
        call->outputs[first] = a->k;
    if (call->n_outputs > first + 1)
        call->outputs[first + 1] = a->v;
    return call->n_outputs <= first + 2 ||
           mtf_onnx_fail(call->t, "scores as an output are not supported") != NULL;
}

static double scale_of(const MtfOnnxCall *call, const MtfOnnxValue *q) {
    double scale = mtf_onnx_float(call, "scale", 0);
    return scale != 0 ? scale : 1 / sqrt((double)q->sizes[3]);
}

/* ---- Grouped queries ------------------------------------------------------------------------- */

/* q, k and v, which may stand in the first input one behind the other. */
static bool grouped_heads(MtfOnnxCall *call, int64_t heads, int64_t groups, MtfOnnxAttention *a) {
    MtfOnnxValue *q = call->inputs[0], *k = mtf_onnx_input(call, 1), *v = mtf_onnx_input(call, 2);
    if (heads < 1 || groups < 1 || q->rank != 3)
        return mtf_onnx_fail(call->t, "\"num_heads\" and \"kv_num_heads\" are expected, and "
                                      "queries as [batch, places, features]") != NULL;
    if (k == NULL) {
        int64_t width = q->sizes[2] / (heads + 2 * groups);
        k = features(call->t, q, heads * width, groups * width);
        v = features(call->t, q, (heads + groups) * width, groups * width);
        q = features(call->t, q, 0, heads * width);
    }
    a->q = mtf_onnx_part_heads(call, q, heads);
    a->k = mtf_onnx_part_heads(call, k, groups);
    a->v = mtf_onnx_part_heads(call, v, groups);
    return a->q != NULL && a->k != NULL && a->v != NULL;
}

/* Positions stand behind those of the past, where they are not given. */
static bool rotate_heads(MtfOnnxCall *call, MtfOnnxAttention *a) {
    MtfOnnxTranslation *t = call->t;
    const MtfOnnxValue *past = mtf_onnx_input(call, 3);
    MtfOnnxValue *ids = mtf_onnx_input(call, 9);
    if (mtf_onnx_int(call, "do_rotary", 0) == 0)
        return true;
    if (mtf_onnx_input(call, 7) == NULL || mtf_onnx_input(call, 8) == NULL ||
        call->inputs[7]->rank != 2 || call->inputs[8]->rank != 2)
        return mtf_onnx_fail(t, "tables of cosines and sines [positions, pairs] are expected") !=
               NULL;
    if (ids == NULL)
        ids = mtf_onnx_places_from(
            t, mtf_onnx_scalar(t, MTF_ONNX_INT64, past != NULL ? (double)past->sizes[2] : 0),
            a->q->sizes[2]);
    const MtfOnnxRotary rotary = { call->inputs[7], call->inputs[8], ids,
                                   2 * call->inputs[7]->sizes[1],
                                   mtf_onnx_int(call, "rotary_interleaved", 0) != 0 };
    a->q = mtf_onnx_rotate(call, &rotary, a->q);
    a->k = mtf_onnx_rotate(call, &rotary, a->k);
    return a->q != NULL && a->k != NULL;
}

/* What a query sees are places up to its own, so that lengths of texts change nothing that counts: shorter ones end in
 * places that nobody reads. Behind a past all texts are taken to be as long as their rows. */
static MtfOnnxValue *grouped_attention(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    int64_t window = mtf_onnx_int(call, "local_window_size", -1);
    const MtfOnnxValue *past = mtf_onnx_input(call, 3);
    MtfOnnxAttention a = { .causal = true,
                           .window = MAX(window, 0),
                           .masks = { mtf_onnx_input(call, 10) },
                           .softcap = mtf_onnx_float(call, "softcap", 0),
                           .sinks = mtf_onnx_input(call, 11) };
    if (!grouped_heads(call, mtf_onnx_int(call, "num_heads", 0),
                       mtf_onnx_int(call, "kv_num_heads", 0), &a) ||
        !rotate_heads(call, &a) || !hand_on(call, &a, 3, 1))
        return NULL;
    if (past != NULL && mtf_onnx_elements(past) > 0)
        mtf_onnx_say(t, "texts behind a past are taken to be as long as their rows "
                        "(GroupQueryAttention)");
    if (a.sinks == NULL && mtf_onnx_int(call, "smooth_softmax", 0) == 1)
        a.sinks = mtf_onnx_scalar(t, a.q->type, 0);
    a.scale = scale_of(call, a.q);
    return mtf_onnx_join_heads(call, mtf_onnx_attend(call, &a));
}

/* ---- As many heads of keys as of queries ----------------------------------------------------- */

/* Truths of keys [batch, 1, 1, places]: those below a length of each text. */
static MtfOnnxValue *below(MtfOnnxTranslation *t, MtfOnnxValue *lengths, int64_t places) {
    const int64_t rows[] = { lengths->sizes[0], 1, 1, 1 }, row[] = { 1, 1, 1, places };
    return mtf_onnx_truth(t, MTF_OP_LESS, mtf_onnx_range(t, lengths->type, 4, row, 3),
                          mtf_onnx_reshape(t, lengths, 4, rows));
}

/* A mask of integers as numbers that are added to scores: lengths [batch], or ones and zeros [batch, places], [batch,
 * queries, places] or [batch, 1, queries, places]. */
static MtfOnnxValue *mask_of(MtfOnnxCall *call, MtfOnnxValue *mask, const MtfOnnxAttention *a) {
    MtfOnnxTranslation *t = call->t;
    double lowest = mtf_onnx_float(call, "mask_filter_value", -10000);
    int64_t batch = a->q->sizes[0];
    if (mask == NULL)
        return NULL;
    if (mask->rank == 1 && mask->sizes[0] != batch)
        return mtf_onnx_fail(t, "a mask of begins and ends is not supported: ones and zeros, or a "
                                "length for each text, are expected");
    if (mask->rank == 1)
        mask = below(t, mask, a->k->sizes[2]);
    else if (mask->rank == 2)
        mask = mtf_onnx_unsqueeze(t, mask, 4, 6);
    else if (mask->rank == 3)
        mask = mtf_onnx_unsqueeze(t, mask, 4, 2);
    return mtf_onnx_mask_numbers(t, mask, a->q->type, lowest);
}

static MtfOnnxValue *finish(MtfOnnxCall *call, MtfOnnxAttention *a, MtfOnnxValue *mask,
                            MtfOnnxValue *bias) {
    a->causal = mtf_onnx_int(call, "unidirectional", 0) != 0;
    a->scale = scale_of(call, a->q);
    a->masks[0] = mask_of(call, mask, a);
    a->masks[1] = bias;
    return mtf_onnx_join_heads(call, mtf_onnx_attend(call, a));
}

/* Number `which` of `n` along the last axis but one of x [batch, places, heads, n, features], as heads. */
static MtfOnnxValue *packed(MtfOnnxTranslation *t, MtfOnnxValue *x, int64_t which) {
    static const int order[] = { 0, 2, 1, 3 };
    MtfOnnxValue *one = mtf_onnx_slice(t, x, 3, which, 1, 1);
    return one == NULL ? NULL : mtf_onnx_transpose(t, mtf_onnx_squeeze(t, one, 1U << 3), order);
}

/* Input k with its part of the bias, as heads; keys and values may be heads already. */
static MtfOnnxValue *biased_heads(MtfOnnxCall *call, MtfOnnxValue *x, int64_t heads,
                                  int64_t begin) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *bias = mtf_onnx_weight(t, mtf_onnx_input(call, 3), false);
    if (x != NULL && x->rank == 3 && bias != NULL)
        x = mtf_onnx_binary(t, MTF_OP_ADD, x, features(t, bias, begin, x->sizes[2]));
    return mtf_onnx_part_heads(call, x, heads);
}

static MtfOnnxValue *heads_attention(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    int64_t heads = mtf_onnx_int(call, "num_heads", 0);
    MtfOnnxValue *q = call->inputs[0], *k = mtf_onnx_input(call, 1), *v = mtf_onnx_input(call, 2);
    MtfOnnxAttention a = { 0 };
    if (q->rank == 5 || (k != NULL && k->rank == 5)) {
        int64_t first = q->rank == 5 ? 1 : 0;
        a.q = first > 0 ? packed(t, q, 0) : biased_heads(call, q, heads, 0);
        a.k = packed(t, first > 0 ? q : k, first);
        a.v = packed(t, first > 0 ? q : k, first + 1);
        if (first > 0 && mtf_onnx_input(call, 3) != NULL)
            return mtf_onnx_fail(t, "a bias of packed heads is not supported");
    } else if (k == NULL || v == NULL || q->rank < 3) {
        return mtf_onnx_fail(t, "keys and values are missing");
    } else {
        int64_t width = q->sizes[q->rank - 1];
        a.q = biased_heads(call, q, heads, 0);
        a.k = biased_heads(call, k, heads, width);
        a.v = biased_heads(call, v, heads, 2 * width);
    }
    if (!hand_on(call, &a, 6, 1))
        return NULL;
    return finish(call, &a, mtf_onnx_input(call, 4), mtf_onnx_input(call, 5));
}

/* ---- From x, by one matrix -------------------------------------------------------------------- */

/* Keys (0) or values (1) of a past that has both along its first axis. */
static MtfOnnxValue *past_of(MtfOnnxTranslation *t, MtfOnnxValue *past, int64_t which) {
    if (past == NULL || past->rank != 5 || mtf_onnx_elements(past) == 0 || past->sizes[0] != 2)
        return NULL;
    MtfOnnxValue *one = mtf_onnx_slice(t, past, 0, which, 1, 1);
    return one == NULL ? NULL : mtf_onnx_squeeze(t, one, 1);
}

/* Features of q, k and v, which "qkv_hidden_sizes" may say. */
static bool widths_of(MtfOnnxCall *call, int64_t all, int64_t widths[3]) {
    int64_t said[2 * MTF_ONNX_MAX_RANK];
    int n;
    if (!mtf_onnx_ints(call, "qkv_hidden_sizes", -1, said, &n))
        return false;
    for (int i = 0; i < 3; i++)
        widths[i] = n == 3 ? said[i] : all / 3;
    return widths[0] + widths[1] + widths[2] == all ||
           mtf_onnx_fail(call->t, "q, k and v should be as wide together as its matrix") != NULL;
}

/* x times the matrix, and its bias, as heads of q, k and v behind the past. */
static bool project_heads(MtfOnnxCall *call, MtfOnnxAttention *a) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *matrix = mtf_onnx_weight(t, call->inputs[1], false),
                 *past = mtf_onnx_input(call, 4);
    MtfOnnxValue *bias = mtf_onnx_weight(t, mtf_onnx_input(call, 2), false);
    MtfOnnxValue *inputs[] = { call->inputs[0], matrix }, *heads[3];
    int64_t widths[3], begin = 0;
    if (matrix == NULL || matrix->rank != 2 || call->inputs[0]->rank != 3)
        return mtf_onnx_fail(t, "[batch, places, features] and a matrix are expected") != NULL;
    if (!widths_of(call, matrix->sizes[1], widths))
        return false;
    MtfOnnxValue *all = mtf_onnx_product(t, "bld,de->ble", 2, inputs);
    if (bias != NULL)
        all = mtf_onnx_binary(t, MTF_OP_ADD, all, bias);
    for (int i = 0; i < 3; begin += widths[i++])
        heads[i] = mtf_onnx_part_heads(call, features(t, all, begin, widths[i]),
                                       mtf_onnx_int(call, "num_heads", 0));
    a->q = heads[0];
    a->k = mtf_onnx_with_past(t, past_of(t, past, 0), heads[1]);
    a->v = mtf_onnx_with_past(t, past_of(t, past, 1), heads[2]);
    return a->q != NULL && a->k != NULL && a->v != NULL;
}

/* Keys and values along a new first axis. */
static MtfOnnxValue *present_of(MtfOnnxTranslation *t, const MtfOnnxAttention *a) {
    MtfOnnxValue *both[] = { mtf_onnx_unsqueeze(t, a->k, 5, 1), mtf_onnx_unsqueeze(t, a->v, 5, 1) };
    return mtf_onnx_concat(t, 0, 2, both);
}

static MtfOnnxValue *whole_attention(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxAttention a = { 0 };
    if (mtf_onnx_int(call, "do_rotary", 0) != 0 || mtf_onnx_input(call, 6) != NULL)
        return mtf_onnx_fail(t, "\"do_rotary\" and caches that are filled are not supported");
    if (!project_heads(call, &a))
        return NULL;
    if (call->n_outputs > 1)
        call->outputs[1] = present_of(t, &a);
    return finish(call, &a, mtf_onnx_input(call, 3), mtf_onnx_input(call, 5));
}

const MtfOnnxOperator mtf_onnx_fused_attention_operators[] = {
    { "Attention", whole_attention, 0, 0, 2, 7, "com.microsoft" },
    { "GroupQueryAttention", grouped_attention, 0, 0, 1, 14, "com.microsoft" },
    { "MultiHeadAttention", heads_attention, 0, 0, 1, 10, "com.microsoft" },
    { 0 },
};
