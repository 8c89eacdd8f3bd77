// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_heads.h"

#include "analyzer/onnx/onnx_steps.h"

#include <float.h>
#include <inttypes.h>

MtfOnnxValue *mtf_onnx_part_heads(MtfOnnxCall *call, MtfOnnxValue *x, int64_t heads) {
    static const int order[] = { 0, 2, 1, 3 };
    if (x == NULL || x->rank == 4)
        return x;
    if (x->rank != 3 || heads < 1 || x->sizes[2] % heads != 0)
        return mtf_onnx_fail(call->t, "its inputs should have four axes, or three and a number of "
                                      "heads that divides the last");
    const int64_t sizes[] = { x->sizes[0], x->sizes[1], heads, x->sizes[2] / heads };
    return mtf_onnx_transpose(call->t, mtf_onnx_reshape(call->t, x, 4, sizes), order);
}

MtfOnnxValue *mtf_onnx_join_heads(MtfOnnxCall *call, MtfOnnxValue *x) {
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

MtfOnnxValue *mtf_onnx_rotate(MtfOnnxCall *call, const MtfOnnxRotary *rotary, MtfOnnxValue *x) {
    MtfOnnxTranslation *t = call->t;
    if (x == NULL)
        return NULL;
    int64_t all = x->sizes[3], turns = rotary->turns == 0 ? all : rotary->turns;
    MtfOnnxValue *cosine = angles(call, rotary->cosines, rotary->ids, x);
    MtfOnnxValue *sine = angles(call, rotary->sines, rotary->ids, x);
    if (cosine == NULL || sine == NULL)
        return NULL;
    if (turns < 2 || turns > all || turns % 2 != 0 || cosine->sizes[3] != turns / 2)
        return mtf_onnx_fail(
            t, "%" PRId64 " features of %" PRId64 " cannot turn by %" PRId64 " angles", turns, all,
            cosine->sizes[3]);
    MtfOnnxValue *part = turns < all ? mtf_onnx_slice(t, x, 3, 0, 1, turns) : x;
    MtfOnnxValue *y = part == NULL ? NULL : turn(t, part, cosine, sine, rotary->neighbours);
    if (turns == all)
        return y;
    MtfOnnxValue *parts[] = { y, mtf_onnx_slice(t, x, 3, turns, 1, all - turns) };
    return mtf_onnx_concat(t, 3, 2, parts);
}

MtfOnnxValue *mtf_onnx_places_from(MtfOnnxTranslation *t, MtfOnnxValue *first, int64_t places) {
    const int64_t sizes[] = { 1, places }, one[] = { 1, 1 };
    double number;
    if (!mtf_onnx_is_number(t, first, &number))
        return t->error != NULL ? NULL
                                : mtf_onnx_binary(t, MTF_OP_ADD, mtf_onnx_reshape(t, first, 2, one),
                                                  mtf_onnx_range(t, first->type, 2, sizes, 1));
    MtfOnnxValue *ids = mtf_onnx_known_new(t, MTF_ONNX_INT64, 2, sizes);
    for (int64_t i = 0; ids != NULL && i < places; i++)
        ids->known[i] = number + (double)i;
    return ids;
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* Keys or values behind those of the past. */
MtfOnnxValue *mtf_onnx_with_past(MtfOnnxTranslation *t, MtfOnnxValue *past, MtfOnnxValue *now) {
    MtfOnnxValue *both[] = { past, now };
    return past == NULL || mtf_onnx_elements(past) == 0 ? now : mtf_onnx_concat(t, 2, 2, both);
}

/* The number far below all scores, or the mask itself where it is one of numbers. */
static MtfOnnxValue *add_mask(MtfOnnxCall *call, MtfOnnxValue *scores, MtfOnnxValue *mask) {
    MtfOnnxTranslation *t = call->t;
    if (mask == NULL || scores == NULL)
        return scores;
    int64_t places = mask->rank < 1 ? 1 : mask->sizes[mask->rank - 1];
    if (places != scores->sizes[3])
        return mtf_onnx_fail(t, "a mask of %" PRId64 " places for %" PRId64 " is not supported",
                             places, scores->sizes[3]);
    if (mask->type != MTF_ONNX_BOOL)
        return mtf_onnx_binary(t, MTF_OP_ADD, scores, mask);
    return mtf_onnx_where(t, mask, scores, mtf_onnx_scalar(t, scores->type, -FLT_MAX / 2));
}

/* Query i sees places up to i + `last`, which is a triangle; or, with `from`, from there on. */
static MtfOnnxValue *triangle(MtfOnnxTranslation *t, const MtfOnnxValue *scores, int64_t last,
                              bool from) {
    const int64_t *sizes = &scores->sizes[2];
    MtfOnnxValue *mask = mtf_onnx_known_new(t, MTF_ONNX_BOOL, 2, sizes);
    for (int64_t i = 0; mask != NULL && i < sizes[0] * sizes[1]; i++) {
        int64_t behind = i % sizes[1] - i / sizes[1] - last;
        mask->known[i] = from ? behind >= 0 : behind <= 0;
    }
    return mask;
}

/* The scores of what a query does not see for its place far below the others. */
static MtfOnnxValue *hide(MtfOnnxCall *call, const MtfOnnxAttention *a, MtfOnnxValue *scores) {
    int64_t past = scores == NULL ? 0 : scores->sizes[3] - scores->sizes[2];
    if (scores != NULL && a->causal)
        scores = add_mask(call, scores, triangle(call->t, scores, past, false));
    if (scores != NULL && a->window > 0 && a->window < scores->sizes[3])
        scores = add_mask(call, scores, triangle(call->t, scores, past - a->window + 1, true));
    return scores;
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

/* Shares of all places, and of nothing where there are sinks, which is left out. */
static MtfOnnxValue *share(MtfOnnxTranslation *t, MtfOnnxValue *scores, MtfOnnxValue *sinks) {
    if (scores == NULL || sinks == NULL)
        return scores == NULL ? NULL : mtf_onnx_softmax(t, scores, 1U << 3);
    int64_t sizes[] = { 1, mtf_onnx_elements(sinks), 1, 1 }, places = scores->sizes[3];
    sinks = mtf_onnx_reshape(t, mtf_onnx_weight(t, sinks, false), 4, sizes);
    if (sinks == NULL || (sizes[1] != 1 && sizes[1] != scores->sizes[1]))
        return sinks == NULL ? NULL : mtf_onnx_fail(t, "a sink for each head is expected");
    for (int k = 0; k < 3; k++)
        sizes[k] = scores->sizes[k];
    MtfOnnxValue *both[] = { scores, mtf_onnx_expand(t, sinks, 4, sizes) };
    MtfOnnxValue *joined = mtf_onnx_concat(t, 3, 2, both);
    return joined == NULL
               ? NULL
               : mtf_onnx_slice(t, mtf_onnx_softmax(t, joined, 1U << 3), 3, 0, 1, places);
}

MtfOnnxValue *mtf_onnx_attend(MtfOnnxCall *call, const MtfOnnxAttention *a) {
    MtfOnnxTranslation *t = call->t;
    if (a->q == NULL || a->k == NULL || a->v == NULL)
        return NULL;
    if (a->q->sizes[0] != a->k->sizes[0] || a->q->sizes[3] != a->k->sizes[3] ||
        a->k->sizes[2] != a->v->sizes[2])
        return mtf_onnx_fail(t, "its queries, keys and values do not go together");
    MtfOnnxValue *scores = mtf_onnx_affine(t, multiply_heads(call, a->q, a->k, false), a->scale, 0);
    scores = cap_scores(t, scores, a->softcap);
    for (guint i = 0; i < G_N_ELEMENTS(a->masks); i++)
        scores = add_mask(call, scores, a->masks[i]);
    return multiply_heads(call, share(t, hide(call, a, scores), a->sinks), a->v, true);
}

MtfOnnxValue *mtf_onnx_mask_numbers(MtfOnnxTranslation *t, MtfOnnxValue *ones, int type,
                                    double lowest) {
    return mtf_onnx_affine(t, mtf_onnx_cast(t, ones, type), -lowest, lowest);
}
