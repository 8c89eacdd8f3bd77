// SPDX-License-Identifier: GPL-3.0-or-later
/* Sequences of tensors, whose length is known: lists while translating, which leave nothing in the graph. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define MOST_MEMBERS 4096

/* A sequence of room for n members. */
static MtfOnnxValue *new_sequence(MtfOnnxTranslation *t, int64_t n) {
    if (n > MOST_MEMBERS)
        return mtf_onnx_fail(t, "sequences have at most %d members", MOST_MEMBERS);
    MtfOnnxValue *value = mtf_onnx_value_new(t, 0, 0, NULL);
    if (value != NULL)
        value->members = g_ptr_array_sized_new((guint)n);
    return value;
}

static MtfOnnxValue *construct(MtfOnnxCall *call) {
    MtfOnnxValue *made = new_sequence(call->t, call->n_inputs);
    for (int i = 0; made != NULL && i < call->n_inputs; i++)
        g_ptr_array_add(made->members, call->inputs[i]);
    return made;
}

/* The members that input 0 is; NULL with an error. */
static GPtrArray *members_of(MtfOnnxCall *call) {
    GPtrArray *members = call->inputs[0]->members;
    if (members == NULL)
        mtf_onnx_fail(call->t, "its first input should be a sequence");
    return members;
}

/* Input k as a place among n members, which counts from either end and is at most `last`, the one where it is
 * left out; -1 with an error. */
static int64_t place_of(MtfOnnxCall *call, int k, int64_t n, int64_t last) {
    double number;
    if (!mtf_onnx_known_input(call, k, (double)last, &number))
        return -1;
    if (number >= -(double)n && number <= (double)last)
        return (int64_t)(number < 0 ? number + (double)n : number);
    mtf_onnx_fail(call->t, "place %g is not one of %" PRId64 " members", number, n);
    return -1;
}

/* A copy with a member more; `number` -1: less. */
static MtfOnnxValue *changed(MtfOnnxCall *call) {
    bool erases = call->number < 0;
    GPtrArray *members = members_of(call);
    int64_t n = members == NULL ? 0 : members->len;
    int64_t at = members == NULL ? -1 : place_of(call, erases ? 1 : 2, n, erases ? n - 1 : n);
    MtfOnnxValue *made = at < 0 ? NULL : new_sequence(call->t, n + 1);
    if (made == NULL)
        return NULL;
    for (guint i = 0; i < members->len; i++)
        g_ptr_array_add(made->members, members->pdata[i]);
    if (erases)
        g_ptr_array_remove_index(made->members, (guint)at);
    else
        g_ptr_array_insert(made->members, (int)at, call->inputs[1]);
    return made;
}

static MtfOnnxValue *member_at(MtfOnnxCall *call) {
    GPtrArray *members = members_of(call);
    int64_t at = members == NULL ? -1 : place_of(call, 1, members->len, (int64_t)members->len - 1);
    return at < 0 ? NULL : members->pdata[at];
}

static MtfOnnxValue *length_of(MtfOnnxCall *call) {
    const GPtrArray *members = members_of(call);
    return members == NULL ? NULL : mtf_onnx_scalar(call->t, MTF_ONNX_INT64, members->len);
}

/* Members one behind the other, along a new axis where that is asked for. */
static MtfOnnxValue *concat(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    GPtrArray *members = members_of(call);
    if (members == NULL || members->len == 0)
        return members == NULL ? NULL : mtf_onnx_fail(t, "a sequence of nothing cannot be joined");
    bool stacks = mtf_onnx_int(call, "new_axis", 0) != 0;
    g_autofree MtfOnnxValue **parts = g_new0(MtfOnnxValue *, members->len);
    int rank = ((MtfOnnxValue *)members->pdata[0])->rank + stacks;
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), rank);
    for (guint i = 0; axis >= 0 && i < members->len; i++)
        parts[i] =
            stacks ? mtf_onnx_unsqueeze(t, members->pdata[i], rank, 1U << axis) : members->pdata[i];
    return axis < 0 ? NULL : mtf_onnx_concat(t, axis, (int)members->len, parts);
}

/* How large part i of n elements is: as input 1 lists them, or as it says of all, or 1. */
static int64_t part_size(const MtfOnnxValue *sizes, int64_t i, int64_t left) {
    if (sizes == NULL)
        return 1;
    double size = mtf_onnx_known_at(sizes, sizes->rank > 0 ? i : 0);
    return sizes->rank > 0 ? (int64_t)size : MIN((int64_t)size, left);
}

static MtfOnnxValue *split(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *sizes = mtf_onnx_input(call, 1);
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    if (axis < 0 || (sizes != NULL && !mtf_onnx_is_known(t, sizes)))
        return axis < 0 ? NULL : mtf_onnx_fail(t, "the sizes of its parts depend on data");
    bool drops = sizes == NULL && mtf_onnx_int(call, "keepdims", 1) == 0;
    int64_t n = x->sizes[axis], at = 0;
    int64_t listed = sizes != NULL && sizes->rank > 0 ? mtf_onnx_elements(sizes) : n;
    MtfOnnxValue *made = new_sequence(t, MIN(n, listed));
    for (int64_t i = 0; made != NULL && at < n && i < listed; i++) {
        int64_t size = part_size(sizes, i, n - at);
        if (size < 1 || size > n - at)
            return mtf_onnx_fail(t, "its parts do not add up to %" PRId64, n);
        MtfOnnxValue *part = mtf_onnx_slice(t, x, axis, at, 1, size);
        part = drops ? mtf_onnx_squeeze(t, part, 1U << axis) : part;
        if (part == NULL)
            return NULL;
        g_ptr_array_add(made->members, part);
        at += size;
    }
    return at == n ? made : mtf_onnx_fail(t, "its parts do not add up to %" PRId64, n);
}

const MtfOnnxOperator mtf_onnx_sequence_operators[] = {
    { "ConcatFromSequence", concat, 0, 0, 1, 1, NULL },
    { "SequenceAt", member_at, 0, 0, 2, 2, NULL },
    { "SequenceConstruct", construct, 0, 0, 1, INT_MAX, NULL },
    { "SequenceEmpty", construct, 0, 0, 0, 0, NULL },
    { "SequenceErase", changed, 0, -1, 1, 2, NULL },
    { "SequenceInsert", changed, 0, 1, 2, 3, NULL },
    { "SequenceLength", length_of, 0, 0, 1, 1, NULL },
    { "SplitToSequence", split, 0, 0, 1, 2, NULL },
    { 0 },
};
