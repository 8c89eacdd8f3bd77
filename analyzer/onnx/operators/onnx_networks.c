// SPDX-License-Identifier: GPL-3.0-or-later
/* Operators that are products, and those that networks have beside them. */
#include "analyzer/onnx/onnx_operators.h"
#include "analyzer/onnx/onnx_steps.h"
#include "analyzer/onnx/operators/onnx_places.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* ---- Products -------------------------------------------------------------------------------- */

/* A factor that the file holds is a weight. */
static MtfOnnxValue *weight(MtfOnnxCall *call, int k) {
    return mtf_onnx_weight(call->t, call->inputs[k], false);
}

/* numpy's matmul: [batch…, m, k] [batch…, k, n]; a vector is a row on the left, a column on the
 * right. */
static MtfOnnxValue *mat_mul(MtfOnnxCall *call) {
    MtfOnnxValue *inputs[] = { weight(call, 0), weight(call, 1) };
    static const char batch[] = "abcdefgh";
    if (inputs[0] == NULL || inputs[1] == NULL)
        return NULL;
    int p = inputs[0]->rank, q = inputs[1]->rank, most = MAX(MAX(p, q) - 2, 0);
    if (p < 1 || q < 1 || most > 8)
        return mtf_onnx_fail(call->t, "its inputs should have from 1 to 10 axes");
    g_autofree char *letters =
        g_strdup_printf("%.*s%s,%.*s%s->%.*s%s%s", MAX(p - 2, 0), batch + most - MAX(p - 2, 0),
                        p > 1 ? "mk" : "k", MAX(q - 2, 0), batch + most - MAX(q - 2, 0),
                        q > 1 ? "kn" : "k", most, batch, p > 1 ? "m" : "", q > 1 ? "n" : "");
    int64_t k = inputs[0]->sizes[p - 1], other = inputs[1]->sizes[q > 1 ? q - 2 : 0];
    if (k != other)
        return mtf_onnx_fail(call->t, "it multiplies %" PRId64 " columns with %" PRId64 " rows", k,
                             other);
    return mtf_onnx_product(call->t, letters, 2, inputs);
}

/* alpha A B + beta C, A and B transposed where it says so. */
static MtfOnnxValue *gemm(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *inputs[] = { weight(call, 0), weight(call, 1) };
    bool left = mtf_onnx_int(call, "transA", 0) != 0, right = mtf_onnx_int(call, "transB", 0) != 0;
    if (inputs[0] == NULL || inputs[1] == NULL)
        return NULL;
    if (inputs[0]->rank > 2 && call->opset < 7) {
        int64_t sizes[2] = { inputs[0]->sizes[0], 1 };
        for (int k = 1; k < inputs[0]->rank; k++)
            sizes[1] *= inputs[0]->sizes[k];
        inputs[0] = mtf_onnx_reshape(t, inputs[0], 2, sizes);
    }
    if (inputs[0] == NULL || inputs[0]->rank != 2 || inputs[1]->rank != 2)
        return mtf_onnx_fail(t, "its inputs should be matrices");
    if (inputs[0]->sizes[!left] != inputs[1]->sizes[right])
        return mtf_onnx_fail(t, "it multiplies %" PRId64 " columns with %" PRId64 " rows",
                             inputs[0]->sizes[!left], inputs[1]->sizes[right]);
    g_autofree char *letters =
        g_strdup_printf("%s,%s->mn", left ? "km" : "mk", right ? "nk" : "kn");
    MtfOnnxValue *y = mtf_onnx_affine(t, mtf_onnx_product(t, letters, 2, inputs),
                                      mtf_onnx_float(call, "alpha", 1), 0);
    MtfOnnxValue *c = mtf_onnx_input(call, 2);
    double beta = mtf_onnx_float(call, "beta", 1);
    if (c == NULL || beta == 0)
        return y;
    return mtf_onnx_binary(t, MTF_OP_ADD, y, mtf_onnx_affine(t, weight(call, 2), beta, 0));
}

/* The letters of "ij, jk -> ik" without spaces, with dots spelled out as capitals; the last
 * belong to the last axes; NULL with an error. Free with g_free. */
static char *spell_letters(MtfOnnxCall *call, const char *equation) {
    g_autoptr(GString) all = g_string_new(NULL);
    for (const char *at = equation; *at != '\0'; at++)
        if (*at != ' ')
            g_string_append_c(all, *at);
    char *arrow = strstr(all->str, "->");
    g_autofree char *left =
        arrow != NULL ? g_strndup(all->str, (gsize)(arrow - all->str)) : g_strdup(all->str);
    g_auto(GStrv) terms = g_strsplit(left, ",", -1);
    g_autoptr(GString) spelled = g_string_new(NULL);
    int most = 0;
    if ((int)g_strv_length(terms) != call->n_inputs)
        return (char *)mtf_onnx_fail(call->t, "\"%s\" is not for %d inputs", equation,
                                     call->n_inputs);
    for (int i = 0; i < call->n_inputs; i++) {
        char *dots = strstr(terms[i], "...");
        int extra = call->inputs[i]->rank - (int)strlen(terms[i]) + (dots != NULL ? 3 : 0);
        if (extra < 0 || extra > 8 || (dots == NULL && extra > 0))
            return (char *)mtf_onnx_fail(call->t, "\"%s\" does not have the axes of input %d",
                                         equation, i);
        most = MAX(most, dots != NULL ? extra : 0);
        g_string_append_printf(spelled, "%s%.*s%.*s%s", i > 0 ? "," : "",
                               dots != NULL ? (int)(dots - terms[i]) : INT_MAX, terms[i],
                               dots != NULL ? extra : 0, &"12345678"[8 - extra],
                               dots != NULL ? dots + 3 : "");
    }
    g_string_append(spelled, "->");
    const char *out = arrow != NULL ? arrow + 2 : NULL;
    const char *dots = out != NULL ? strstr(out, "...") : NULL;
    if (out == NULL) { /* the dots, then letters that stand once, in their order */
        g_string_append(spelled, &"12345678"[8 - most]);
        for (char c = 'A'; c <= 'z'; c++) {
            const char *first = strchr(left, c);
            if (g_ascii_isalpha(c) && first != NULL && strchr(first + 1, c) == NULL)
                g_string_append_c(spelled, c);
        }
    } else {
        g_string_append_printf(spelled, "%.*s%s%s", dots != NULL ? (int)(dots - out) : INT_MAX, out,
                               dots != NULL ? &"12345678"[8 - most] : "",
                               dots != NULL ? dots + 3 : "");
    }
    return g_strdup(spelled->str);
}

static MtfOnnxValue *einsum(MtfOnnxCall *call) {
    g_autofree char *letters = spell_letters(call, mtf_onnx_word(call, "equation", ""));
    if (letters == NULL || call->n_inputs > 8)
        return letters == NULL ? NULL : mtf_onnx_fail(call->t, "more than 8 inputs");
    const char *out = strstr(letters, "->") + 2;
    for (const char *at = letters; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && strchr(",->", *at) == NULL)
            return mtf_onnx_fail(call->t, "its equation should hold letters");
    for (const char *at = out; *at != '\0'; at++)
        if (memchr(letters, *at, (gsize)(out - 2 - letters)) == NULL || strchr(at + 1, *at) != NULL)
            return mtf_onnx_fail(call->t, "letter %c of its result is in no input, or twice", *at);
    if (strlen(out) > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(call->t, "more than %d dimensions", MTF_ONNX_MAX_RANK);
    return mtf_onnx_product(call->t, letters, call->n_inputs, call->inputs);
}

/* ---- Choices --------------------------------------------------------------------------------- */

static MtfOnnxValue *top_k(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t k = mtf_onnx_int(call, "k", 1);
    double number = (double)k;
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", -1), x->rank);
    bool largest = mtf_onnx_int(call, "largest", 1) != 0;
    if (axis < 0 || !mtf_onnx_known_input(call, 1, number, &number))
        return NULL;
    if (!(number >= 1 && number <= (double)x->sizes[axis]))
        return mtf_onnx_fail(t, "k is %g and the axis has %" PRId64 " elements", number,
                             x->sizes[axis]);
    int type = x->type;
    if (mtf_dtype_is_integer(mtf_onnx_dtype(type)))
        x = mtf_onnx_cast(t, x, MTF_ONNX_DOUBLE);
    if (!largest)
        x = mtf_onnx_unary(t, MTF_OP_NEGATE, x);
    MtfOnnxValue *y = mtf_onnx_along(t, MTF_OP_TOP_K, MTF_NO_ATTRIBUTES, x, axis, (int64_t)number);
    if (y == NULL)
        return NULL;
    if (call->n_outputs > 1)
        call->outputs[1] = mtf_onnx_cast(t, mtf_onnx_element_places(t, y), MTF_ONNX_INT64);
    return mtf_onnx_cast(t, largest ? y : mtf_onnx_unary(t, MTF_OP_NEGATE, y), type);
}

/* values[0] but values[1] where the new axis is at the index, which counts from either end. */
static MtfOnnxValue *one_hot(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *ids = mtf_onnx_cast(t, call->inputs[0], MTF_ONNX_INT64),
                 *values = call->inputs[2];
    int64_t sizes[MTF_ONNX_MAX_RANK] = { 0 };
    double depth;
    if (ids == NULL || ids->rank + 1 > MTF_ONNX_MAX_RANK ||
        !mtf_onnx_known_input(call, 1, 0, &depth))
        return NULL;
    int rank = ids->rank + 1, axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", -1), rank);
    if (axis < 0 || depth < 1 || depth > 0x1p40)
        return axis < 0 ? NULL : mtf_onnx_fail(t, "its depth cannot be %g", depth);
    ids = mtf_onnx_unsqueeze(t, ids, rank, 1U << axis);
    for (int k = 0; k < rank; k++)
        sizes[k] = k == axis ? (int64_t)depth : 1;
    MtfOnnxValue *place = mtf_onnx_range(t, MTF_ONNX_INT64, rank, sizes, axis);
    ids = mtf_onnx_from_either_end(t, ids, (int64_t)depth);
    MtfOnnxValue *here =
        mtf_onnx_cast(t, mtf_onnx_binary(t, MTF_OP_EQUAL, ids, place), MTF_ONNX_BOOL);
    MtfOnnxValue *off = mtf_onnx_slice(t, values, 0, 0, 1, 1);
    MtfOnnxValue *on = mtf_onnx_slice(t, values, 0, 1, 1, 1);
    return mtf_onnx_where(t, here, mtf_onnx_squeeze(t, on, 1), mtf_onnx_squeeze(t, off, 1));
}

/* The table's other axes go together with those of the ids. */
static MtfOnnxValue *gather_elements(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0], *ids = call->inputs[1];
    int axis = mtf_onnx_axis(call, mtf_onnx_int(call, "axis", 0), x->rank);
    if (axis < 0 || ids->rank != x->rank)
        return axis < 0 ? NULL : mtf_onnx_fail(t, "its inputs should have as many axes");
    for (int k = 0; k < x->rank; k++)
        if (k != axis && ids->sizes[k] != x->sizes[k])
            return mtf_onnx_fail(t, "parts of an axis are not supported");
    return mtf_onnx_lookup_along(t, x, mtf_onnx_from_either_end(t, ids, x->sizes[axis]), axis);
}

/* ---- Normalisation between channels ------------------------------------------------------------ */

/* x / (bias + alpha / size (sum of x^2 over `size` channels around))^beta; the sum is one of shifted
 * copies. */
static MtfOnnxValue *local_response(MtfOnnxCall *call) {
    MtfOnnxTranslation *t = call->t;
    MtfOnnxValue *x = call->inputs[0];
    int64_t size = mtf_onnx_int(call, "size", 0);
    if (size < 1 || size > 64 || x->rank < 2)
        return mtf_onnx_fail(t, "its \"size\" should be from 1 to 64");
    MtfOnnxValue *square = mtf_onnx_unary(t, MTF_OP_SQUARE, x), *sum = NULL;
    for (int64_t k = -((size - 1) / 2); k <= size / 2; k++) {
        MtfAttributes a = MTF_NO_ATTRIBUTES;
        a.start = (double)k;
        a.stride = a.dilation = 1;
        MtfOnnxValue *shifted =
            k == 0 ? square : mtf_onnx_along(t, MTF_OP_RESAMPLE, a, square, 1, x->sizes[1]);
        /* the shifted copy has the channels' own places again */
        sum = sum == NULL ? shifted : mtf_onnx_binary(t, MTF_OP_ADD, sum, shifted);
    }
    MtfAttributes raised = MTF_NO_ATTRIBUTES;
    raised.exponent = -mtf_onnx_float(call, "beta", 0.75);
    MtfOnnxValue *base = mtf_onnx_affine(t, sum, mtf_onnx_float(call, "alpha", 1e-4) / (double)size,
                                         mtf_onnx_float(call, "bias", 1));
    return mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, mtf_onnx_map(t, MTF_OP_RAISE, &raised, 1, &base));
}

const MtfOnnxOperator mtf_onnx_network_operators[] = {
    { "Einsum", einsum, 0, 0, 1, INT_MAX, NULL },
    { "GatherElements", gather_elements, 0, 0, 2, 2, NULL },
    { "Gemm", gemm, 0, 0, 2, 3, NULL },
    { "LRN", local_response, 0, 0, 1, 1, NULL },
    { "MatMul", mat_mul, 0, 0, 2, 2, NULL },
    { "OneHot", one_hot, 0, 0, 3, 3, NULL },
    { "TopK", top_k, 0, 0, 1, 2, NULL },
    { 0 },
};
