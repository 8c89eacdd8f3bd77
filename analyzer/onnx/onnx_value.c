// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_value.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

MtfOnnxValue *mtf_onnx_fail(MtfOnnxTranslation *t, const char *format, ...) {
    if (t->error != NULL)
        return NULL;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (t->node == NULL)
        mtf_input_error(&t->error, "%s: %s", t->model->path, sentence);
    else
        mtf_input_error(&t->error, "%s: node %d%s%s%s (%s): %s", t->model->path, t->number,
                        *t->node->name != '\0' ? " \"" : "", t->node->name,
                        *t->node->name != '\0' ? "\"" : "", t->node->op, sentence);
    return NULL;
}

void mtf_onnx_say(MtfOnnxTranslation *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (t->said == NULL || !g_hash_table_add(t->noted, sentence)) {
        if (t->said == NULL)
            g_free(sentence);
        return;
    }
    g_ptr_array_add(t->said, g_strdup(sentence));
}

MtfDtype mtf_onnx_dtype(int type) {
    bool wide = type == MTF_ONNX_INT64 || type == MTF_ONNX_UINT32 || type == MTF_ONNX_UINT64;
    if (mtf_onnx_type_is_integer(type))
        return wide ? MTF_I64 : MTF_I32;
    return type == MTF_ONNX_BOOL ? MTF_BOOL : type == MTF_ONNX_DOUBLE ? MTF_F64 : MTF_F32;
}

int64_t mtf_onnx_elements(const MtfOnnxValue *value) {
    int64_t n = 1;
    for (int i = 0; i < value->rank; i++)
        n *= value->sizes[i];
    return n;
}

static bool check_sizes(MtfOnnxTranslation *t, int rank, const int64_t *sizes) {
    int64_t n = 1;
    if (rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(t, "more than %d dimensions", MTF_ONNX_MAX_RANK) != NULL;
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < 0 || (sizes[i] > 0 && n > (INT64_C(1) << 53) / sizes[i]))
            return mtf_onnx_fail(t, "a tensor would have more than 2^53 elements") != NULL;
        n *= MAX(sizes[i], 1);
    }
    return true;
}

MtfOnnxValue *mtf_onnx_value_new(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes) {
    if (t->error != NULL || !check_sizes(t, rank, sizes))
        return NULL;
    MtfOnnxValue *value = g_new0(MtfOnnxValue, 1);
    *value = (MtfOnnxValue){ .type = type, .rank = rank, .tensor = -1 };
    for (int i = 0; i < rank; i++) {
        value->sizes[i] = sizes[i];
        value->axes[i] = -1;
    }
    g_ptr_array_add(t->all, value);
    return value;
}

MtfOnnxValue *mtf_onnx_view(MtfOnnxTranslation *t, const MtfOnnxValue *value) {
    MtfOnnxValue *copy = mtf_onnx_value_new(t, value->type, value->rank, value->sizes);
    if (copy == NULL)
        return NULL;
    memcpy(copy->axes, value->axes, sizeof copy->axes);
    copy->tensor = value->tensor;
    return copy;
}

MtfOnnxValue *mtf_onnx_known_new(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes) {
    MtfOnnxValue *value = mtf_onnx_value_new(t, type, rank, sizes);
    if (value == NULL)
        return NULL;
    int64_t n = mtf_onnx_elements(value);
    if (n > MTF_ONNX_MOST_KNOWN)
        return mtf_onnx_fail(t, "%" PRId64 " elements are too many to be worked out beforehand", n);
    value->known = g_new0(double, MAX(n, 1));
    return value;
}

MtfOnnxValue *mtf_onnx_uniform(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes,
                               double number) {
    MtfOnnxValue *value = mtf_onnx_value_new(t, type, rank, sizes);
    if (value == NULL)
        return NULL;
    value->known = g_new(double, 1);
    value->known[0] = number;
    value->uniform = true;
    return value;
}

MtfOnnxValue *mtf_onnx_scalar(MtfOnnxTranslation *t, int type, double number) {
    return mtf_onnx_uniform(t, type, 0, NULL, number);
}

MtfOnnxValue *mtf_onnx_stored(MtfOnnxTranslation *t, const MtfOnnxTensor *tensor, bool trained) {
    MtfOnnxValue *value = mtf_onnx_value_new(t, tensor->type, tensor->rank, tensor->dims);
    if (value != NULL) {
        value->stored = tensor;
        value->trained = trained;
    }
    return value;
}

bool mtf_onnx_is_known(MtfOnnxTranslation *t, MtfOnnxValue *value) {
    (void)t;
    if (value->known != NULL)
        return true;
    const MtfOnnxTensor *stored = value->stored;
    if (stored == NULL || stored->elements > MTF_ONNX_MOST_KNOWN)
        return false;
    double *values = g_new(double, MAX(stored->elements, 1));
    if (!mtf_onnx_tensor_values(stored, values)) {
        g_free(values);
        return false;
    }
    value->known = values;
    bool same = stored->elements > 0;
    for (int64_t i = 1; same && i < stored->elements; i++)
        same = values[i] == values[0];
    value->uniform = same;
    return true;
}

double mtf_onnx_known_at(const MtfOnnxValue *value, int64_t i) {
    return value->known[value->uniform ? 0 : i];
}

bool mtf_onnx_is_number(MtfOnnxTranslation *t, MtfOnnxValue *value, double *number) {
    if (mtf_onnx_elements(value) != 1 || !mtf_onnx_is_known(t, value))
        return false;
    *number = value->known[0];
    return true;
}
