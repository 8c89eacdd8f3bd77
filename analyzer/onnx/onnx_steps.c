// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_steps.h"

#include "analyzer/onnx/onnx_known.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The name of the next operation made for the node; free with g_free. */
static char *step_name(MtfOnnxTranslation *t) {
    const char *name = t->node != NULL ? t->node->op : "constant";
    for (guint k = t->node != NULL ? t->node->outputs->len : 0; k-- > 0;)
        if (*(const char *)t->node->outputs->pdata[k] != '\0')
            name = t->node->outputs->pdata[k];
    return g_strdup_printf("%s/%d", name, ++t->steps);
}

MtfAxisOperation mtf_onnx_begin(MtfOnnxTranslation *t, int kind) {
    g_autofree char *name = step_name(t);
    return mtf_axis_operation(t->graph, kind, name);
}

void mtf_onnx_take(MtfOnnxTranslation *t, MtfAxisOperation *operation, const MtfOnnxValue *value,
                   const int *indexes) {
    MtfShape from = mtf_axis_tensor(t->graph, value->tensor)->axes, to = { from.rank, { 0 } };
    for (int k = 0; k < value->rank; k++)
        if (value->axes[k] >= 0)
            to.dims[mtf_shape_find(&from, value->axes[k])] = indexes[k];
    mtf_axis_operation_take(t->graph, operation, value->tensor, &from, &to);
}

/* What the operation makes: axis k is indexes[k], or -1. */
static MtfOnnxValue *end(MtfOnnxTranslation *t, MtfAxisOperation *operation, MtfOnnxValue *result,
                         const int *indexes) {
    for (int k = 0; k < result->rank; k++)
        result->axes[k] = indexes[k];
    operation->dtype = operation->has_dtype ? operation->dtype : mtf_onnx_dtype(result->type);
    result->tensor = mtf_axis_operation_end(t->graph, operation);
    return result;
}

/* ---- Element by element ---------------------------------------------------------------------- */

/* Constants that are equal everywhere repeat with the batch asked for, not with the file's. */
static void forget_old_batch(MtfOnnxTranslation *t, MtfOnnxValue *value, const MtfOnnxValue *by) {
    for (int j = 0; t->batch > 0 && j < value->rank; j++) {
        int axis = j - value->rank + by->rank;
        if (value->sizes[j] == t->file_batch && axis >= 0 && by->sizes[axis] == t->batch &&
            mtf_onnx_is_known(t, value) && value->uniform) {
            value->sizes[j] = 1;
            value->stored = NULL;
        }
    }
}

bool mtf_onnx_broadcast(MtfOnnxTranslation *t, int n, MtfOnnxValue *const *values, int *rank,
                        int64_t *sizes) {
    *rank = 0;
    for (int i = 0; i < n; i++)
        *rank = MAX(*rank, values[i]->rank);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            forget_old_batch(t, values[i], values[k]);
    for (int k = 0; k < *rank; k++)
        sizes[k] = 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < values[i]->rank; j++) {
            int64_t size = values[i]->sizes[j], *slot = &sizes[*rank - values[i]->rank + j];
            if (*slot != 1 && size != 1 && size != *slot)
                return mtf_onnx_fail(t, "sizes %" PRId64 " and %" PRId64 " do not go together",
                                     *slot, size) != NULL;
            *slot = size == 1 ? *slot : size;
        }
    }
    return true;
}

/* A tensor for an input, of the type of all, without axes that others repeat it along. */
static MtfOnnxValue *prepare_term(MtfOnnxTranslation *t, MtfOnnxValue *value, int type, int rank,
                                  const int64_t *sizes) {
    unsigned keep = 0;
    if (mtf_onnx_dtype(value->type) != mtf_onnx_dtype(type))
        value = mtf_onnx_cast(t, value, type);
    value = mtf_onnx_material(t, value);
    for (int k = 0; value != NULL && k < value->rank; k++)
        if (sizes[rank - value->rank + k] == 1)
            keep |= 1U << k;
    return mtf_onnx_drop_units(t, value, keep);
}

/* Indexes of an operation for each axis that some input has; -1 for the others. */
static void index_terms(MtfOnnxTranslation *t, MtfAxisOperation *operation, int n,
                        MtfOnnxValue *const *terms, int *indexes, const MtfOnnxValue *result) {
    for (int k = 0; k < result->rank; k++) {
        bool real = false;
        for (int i = 0; i < n && !real; i++) {
            int j = k - (result->rank - terms[i]->rank);
            real = j >= 0 && terms[i]->axes[j] >= 0;
        }
        indexes[k] = real ? mtf_axis_index(t->graph, operation, result->sizes[k], NULL) : -1;
    }
}

/* The order of the result: that of the first input, or of the result's axes. */
static void lay_out(MtfAxisOperation *operation, const MtfOnnxValue *result, const int *indexes) {
    if (mtf_operation_row(operation->kind)->dims == MTF_DIMS_FIRST) {
        operation->shape = g_array_index(operation->inputs, MtfAxisInput, 0).to;
        return;
    }
    for (int k = 0; k < result->rank; k++)
        if (indexes[k] >= 0)
            mtf_shape_append(&operation->shape, indexes[k]);
}

/* The type that input i is brought to: that of the first, or behind a condition that of the second. */
static int term_type(int kind, MtfOnnxValue *const *inputs, int i) {
    bool conditional = (mtf_operation_row(kind)->conditions & 1) != 0;
    return inputs[conditional && i > 0 ? 1 : 0]->type;
}

/* The same with a result of type `type`. */
static MtfOnnxValue *map_typed(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes,
                               int n, MtfOnnxValue *const *inputs, int type) {
    int rank, indexes[MTF_ONNX_MAX_RANK];
    int64_t sizes[MTF_ONNX_MAX_RANK];
    g_autofree MtfOnnxValue **terms = g_new0(MtfOnnxValue *, n);
    for (int i = 0; i < n; i++)
        if (inputs[i] == NULL)
            return NULL;
    if (t->error != NULL || !mtf_onnx_broadcast(t, n, inputs, &rank, sizes))
        return NULL;
    MtfOnnxValue *result = mtf_onnx_value_new(t, type, rank, sizes);
    MtfOnnxValue *known = result != NULL && mtf_onnx_all_fold(t, n, inputs)
                              ? mtf_onnx_known_map(t, kind, attributes, n, inputs, result)
                              : NULL;
    if (known != NULL || t->error != NULL)
        return known;
    for (int i = 0; i < n; i++)
        if ((terms[i] = prepare_term(t, inputs[i], term_type(kind, inputs, i), rank, sizes)) ==
            NULL)
            return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    operation.has_dtype = type == MTF_ONNX_BOOL && inputs[0]->type != MTF_ONNX_BOOL;
    operation.dtype = MTF_BOOL;
    if (attributes != NULL)
        operation.attributes = *attributes;
    index_terms(t, &operation, n, terms, indexes, result);
    for (int i = 0; i < n; i++)
        mtf_onnx_take(t, &operation, terms[i], &indexes[rank - terms[i]->rank]);
    lay_out(&operation, result, indexes);
    return end(t, &operation, result, indexes);
}

MtfOnnxValue *mtf_onnx_map(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes, int n,
                           MtfOnnxValue *const *inputs) {
    return inputs[0] == NULL ? NULL : map_typed(t, kind, attributes, n, inputs, inputs[0]->type);
}

MtfOnnxValue *mtf_onnx_truth(MtfOnnxTranslation *t, int kind, MtfOnnxValue *a, MtfOnnxValue *b) {
    MtfOnnxValue *inputs[] = { a, b };
    return a == NULL ? NULL : map_typed(t, kind, NULL, 2, inputs, MTF_ONNX_BOOL);
}

MtfOnnxValue *mtf_onnx_unary(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x) {
    return mtf_onnx_map(t, kind, NULL, 1, &x);
}

MtfOnnxValue *mtf_onnx_binary(MtfOnnxTranslation *t, int kind, MtfOnnxValue *a, MtfOnnxValue *b) {
    MtfOnnxValue *inputs[] = { a, b };
    return mtf_onnx_map(t, kind, NULL, 2, inputs);
}

MtfOnnxValue *mtf_onnx_where(MtfOnnxTranslation *t, MtfOnnxValue *condition, MtfOnnxValue *a,
                             MtfOnnxValue *b) {
    if (condition == NULL || a == NULL || b == NULL)
        return NULL;
    MtfOnnxValue *inputs[] = { mtf_onnx_cast(t, condition, MTF_ONNX_BOOL), a, b };
    return map_typed(t, MTF_OP_WHERE, NULL, 3, inputs, a->type);
}

MtfOnnxValue *mtf_onnx_affine(MtfOnnxTranslation *t, MtfOnnxValue *x, double factor, double term) {
    if (x != NULL && factor != 1 && !mtf_dtype_is_integer(mtf_onnx_dtype(x->type))) {
        MtfAttributes scale = MTF_NO_ATTRIBUTES;
        scale.factor = factor;
        x = mtf_onnx_map(t, MTF_OP_SCALE, &scale, 1, &x);
    } else if (x != NULL && factor != 1) {
        x = mtf_onnx_binary(t, MTF_OP_MULTIPLY, x, mtf_onnx_scalar(t, x->type, factor));
    }
    if (x != NULL && term != 0)
        x = mtf_onnx_binary(t, MTF_OP_ADD, x, mtf_onnx_scalar(t, x->type, term));
    return x;
}

/* r = floor(x + 1/2), less 1 where r - x is 1/2 and r is odd. */
MtfOnnxValue *mtf_onnx_round_even(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    MtfOnnxValue *up = mtf_onnx_unary(t, MTF_OP_FLOOR, mtf_onnx_affine(t, x, 1, 0.5));
    if (up == NULL)
        return NULL;
    MtfOnnxValue *half =
        mtf_onnx_binary(t, MTF_OP_EQUAL, mtf_onnx_binary(t, MTF_OP_SUBTRACT, up, x),
                        mtf_onnx_scalar(t, x->type, 0.5));
    MtfOnnxValue *odd = mtf_onnx_binary(t, MTF_OP_MODULO, up, mtf_onnx_scalar(t, x->type, 2));
    return mtf_onnx_binary(t, MTF_OP_SUBTRACT, up, mtf_onnx_binary(t, MTF_OP_MULTIPLY, half, odd));
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* Whether equal elements change nothing, however many there are. */
static bool ignores_repetition(int kind) {
    return kind == MTF_OP_REDUCE_MEAN || kind == MTF_OP_REDUCE_MAX || kind == MTF_OP_REDUCE_MIN ||
           kind == MTF_OP_VARIANCE;
}

MtfOnnxValue *mtf_onnx_reduce(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x, unsigned axes,
                              MtfOnnxValue *more) {
    int indexes[MTF_ONNX_MAX_RANK], left[MTF_ONNX_MAX_RANK];
    bool real = false;
    MtfOnnxValue *known =
        x != NULL && mtf_onnx_folds(t, x) ? mtf_onnx_known_reduce(t, kind, x, axes) : NULL;
    if (known != NULL)
        return known;
    x = ignores_repetition(kind) ? mtf_onnx_material(t, x) : mtf_onnx_real(t, x);
    if (x == NULL || t->error != NULL)
        return NULL;
    MtfOnnxValue *result = mtf_onnx_value_new(t, x->type, x->rank, x->sizes);
    if (result == NULL)
        return NULL;
    for (int k = 0; k < x->rank; k++) {
        bool reduced = axes >> k & 1;
        real |= reduced && x->axes[k] >= 0;
        result->sizes[k] = reduced ? 1 : x->sizes[k];
    }
    if (!real && kind != MTF_OP_VARIANCE && kind != MTF_OP_SUM_EXP && kind != MTF_OP_LOG_SUM_EXP) {
        memcpy(result->axes, x->axes, sizeof result->axes);
        result->tensor = x->tensor;
        return result;
    }
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    for (int k = 0; k < x->rank; k++) {
        indexes[k] = x->axes[k] >= 0 ? mtf_axis_index(t->graph, &operation, x->sizes[k], NULL) : -1;
        left[k] = axes >> k & 1 ? -1 : indexes[k];
    }
    mtf_onnx_take(t, &operation, x, indexes);
    if (more != NULL)
        mtf_onnx_take(t, &operation, more, left);
    lay_out(&operation, result, left);
    return end(t, &operation, result, left);
}

/* Inputs of softmax_apply: x, its maximum and the sum of e^(x - maximum). */
static bool softmax_parts(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes,
                          MtfOnnxValue *parts[3]) {
    parts[0] = mtf_onnx_real(t, x);
    parts[1] =
        parts[0] == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_REDUCE_MAX, parts[0], axes, NULL);
    parts[2] =
        parts[1] == NULL ? NULL : mtf_onnx_reduce(t, MTF_OP_SUM_EXP, parts[0], axes, parts[1]);
    return parts[2] != NULL;
}

/* Along axes of one element. */
static bool is_alone(const MtfOnnxValue *x, unsigned axes) {
    bool alone = true;
    for (int k = 0; k < x->rank; k++)
        alone &= (axes >> k & 1) == 0 || x->sizes[k] == 1;
    return alone;
}

MtfOnnxValue *mtf_onnx_softmax(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes) {
    MtfOnnxValue *parts[3];
    if (is_alone(x, axes))
        return mtf_onnx_uniform(t, x->type, x->rank, x->sizes, 1);
    MtfOnnxValue *shares = softmax_parts(t, x, axes, parts)
                               ? mtf_onnx_map(t, MTF_OP_SOFTMAX_APPLY, NULL, 3, parts)
                               : NULL;
    if (shares != NULL)
        shares->logits = parts[0];
    return shares;
}

MtfOnnxValue *mtf_onnx_log_softmax(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes) {
    MtfOnnxValue *parts[3];
    if (is_alone(x, axes))
        return mtf_onnx_uniform(t, x->type, x->rank, x->sizes, 0);
    if (!softmax_parts(t, x, axes, parts))
        return NULL;
    return mtf_onnx_binary(t, MTF_OP_SUBTRACT,
                           mtf_onnx_binary(t, MTF_OP_SUBTRACT, parts[0], parts[1]),
                           mtf_onnx_unary(t, MTF_OP_LOG, parts[2]));
}

/* ---- Products -------------------------------------------------------------------------------- */

#define LETTERS 128

typedef struct {
    int64_t sizes[LETTERS];
    bool real[LETTERS]; /* some input has an axis for it */
    const char *roles[LETTERS];
    int indexes[LETTERS];
} Letters;

/* The letters of input i: up to the next comma. */
static const char *letters_of(const char *letters, int i) {
    for (; i > 0; i--)
        letters = strchr(letters, ',') + 1;
    return letters;
}

static bool note_letters(MtfOnnxTranslation *t, Letters *l, const char *letters,
                         const MtfOnnxValue *value) {
    for (int k = 0; k < value->rank; k++) {
        int64_t *size = &l->sizes[(int)letters[k]];
        if (*size > 1 && value->sizes[k] > 1 && *size != value->sizes[k])
            return mtf_onnx_fail(t, "sizes %" PRId64 " and %" PRId64 " do not go together", *size,
                                 value->sizes[k]) != NULL;
        *size = MAX(*size, value->sizes[k]);
        if (memchr(letters, letters[k], (gsize)k) != NULL)
            return mtf_onnx_fail(t, "diagonals (a letter twice in one input) are not supported") !=
                   NULL;
    }
    return true;
}

/* The input as a tensor without the axes that it is repeated along. */
static MtfOnnxValue *prepare_factor(MtfOnnxTranslation *t, Letters *l, const char *letters,
                                    MtfOnnxValue *value) {
    unsigned keep = 0;
    value = mtf_onnx_material(t, value);
    for (int k = 0; value != NULL && k < value->rank; k++)
        if (l->sizes[(int)letters[k]] == 1)
            keep |= 1U << k;
    value = mtf_onnx_drop_units(t, value, keep);
    for (int k = 0; value != NULL && k < value->rank; k++) {
        bool variable = mtf_axis_tensor(t->graph, value->tensor)->source == MTF_SOURCE_VARIABLE;
        if (value->axes[k] >= 0 && !l->real[(int)letters[k]])
            l->roles[(int)letters[k]] = variable ? "features" : "memory";
        else if (value->axes[k] >= 0)
            l->roles[(int)letters[k]] = NULL;
        l->real[(int)letters[k]] |= value->axes[k] >= 0;
    }
    return value;
}

/* The number of times that sums repeat what no input has an axis for. */
static double repetitions(const Letters *l, const char *out) {
    double n = 1;
    for (int c = 0; c < LETTERS; c++)
        if (l->sizes[c] > 1 && !l->real[c] && strchr(out, c) == NULL)
            n *= (double)l->sizes[c];
    return n;
}

static MtfOnnxValue *multiply(MtfOnnxTranslation *t, const char *letters, int n,
                              MtfOnnxValue *const *inputs, Letters *l) {
    const char *out = strstr(letters, "->") + 2;
    int rank = (int)strlen(out), indexes[MTF_ONNX_MAX_RANK];
    int64_t sizes[MTF_ONNX_MAX_RANK];
    for (int k = 0; k < rank; k++)
        sizes[k] = l->sizes[(int)out[k]];
    MtfOnnxValue *result = mtf_onnx_value_new(t, inputs[0]->type, rank, sizes);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_EINSUM);
    for (int c = 0; c < LETTERS; c++)
        l->indexes[c] =
            l->real[c] ? mtf_axis_index(t->graph, &operation, l->sizes[c], l->roles[c]) : -1;
    for (int i = 0; i < n; i++) {
        int by[MTF_ONNX_MAX_RANK];
        for (int k = 0; k < inputs[i]->rank; k++)
            by[k] = l->indexes[(int)letters_of(letters, i)[k]];
        mtf_onnx_take(t, &operation, inputs[i], by);
    }
    for (int k = 0; k < rank; k++)
        indexes[k] = l->indexes[(int)out[k]];
    lay_out(&operation, result, indexes);
    return mtf_onnx_affine(t, end(t, &operation, result, indexes), repetitions(l, out), 0);
}

MtfOnnxValue *mtf_onnx_product(MtfOnnxTranslation *t, const char *letters, int n,
                               MtfOnnxValue *const *inputs) {
    Letters l = { 0 };
    g_autofree MtfOnnxValue **factors = g_new0(MtfOnnxValue *, n);
    bool integer = false;
    for (int i = 0; i < n; i++)
        if (inputs[i] == NULL || !note_letters(t, &l, letters_of(letters, i), inputs[i]))
            return NULL;
    integer = mtf_dtype_is_integer(mtf_onnx_dtype(inputs[0]->type));
    for (int i = 0; i < n; i++) {
        MtfOnnxValue *factor = integer ? mtf_onnx_cast(t, inputs[i], MTF_ONNX_DOUBLE) : inputs[i];
        factors[i] = prepare_factor(t, &l, letters_of(letters, i), factor);
        if (factors[i] == NULL)
            return NULL;
    }
    MtfOnnxValue *result = multiply(t, letters, n, factors, &l);
    return integer ? mtf_onnx_cast(t, result, inputs[0]->type) : result;
}

/* ---- Along one axis -------------------------------------------------------------------------- */

/* Gives axis `axis` an axis of the tensor, of one element where it has one. */
static MtfOnnxValue *with_axis(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis) {
    x = mtf_onnx_real(t, x);
    if (x == NULL || x->axes[axis] >= 0)
        return x;
    x = mtf_onnx_ordered(t, x);
    MtfOnnxValue *result = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_RESHAPE);
    int indexes[MTF_ONNX_MAX_RANK];
    for (int k = 0; k < x->rank; k++) {
        indexes[k] = x->axes[k] >= 0 || k == axis
                         ? mtf_axis_index(t->graph, &operation, x->sizes[k], NULL)
                         : -1;
        if (indexes[k] >= 0)
            mtf_shape_append(&operation.shape, indexes[k]);
    }
    mtf_onnx_take(t, &operation, x, indexes);
    return end(t, &operation, result, indexes);
}

MtfOnnxValue *mtf_onnx_along(MtfOnnxTranslation *t, int kind, MtfAttributes attributes,
                             MtfOnnxValue *x, int axis, int64_t size) {
    int indexes[MTF_ONNX_MAX_RANK];
    x = x == NULL ? NULL : with_axis(t, x, axis);
    MtfOnnxValue *result = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    operation.attributes = attributes;
    for (int k = 0; k < x->rank; k++)
        indexes[k] = x->axes[k] >= 0 ? mtf_axis_index(t->graph, &operation, x->sizes[k], NULL) : -1;
    mtf_onnx_take(t, &operation, x, indexes);
    operation.shape = g_array_index(operation.inputs, MtfAxisInput, 0).to;
    if (size == 0) {
        operation.attributes.dimension = indexes[axis];
        return end(t, &operation, result, indexes);
    }
    int to = mtf_axis_index(t->graph, &operation, size, "part");
    operation.attributes.from = indexes[axis];
    operation.attributes.to = to;
    operation.shape.dims[mtf_shape_find(&operation.shape, indexes[axis])] = to;
    indexes[axis] = to;
    result->sizes[axis] = size;
    return end(t, &operation, result, indexes);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* The same value with an axis of the tensor for each of its own. */
static MtfOnnxValue *with_axes(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    for (int k = 0; x != NULL && k < x->rank; k++)
        x = with_axis(t, x, k);
    return x;
}

/* The index of a letter, made when it is met first. */
static int index_of_letter(MtfOnnxTranslation *t, const MtfAxisOperation *operation,
                           Letters *letters, char letter, int64_t size) {
    int c = (int)letter;
    if (!letters->real[c]) {
        letters->real[c] = true;
        letters->sizes[c] = size;
        letters->indexes[c] = mtf_axis_index(t->graph, operation, size, letters->roles[c]);
    }
    return letters->indexes[c];
}

/* Adds an input whose axes before the windows' have letters, up to a comma or an arrow. */
static void take_windowed(MtfOnnxTranslation *t, MtfAxisOperation *operation, Letters *letters,
                          const char *names, const MtfOnnxValue *value, const int *windows) {
    int by[MTF_ONNX_MAX_RANK], k = 0;
    for (; names[k] != ',' && names[k] != '-'; k++)
        by[k] = index_of_letter(t, operation, letters, names[k], value->sizes[k]);
    for (int w = 0; k < value->rank; k++, w++)
        by[k] = windows[w];
    mtf_onnx_take(t, operation, value, by);
}

/* Indexes of the windows: of what they go over, what they make, and the places within. */
static void index_windows(MtfOnnxTranslation *t, MtfAxisOperation *operation,
                          const MtfOnnxWindows *windows, const MtfOnnxValue *x,
                          int index[3][MTF_MAX_WINDOWS]) {
    bool filtered = mtf_operation_row(windows->kind)->products == MTF_PRODUCTS_CONV;
    operation->attributes.n_windows = windows->n;
    operation->attributes.counted = windows->counted;
    for (int w = 0; w < windows->n; w++) {
        int64_t in = x->sizes[x->rank - windows->n + w], places = windows->axis[w].places;
        index[0][w] = mtf_axis_index(t->graph, operation, in, NULL);
        index[1][w] = mtf_axis_index(t->graph, operation, windows->axis[w].out, "part");
        index[2][w] = filtered ? mtf_axis_index(t->graph, operation, places, "kernel") : -1;
        operation->attributes.windows[w] = (MtfWindow){ .from = index[0][w],
                                                        .to = index[1][w],
                                                        .kernel = index[2][w],
                                                        .size = filtered ? 1 : (int)places,
                                                        .stride = (int)windows->axis[w].stride,
                                                        .dilation = (int)windows->axis[w].dilation,
                                                        .before = (int)windows->axis[w].before,
                                                        .after = (int)windows->axis[w].after };
    }
}

MtfOnnxValue *mtf_onnx_windowed(MtfOnnxTranslation *t, const MtfOnnxWindows *windows,
                                MtfOnnxValue *x, MtfOnnxValue *filter) {
    int index[3][MTF_MAX_WINDOWS], indexes[MTF_ONNX_MAX_RANK], k = 0;
    int64_t sizes[MTF_ONNX_MAX_RANK];
    Letters letters = { .roles = { ['m'] = "features" } };
    bool filtered = filter != NULL;
    x = with_axes(t, x);
    filter = with_axes(t, filter);
    if (x == NULL || (filtered && filter == NULL))
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, windows->kind);
    index_windows(t, &operation, windows, x, index);
    take_windowed(t, &operation, &letters, windows->letters, x, index[0]);
    if (filtered)
        take_windowed(t, &operation, &letters, letters_of(windows->letters, 1), filter, index[2]);
    for (const char *c = strstr(windows->letters, "->") + 2; *c != '\0'; c++, k++) {
        indexes[k] = letters.indexes[(int)*c];
        sizes[k] = letters.sizes[(int)*c];
    }
    for (int w = 0; w < windows->n; w++, k++) {
        indexes[k] = index[1][w];
        sizes[k] = windows->axis[w].out;
    }
    MtfOnnxValue *result = mtf_onnx_value_new(t, x->type, k, sizes);
    if (result == NULL)
        return NULL;
    lay_out(&operation, result, indexes);
    return end(t, &operation, result, indexes);
}

MtfOnnxValue *mtf_onnx_element_places(MtfOnnxTranslation *t, MtfOnnxValue *y) {
    MtfOnnxValue *places = y == NULL ? NULL : mtf_onnx_view(t, y);
    if (places == NULL)
        return NULL;
    int producer = mtf_axis_tensor(t->graph, y->tensor)->producer;
    places->type = MTF_ONNX_INT32;
    places->tensor = g_array_index(t->graph->operations, MtfAxisOperation, producer).second;
    return places;
}

/* One element of an axis, which stays as an axis of one element. */
static MtfOnnxValue *pick(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int64_t which) {
    int indexes[MTF_ONNX_MAX_RANK], left[MTF_ONNX_MAX_RANK];
    MtfOnnxValue *result = mtf_onnx_view(t, x);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_SELECT);
    for (int k = 0; k < x->rank; k++) {
        indexes[k] = x->axes[k] >= 0 ? mtf_axis_index(t->graph, &operation, x->sizes[k], NULL) : -1;
        left[k] = k == axis ? -1 : indexes[k];
    }
    mtf_onnx_take(t, &operation, x, indexes);
    operation.attributes.dimension = indexes[axis];
    operation.attributes.index = (double)which;
    const MtfShape *to = &g_array_index(operation.inputs, MtfAxisInput, 0).to;
    for (int i = 0; i < to->rank; i++)
        if (to->dims[i] != indexes[axis])
            mtf_shape_append(&operation.shape, to->dims[i]);
    result->sizes[axis] = 1;
    return end(t, &operation, result, left);
}

MtfOnnxValue *mtf_onnx_slice(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int64_t start,
                             int64_t stride, int64_t count) {
    if (x != NULL && count >= 0 && mtf_onnx_folds(t, x)) {
        int64_t strides[MTF_ONNX_MAX_RANK], sizes[MTF_ONNX_MAX_RANK];
        mtf_onnx_strides(x->rank, x->sizes, strides);
        memcpy(sizes, x->sizes, sizeof sizes);
        sizes[axis] = count;
        int64_t offset = start * strides[axis];
        strides[axis] *= stride;
        return mtf_onnx_known_strided(t, x, x->rank, sizes, offset, strides);
    }
    x = mtf_onnx_material(t, x);
    if (x == NULL || (start == 0 && stride == 1 && count == x->sizes[axis]))
        return x;
    if (count < 1)
        return mtf_onnx_fail(t,
                             "it leaves nothing of axis %d, and tensors without elements are not "
                             "supported",
                             axis);
    if (x->axes[axis] < 0) {
        MtfOnnxValue *view = mtf_onnx_view(t, x);
        if (view != NULL)
            view->sizes[axis] = count;
        return view;
    }
    if (count == 1)
        return pick(t, x, axis, start);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.start = (double)start;
    attributes.stride = (double)stride;
    return mtf_onnx_along(t, MTF_OP_SLICE, attributes, x, axis, count);
}

MtfOnnxValue *mtf_onnx_range(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes,
                             int axis) {
    MtfOnnxValue *result = mtf_onnx_value_new(t, type, rank, sizes);
    int indexes[MTF_ONNX_MAX_RANK];
    if (result == NULL)
        return NULL;
    for (int k = 0; k < rank; k++)
        indexes[k] = -1;
    if (sizes[axis] == 1)
        return mtf_onnx_material(t, mtf_onnx_uniform(t, type, rank, sizes, 0));
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_RANGE);
    indexes[axis] = mtf_axis_index(t->graph, &operation, sizes[axis], NULL);
    mtf_shape_append(&operation.shape, indexes[axis]);
    operation.has_dtype = true;
    operation.dtype = mtf_onnx_dtype(type);
    return end(t, &operation, result, indexes);
}

MtfOnnxValue *mtf_onnx_random(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes,
                              const MtfOnnxValue *like) {
    MtfOnnxValue *result = mtf_onnx_value_new(t, like->type, like->rank, like->sizes);
    int indexes[MTF_ONNX_MAX_RANK];
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    for (int k = 0; k < like->rank; k++) {
        indexes[k] = -1;
        if (like->sizes[k] == 1)
            continue;
        indexes[k] = mtf_axis_index(t->graph, &operation, like->sizes[k], NULL);
        mtf_shape_append(&operation.shape, indexes[k]);
    }
    operation.attributes = *attributes;
    operation.has_dtype = true;
    operation.dtype = mtf_onnx_dtype(like->type);
    return end(t, &operation, result, indexes);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

int mtf_onnx_loop(MtfOnnxTranslation *t, int64_t count, bool reverse) {
    g_autofree char *name = step_name(t);
    return mtf_axis_loop_add(t->graph, count, reverse, name);
}

/* A tensor without axes of one element, in the order of the value's. */
static MtfOnnxValue *carried(MtfOnnxTranslation *t, MtfOnnxValue *x) {
    return mtf_onnx_drop_units(t, mtf_onnx_ordered(t, x), 0);
}

static MtfAxisOperation begin_in_loop(MtfOnnxTranslation *t, int kind, int loop) {
    MtfAxisOperation operation = mtf_onnx_begin(t, kind);
    operation.loop = loop;
    return operation;
}

/* Indexes for the axes that x has; the one along `axis` (-1: none) is the loop's. */
static void index_axes(MtfOnnxTranslation *t, MtfAxisOperation *operation, const MtfOnnxValue *x,
                       int axis, int *indexes) {
    for (int k = 0; k < x->rank; k++)
        indexes[k] = x->axes[k] >= 0 ? mtf_axis_index(t->graph, operation, x->sizes[k], NULL) : -1;
    if (axis >= 0)
        mtf_axis_tie(t->graph, indexes[axis],
                     g_array_index(t->graph->loops, MtfAxisLoop, operation->loop - 1).axis);
}

/* What the operation makes of x, and of another that lies as x does, like x; the loop may end by it. */
static MtfOnnxValue *state_of(MtfOnnxTranslation *t, int kind, int loop, MtfOnnxValue *x,
                              MtfOnnxValue *next, bool ends) {
    int indexes[MTF_ONNX_MAX_RANK];
    MtfOnnxValue *result = mtf_onnx_value_new(t, x->type, x->rank, x->sizes);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = begin_in_loop(t, kind, loop);
    operation.attributes.condition = ends;
    index_axes(t, &operation, x, -1, indexes);
    mtf_onnx_take(t, &operation, x, indexes);
    if (next != NULL)
        mtf_onnx_take(t, &operation, next, indexes);
    lay_out(&operation, result, indexes);
    return end(t, &operation, result, indexes);
}

MtfOnnxValue *mtf_onnx_loop_begin(MtfOnnxTranslation *t, int loop, MtfOnnxValue *x) {
    x = carried(t, x);
    return x == NULL ? NULL : state_of(t, MTF_OP_LOOP_BEGIN, loop, x, NULL, false);
}

/* What is handed on is made in the loop: a number that another state is, is copied. */
static MtfOnnxValue *made_inside(MtfOnnxTranslation *t, int loop, MtfOnnxValue *next) {
    g_autofree int *loops = mtf_axis_loops(t->graph);
    int producer = mtf_axis_tensor(t->graph, next->tensor)->producer;
    if (loops[next->tensor] != loop)
        return mtf_onnx_fail(t, "what it hands on is the same in all iterations");
    const MtfAxisOperation *made = &g_array_index(t->graph->operations, MtfAxisOperation, producer);
    if (mtf_operation_row(made->kind)->loop != MTF_LOOP_BEGINS)
        return next;
    if (mtf_dtype_is_integer(mtf_onnx_dtype(next->type)))
        return mtf_onnx_fail(t, "an integer changes its place among what it hands on");
    MtfAttributes scale = MTF_NO_ATTRIBUTES;
    scale.factor = 1;
    return mtf_onnx_map(t, MTF_OP_SCALE, &scale, 1, &next);
}

MtfOnnxValue *mtf_onnx_loop_next(MtfOnnxTranslation *t, int loop, MtfOnnxValue *state,
                                 MtfOnnxValue *next, MtfOnnxValue *alive) {
    if (state == NULL || next == NULL)
        return NULL;
    if (next->type != state->type || next->rank != state->rank ||
        memcmp(next->sizes, state->sizes, (gsize)next->rank * sizeof *next->sizes) != 0)
        return mtf_onnx_fail(t, "what a loop carries changes its type or shape");
    bool ends = state == alive;
    if (ends)
        next = mtf_onnx_binary(t, MTF_OP_LOGICAL_AND, state, next);
    else if (alive != NULL)
        next = mtf_onnx_where(t, alive, next, state);
    next = carried(t, next);
    next = next == NULL ? NULL : made_inside(t, loop, next);
    return next == NULL ? NULL : state_of(t, MTF_OP_LOOP_NEXT, loop, state, next, ends);
}

MtfOnnxValue *mtf_onnx_loop_slice(MtfOnnxTranslation *t, int loop, MtfOnnxValue *x, int axis) {
    int indexes[MTF_ONNX_MAX_RANK];
    x = mtf_onnx_real(t, x);
    MtfOnnxValue *result = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = begin_in_loop(t, MTF_OP_LOOP_SLICE, loop);
    index_axes(t, &operation, x, axis, indexes);
    mtf_onnx_take(t, &operation, x, indexes);
    operation.attributes.dimension = indexes[axis];
    operation.shape = g_array_index(operation.inputs, MtfAxisInput, 0).to;
    mtf_shape_remove(&operation.shape, indexes[axis]);
    indexes[axis] = -1;
    result->sizes[axis] = 1;
    return mtf_onnx_squeeze(t, end(t, &operation, result, indexes), 1U << axis);
}

MtfOnnxValue *mtf_onnx_loop_stack(MtfOnnxTranslation *t, int loop, MtfOnnxValue *y) {
    int indexes[MTF_ONNX_MAX_RANK];
    int axis = g_array_index(t->graph->loops, MtfAxisLoop, loop - 1).axis;
    int64_t sizes[MTF_ONNX_MAX_RANK] = { mtf_axis(t->graph, axis)->size };
    y = mtf_onnx_real(t, y);
    if (y == NULL)
        return NULL;
    memcpy(sizes + 1, y->sizes, (gsize)y->rank * sizeof *sizes);
    MtfOnnxValue *result = mtf_onnx_value_new(t, y->type, y->rank + 1, sizes);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = begin_in_loop(t, MTF_OP_LOOP_STACK, loop);
    indexes[0] = mtf_axis_index(t->graph, &operation, sizes[0], NULL);
    mtf_axis_tie(t->graph, indexes[0], axis);
    index_axes(t, &operation, y, -1, indexes + 1);
    mtf_onnx_take(t, &operation, y, indexes + 1);
    operation.attributes.dimension = indexes[0];
    mtf_shape_append(&operation.shape, indexes[0]);
    const MtfShape *rest = &g_array_index(operation.inputs, MtfAxisInput, 0).to;
    for (int i = 0; i < rest->rank; i++)
        mtf_shape_append(&operation.shape, rest->dims[i]);
    return end(t, &operation, result, indexes);
}
