// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/onnx/stored_weights.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/onnx/onnx_tensor.h"

#include <stdio.h>
#include <string.h>

struct MtfStoredWeights {
    char *path, *location;
    MtfJsonDocument *header;
    int64_t data; /* where it begins */
};

/* 8 bytes, the least first. */
static bool read_length(FILE *file, uint64_t *length) {
    guint8 front[8];
    if (fread(front, 1, sizeof front, file) != sizeof front)
        return false;
    *length = 0;
    for (int i = 7; i >= 0; i--)
        *length = *length << 8 | front[i];
    return true;
}

/* 8 bytes, the length of the JSON behind them; the data follow it. */
static char *read_header(const char *path, int64_t *length, GError **error) {
    uint64_t n = 0;
    FILE *file = fopen(path, "rb");
    bool good = file != NULL && read_length(file, &n) && n < 100000000;
    char *text = good ? g_malloc(n + 1) : NULL;
    good = good && fread(text, 1, n, file) == n;
    if (file != NULL)
        fclose(file);
    *length = (int64_t)n;
    if (good)
        return text;
    g_free(text);
    mtf_input_error(error, "%s cannot be read as a safetensors file", path);
    return NULL;
}

MtfStoredWeights *mtf_stored_weights_open(const char *path, GError **error) {
    int64_t length;
    g_autofree char *text = read_header(path, &length, error);
    g_autoptr(MtfStoredWeights) weights = g_new0(MtfStoredWeights, 1);
    weights->path = g_strdup(path);
    weights->location = g_path_get_basename(path);
    weights->data = length + 8;
    weights->header =
        text == NULL ? NULL : mtf_json_document_parse(path, text, (gsize)length, error);
    return weights->header == NULL ? NULL : g_steal_pointer(&weights);
}

void mtf_stored_weights_free(MtfStoredWeights *weights) {
    if (weights == NULL)
        return;
    g_free(weights->path);
    g_free(weights->location);
    if (weights->header != NULL)
        mtf_json_document_free(weights->header);
    g_free(weights);
}

const char *mtf_stored_weights_location(const MtfStoredWeights *weights) {
    return weights->location;
}

static int type_of(const char *dtype) {
    static const struct {
        const char *name;
        int type;
    } types[] = { { "F32", MTF_ONNX_FLOAT },   { "F64", MTF_ONNX_DOUBLE },
                  { "F16", MTF_ONNX_FLOAT16 }, { "BF16", MTF_ONNX_BFLOAT16 },
                  { "I32", MTF_ONNX_INT32 },   { "I64", MTF_ONNX_INT64 },
                  { "BOOL", MTF_ONNX_BOOL } };
    for (guint i = 0; i < G_N_ELEMENTS(types); i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].type;
    return MTF_ONNX_UNDEFINED;
}

bool mtf_stored_weights_find(const MtfStoredWeights *weights, const char *name,
                             MtfStoredWeight *weight, GError **error) {
    MtfJson root = mtf_json_root(weights->header), tensor, dtype, offsets, end;
    const char *text;
    int64_t from, to;
    if (!mtf_json_object(&root, error))
        return false;
    if (!mtf_json_find(&root, name, &tensor))
        return mtf_input_error(error, "%s has no tensor \"%s\"", weights->path, name);
    if (!mtf_json_get(&tensor, "dtype", &dtype, error) || !mtf_json_string(&dtype, &text, error) ||
        !mtf_json_get_array(&tensor, "data_offsets", &offsets, error))
        return false;
    if (mtf_json_length(&offsets) != 2 || !mtf_json_first(&offsets, &end))
        return mtf_json_fail(&offsets, error, "two numbers are expected here");
    if (!mtf_json_integer(&end, 0, MTF_JSON_MAX_INTEGER / 2, &from, error) ||
        !mtf_json_next(&end) || !mtf_json_integer(&end, from, MTF_JSON_MAX_INTEGER / 2, &to, error))
        return false;
    weight->type = type_of(text);
    weight->offset = weights->data + from;
    weight->length = to - from;
    return weight->type != MTF_ONNX_UNDEFINED ||
           mtf_json_fail(&dtype, error, "ONNX has no type \"%s\" here", text);
}
