// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_known.h"

#include <math.h>
#include <string.h>

/* Constants of float types are computed up to this many elements. */
#define MOST_FLOATS 4096

bool mtf_onnx_folds(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    if (t->plain || value == NULL || value->tensor >= 0)
        return false;
    if (value->stored == NULL)
        return value->known != NULL && !value->shaped;
    int64_t n = value->stored->elements;
    bool small = mtf_onnx_type_is_float(value->type) ? n <= (value->trained ? 1 : MOST_FLOATS)
                                                     : n <= MTF_ONNX_MOST_KNOWN;
    return small && mtf_onnx_is_known(t, value);
}

bool mtf_onnx_all_fold(MtfOnnxTranslation *t, int n, MtfOnnxValue *const *values) {
    for (int i = 0; i < n; i++)
        if (!mtf_onnx_folds(t, values[i]))
            return false;
    return true;
}

void mtf_onnx_strides(int rank, const int64_t *sizes, int64_t *strides) {
    int64_t stride = 1;
    for (int k = rank - 1; k >= 0; k--) {
        strides[k] = stride;
        stride *= sizes[k];
    }
}

/* The place of element `i` of a shape in an array with other strides. */
static int64_t place_of(int64_t i, int rank, const int64_t *sizes, const int64_t *strides) {
    int64_t place = 0;
    for (int k = rank - 1; k >= 0; k--) {
        place += i % sizes[k] * strides[k];
        i /= sizes[k];
    }
    return place;
}

MtfOnnxValue *mtf_onnx_known_strided(MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                                     const int64_t *sizes, int64_t offset, const int64_t *strides) {
    if (x->uniform)
        return mtf_onnx_uniform(t, x->type, rank, sizes, x->known[0]);
    MtfOnnxValue *result = mtf_onnx_known_new(t, x->type, rank, sizes);
    int64_t n = result == NULL ? 0 : mtf_onnx_elements(result);
    for (int64_t i = 0; i < n; i++)
        result->known[i] = x->known[offset + place_of(i, rank, sizes, strides)];
    return result;
}

MtfOnnxValue *mtf_onnx_known_reshape(MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                                     const int64_t *sizes) {
    int64_t strides[MTF_ONNX_MAX_RANK];
    mtf_onnx_strides(MIN(rank, MTF_ONNX_MAX_RANK), sizes, strides);
    return mtf_onnx_known_strided(t, x, rank, sizes, 0, strides);
}

/* ---- Element by element ---------------------------------------------------------------------- */

/* Whether our operation `kind` of numbers is worked out here, and what it is. */
static bool compute_one(int kind, const MtfAttributes *a, double x, double *y) {
    switch (kind) {
    case MTF_OP_NEGATE:
        return *y = -x, true;
    case MTF_OP_ABS:
        return *y = fabs(x), true;
    case MTF_OP_SIGN:
        return *y = (x > 0) - (x < 0), true;
    case MTF_OP_SQRT:
        return *y = sqrt(x), true;
    case MTF_OP_RECIPROCAL:
        return *y = 1 / x, true;
    case MTF_OP_SQUARE:
        return *y = x * x, true;
    case MTF_OP_EXP:
        return *y = exp(x), true;
    case MTF_OP_LOG:
        return *y = log(x), true;
    case MTF_OP_SIN:
        return *y = sin(x), true;
    case MTF_OP_COS:
        return *y = cos(x), true;
    case MTF_OP_FLOOR:
        return *y = floor(x), true;
    case MTF_OP_RELU:
        return *y = MAX(x, 0), true;
    case MTF_OP_CEIL:
        return *y = ceil(x), true;
    case MTF_OP_LOGICAL_NOT:
        return *y = x == 0, true;
    case MTF_OP_SCALE:
        return *y = a->factor * x, true;
    case MTF_OP_RAISE:
        return *y = pow(x, a->exponent), true;
    default:
        return false;
    }
}

static bool compute_two(int kind, double a, double b, double *y) {
    switch (kind) {
    case MTF_OP_ADD:
        return *y = a + b, true;
    case MTF_OP_SUBTRACT:
        return *y = a - b, true;
    case MTF_OP_MULTIPLY:
        return *y = a * b, true;
    case MTF_OP_DIVIDE:
        return *y = a / b, true;
    case MTF_OP_MAXIMUM:
        return *y = fmax(a, b), true;
    case MTF_OP_MINIMUM:
        return *y = fmin(a, b), true;
    case MTF_OP_MODULO:
        return *y = a - b * floor(a / b), true;
    case MTF_OP_POWER:
        return *y = pow(a, b), true;
    case MTF_OP_EQUAL:
        return *y = a == b, true;
    case MTF_OP_LESS:
        return *y = a < b, true;
    case MTF_OP_LESS_EQUAL:
        return *y = a <= b, true;
    case MTF_OP_GREATER:
        return *y = a > b, true;
    case MTF_OP_GREATER_EQUAL:
        return *y = a >= b, true;
    case MTF_OP_NOT_EQUAL:
        return *y = a != b, true;
    case MTF_OP_LOGICAL_AND:
        return *y = a != 0 && b != 0, true;
    case MTF_OP_LOGICAL_OR:
        return *y = a != 0 || b != 0, true;
    case MTF_OP_LOGICAL_XOR:
        return *y = (a != 0) != (b != 0), true;
    default:
        return false;
    }
}

static double round_to(int type, double x) {
    if (mtf_onnx_type_is_integer(type))
        return trunc(x);
    return type == MTF_ONNX_DOUBLE ? x : (double)(float)x;
}

static bool compute(int kind, const MtfAttributes *a, int n, const double *x, double *y) {
    if (n == 1)
        return compute_one(kind, a, x[0], y);
    if (n == 3 && kind == MTF_OP_WHERE)
        return *y = x[0] != 0 ? x[1] : x[2], true;
    *y = x[0];
    bool good = n == 2 || kind == MTF_OP_ADD;
    for (int i = 1; good && i < n; i++)
        good = compute_two(kind, *y, x[i], y);
    return good;
}

#define MOST_INPUTS 8

/* Strides with which a value is gone through as a larger shape. */
static void broadcast_strides(const MtfOnnxValue *x, int rank, int64_t *strides) {
    int64_t own[MTF_ONNX_MAX_RANK];
    mtf_onnx_strides(x->rank, x->sizes, own);
    for (int k = 0; k < rank; k++) {
        int j = k - (rank - x->rank);
        strides[k] = j < 0 || x->sizes[j] == 1 || x->uniform ? 0 : own[j];
    }
}

MtfOnnxValue *mtf_onnx_known_map(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes,
                                 int n, MtfOnnxValue *const *inputs, const MtfOnnxValue *like) {
    double x[MOST_INPUTS] = { 0 }, y;
    int64_t strides[MOST_INPUTS][MTF_ONNX_MAX_RANK], count = mtf_onnx_elements(like);
    bool uniform = true;
    for (int i = 0; i < MIN(n, MOST_INPUTS); i++) {
        x[i] = inputs[i]->known[0];
        uniform = uniform && (inputs[i]->uniform || mtf_onnx_elements(inputs[i]) == 1);
        broadcast_strides(inputs[i], like->rank, strides[i]);
    }
    if (n > MOST_INPUTS || !compute(kind, attributes, n, x, &y) ||
        (!uniform && count > MTF_ONNX_MOST_KNOWN))
        return NULL;
    if (uniform && count > 0)
        return mtf_onnx_uniform(t, like->type, like->rank, like->sizes, round_to(like->type, y));
    MtfOnnxValue *result = mtf_onnx_known_new(t, like->type, like->rank, like->sizes);
    for (int64_t j = 0; result != NULL && j < count; j++) {
        for (int i = 0; i < n; i++)
            x[i] = inputs[i]->known[place_of(j, like->rank, like->sizes, strides[i])];
        compute(kind, attributes, n, x, &y);
        result->known[j] = round_to(like->type, y);
    }
    return result;
}

MtfOnnxValue *mtf_onnx_known_reduce(MtfOnnxTranslation *t, int kind, const MtfOnnxValue *x,
                                    unsigned axes) {
    static const struct {
        int kind, of_two;
        double first;
    } kinds[] = { { MTF_OP_REDUCE_SUM, MTF_OP_ADD, 0 },
                  { MTF_OP_REDUCE_PROD, MTF_OP_MULTIPLY, 1 },
                  { MTF_OP_REDUCE_MAX, MTF_OP_MAXIMUM, -HUGE_VAL },
                  { MTF_OP_REDUCE_MIN, MTF_OP_MINIMUM, HUGE_VAL } };
    int64_t sizes[MTF_ONNX_MAX_RANK], own[MTF_ONNX_MAX_RANK];
    guint row = 0;
    while (row < G_N_ELEMENTS(kinds) && kinds[row].kind != kind)
        row++;
    if (row == G_N_ELEMENTS(kinds) || mtf_onnx_elements(x) > MTF_ONNX_MOST_KNOWN)
        return NULL;
    for (int k = 0; k < x->rank; k++)
        sizes[k] = axes >> k & 1 ? 1 : x->sizes[k];
    MtfOnnxValue *result = mtf_onnx_known_new(t, x->type, x->rank, sizes);
    if (result == NULL)
        return NULL;
    for (int64_t i = 0; i < mtf_onnx_elements(result); i++)
        result->known[i] = kinds[row].first;
    mtf_onnx_strides(x->rank, sizes, own);
    for (int k = 0; k < x->rank; k++)
        own[k] = axes >> k & 1 ? 0 : own[k];
    for (int64_t i = 0; i < mtf_onnx_elements(x); i++) {
        double *sum = &result->known[place_of(i, x->rank, x->sizes, own)];
        compute_two(kinds[row].of_two, *sum, mtf_onnx_known_at(x, i), sum);
    }
    return result;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

MtfOnnxValue *mtf_onnx_known_concat(MtfOnnxTranslation *t, int axis, int n,
                                    MtfOnnxValue *const *inputs) {
    int64_t sizes[MTF_ONNX_MAX_RANK], inner = 1, outer = 1, at = 0;
    for (int k = 0; k < inputs[0]->rank; k++) {
        sizes[k] = k == axis ? 0 : inputs[0]->sizes[k];
        inner *= k > axis ? sizes[k] : 1;
        outer *= k < axis ? sizes[k] : 1;
    }
    for (int i = 0; i < n; i++)
        sizes[axis] += inputs[i]->sizes[axis];
    MtfOnnxValue *result = mtf_onnx_known_new(t, inputs[0]->type, inputs[0]->rank, sizes);
    if (result == NULL)
        return NULL;
    for (int i = 0; i < n; i++) {
        int64_t run = inputs[i]->sizes[axis] * inner;
        for (int64_t j = 0; j < outer * run; j++)
            result->known[j / MAX(run, 1) * sizes[axis] * inner + at + j % MAX(run, 1)] =
                mtf_onnx_known_at(inputs[i], j);
        at += run;
    }
    return result;
}

MtfOnnxValue *mtf_onnx_known_lookup(MtfOnnxTranslation *t, const MtfOnnxValue *table,
                                    const MtfOnnxValue *ids, int axis) {
    int64_t sizes[2 * MTF_ONNX_MAX_RANK], inner = 1;
    int rank = 0;
    for (int k = 0; k < axis; k++)
        sizes[rank++] = table->sizes[k];
    for (int k = 0; k < ids->rank; k++)
        sizes[rank++] = ids->sizes[k];
    for (int k = axis + 1; k < table->rank; k++) {
        sizes[rank++] = table->sizes[k];
        inner *= table->sizes[k];
    }
    MtfOnnxValue *result = mtf_onnx_known_new(t, table->type, rank, sizes);
    int64_t rows = table->sizes[axis], n = mtf_onnx_elements(ids);
    int64_t total = result == NULL ? 0 : mtf_onnx_elements(result);
    for (int64_t i = 0; i < total; i++) {
        double id = mtf_onnx_known_at(ids, i / inner % n);
        double row = id < 0 ? id + (double)rows : id;
        if (!(row >= 0 && row < (double)rows))
            return mtf_onnx_fail(t, "index %g is not within the %g elements of axis %d", id,
                                 (double)rows, axis);
        int64_t outer = i / (inner * n);
        result->known[i] =
            mtf_onnx_known_at(table, (outer * rows + (int64_t)row) * inner + i % inner);
    }
    return result;
}

MtfOnnxValue *mtf_onnx_known_write(MtfOnnxTranslation *t, const MtfOnnxValue *x,
                                   MtfOnnxValue *places, const MtfOnnxValue *updates,
                                   const int64_t sizes[3]) {
    int64_t m = sizes[0], n = sizes[1], r = sizes[2];
    bool wide = mtf_onnx_elements(places) == m * r;
    MtfOnnxValue *result = mtf_onnx_known_new(t, x->type, x->rank, x->sizes);
    for (int64_t i = 0; result != NULL && i < n * r; i++)
        result->known[i] = mtf_onnx_known_at(x, i);
    for (int64_t i = 0; result != NULL && i < m * r; i++) {
        double place = mtf_onnx_known_at(places, wide ? i : i / r);
        if (!(place >= 0 && place < (double)n))
            return mtf_onnx_fail(t, "index %g is not within %g elements", place, (double)n);
        result->known[(int64_t)place * r + i % r] = mtf_onnx_known_at(updates, i);
    }
    return result;
}

static double cast_number(double x, int type) {
    return type == MTF_ONNX_BOOL ? (double)(x != 0) : round_to(type, x);
}

MtfOnnxValue *mtf_onnx_known_cast(MtfOnnxTranslation *t, MtfOnnxValue *value, int type) {
    int64_t n = mtf_onnx_elements(value);
    MtfOnnxValue *result = value->uniform ? mtf_onnx_uniform(t, type, value->rank, value->sizes,
                                                             cast_number(value->known[0], type))
                                          : mtf_onnx_known_new(t, type, value->rank, value->sizes);
    for (int64_t i = 0; result != NULL && !value->uniform && i < n; i++)
        result->known[i] = cast_number(value->known[i], type);
    if (result != NULL)
        result->cast_of = value;
    return result;
}
