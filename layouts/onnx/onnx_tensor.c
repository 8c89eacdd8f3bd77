// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/onnx/onnx_tensor.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MOST (INT64_C(1) << 53)

/* Fields of TensorProto. */
enum {
    DIMS = 1,
    DATA_TYPE = 2,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
};

static const struct {
    const char *name;
    int bytes;
    uint32_t field; /* that holds it, where raw_data does not */
    bool is_float, is_integer;
} types[MTF_ONNX_TYPES] = {
    [MTF_ONNX_UNDEFINED] = { "undefined", 0, 0, false, false },
    [MTF_ONNX_FLOAT] = { "float", 4, FLOAT_DATA, true, false },
    [MTF_ONNX_UINT8] = { "uint8", 1, INT32_DATA, false, true },
    [MTF_ONNX_INT8] = { "int8", 1, INT32_DATA, false, true },
    [MTF_ONNX_UINT16] = { "uint16", 2, INT32_DATA, false, true },
    [MTF_ONNX_INT16] = { "int16", 2, INT32_DATA, false, true },
    [MTF_ONNX_INT32] = { "int32", 4, INT32_DATA, false, true },
    [MTF_ONNX_INT64] = { "int64", 8, INT64_DATA, false, true },
    [MTF_ONNX_STRING] = { "string", 0, STRING_DATA, false, false },
    [MTF_ONNX_BOOL] = { "bool", 1, INT32_DATA, false, false },
    [MTF_ONNX_FLOAT16] = { "float16", 2, INT32_DATA, true, false },
    [MTF_ONNX_DOUBLE] = { "double", 8, DOUBLE_DATA, true, false },
    [MTF_ONNX_UINT32] = { "uint32", 4, UINT64_DATA, false, true },
    [MTF_ONNX_UINT64] = { "uint64", 8, UINT64_DATA, false, true },
    [MTF_ONNX_COMPLEX64] = { "complex64", 0, 0, false, false },
    [MTF_ONNX_COMPLEX128] = { "complex128", 0, 0, false, false },
    [MTF_ONNX_BFLOAT16] = { "bfloat16", 2, INT32_DATA, true, false },
};

const char *mtf_onnx_type_name(int type) {
    return type >= 0 && type < MTF_ONNX_TYPES ? types[type].name : "an unknown type";
}

bool mtf_onnx_type_is_float(int type) {
    return type >= 0 && type < MTF_ONNX_TYPES && types[type].is_float;
}

bool mtf_onnx_type_is_integer(int type) {
    return type >= 0 && type < MTF_ONNX_TYPES && types[type].is_integer;
}

int mtf_onnx_type_bytes(int type) {
    return type >= 0 && type < MTF_ONNX_TYPES ? types[type].bytes : 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool fail(const char *where, const MtfOnnxTensor *tensor, GError **error,
                 const char *sentence) {
    return mtf_input_error(error, "%s: tensor \"%s\" %s", where,
                           tensor->name != NULL ? tensor->name : "", sentence);
}

static bool add_dim(MtfOnnxTensor *tensor, uint64_t value) {
    if (tensor->rank == MTF_ONNX_MAX_RANK)
        return false;
    tensor->dims[tensor->rank++] = (int64_t)value;
    return true;
}

static bool read_dims(MtfOnnxTensor *tensor, const MtfWireField *field) {
    if (field->type == MTF_WIRE_VARINT)
        return add_dim(tensor, field->value);
    MtfWire list = field->bytes;
    bool good = true;
    while (good && list.at < list.end)
        good = add_dim(tensor, mtf_wire_varint(&list)) && !list.broken;
    return good;
}

static void append_fixed(GByteArray *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++) {
        guint8 byte = (guint8)(value >> 8 * i);
        g_byte_array_append(bytes, &byte, 1);
    }
}

/* Data in one packed field stay where they are; of several pieces a copy is made. */
static bool add_data(MtfOnnxTensor *tensor, const MtfWireField *field) {
    bool first = tensor->field == 0;
    if (!first && tensor->field != field->number)
        return false;
    tensor->field = field->number;
    if (first && field->type == MTF_WIRE_BYTES) {
        tensor->data = field->bytes;
        return true;
    }
    if (tensor->copy == NULL) {
        tensor->copy = g_byte_array_new();
        if (!first)
            g_byte_array_append(tensor->copy, tensor->data.at,
                                (guint)(tensor->data.end - tensor->data.at));
    }
    if (field->type == MTF_WIRE_VARINT)
        mtf_wire_put_bare(tensor->copy, field->value);
    else if (field->type == MTF_WIRE_BYTES)
        g_byte_array_append(tensor->copy, field->bytes.at,
                            (guint)(field->bytes.end - field->bytes.at));
    else
        append_fixed(tensor->copy, field->value, field->type == MTF_WIRE_FIXED32 ? 4 : 8);
    tensor->data = (MtfWire){ tensor->copy->data, tensor->copy->data + tensor->copy->len, false };
    return true;
}

/* {"location": "weights.bin", "offset": "4096", "length": "1024"}, an entry. */
static bool read_external(MtfOnnxTensor *tensor, MtfWire entry) {
    g_autofree char *key = NULL, *value = NULL;
    MtfWireField field;
    while (mtf_wire_next(&entry, &field)) {
        if (field.type != MTF_WIRE_BYTES || field.number > 2)
            continue;
        char **text = field.number == 1 ? &key : &value;
        g_free(*text);
        *text = mtf_wire_string(&field.bytes);
    }
    if (entry.broken || key == NULL || value == NULL)
        return false;
    if (strcmp(key, "location") == 0) {
        g_free(tensor->location);
        tensor->location = g_steal_pointer(&value);
        return *tensor->location != '\0';
    }
    int64_t *number = strcmp(key, "offset") == 0   ? &tensor->offset
                      : strcmp(key, "length") == 0 ? &tensor->length
                                                   : NULL;
    return number == NULL || g_ascii_string_to_signed(value, 10, 0, MOST, number, NULL);
}

static bool read_field(MtfOnnxTensor *tensor, const MtfWireField *field) {
    bool bytes = field->type == MTF_WIRE_BYTES;
    switch (field->number) {
    case DIMS:
        return read_dims(tensor, field);
    case DATA_TYPE:
        tensor->type = (int)MIN(field->value, INT32_MAX);
        return field->type == MTF_WIRE_VARINT;
    case NAME:
        if (!bytes)
            return false;
        g_free(tensor->name);
        tensor->name = mtf_wire_string(&field->bytes);
        return true;
    case FLOAT_DATA:
    case INT32_DATA:
    case INT64_DATA:
    case RAW_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        return add_data(tensor, field);
    case EXTERNAL_DATA:
        return bytes && read_external(tensor, field->bytes);
    default:
        return true;
    }
}

static int64_t count_varints(MtfWire data) {
    int64_t n = 0;
    for (; data.at < data.end; data.at++)
        n += *data.at < 0x80;
    return n;
}

/* How many elements the data are. */
static int64_t held(const MtfOnnxTensor *tensor) {
    int64_t bytes = tensor->data.end - tensor->data.at;
    switch (tensor->field) {
    case RAW_DATA:
        return bytes % MAX(1, mtf_onnx_type_bytes(tensor->type)) == 0
                   ? bytes / MAX(1, mtf_onnx_type_bytes(tensor->type))
                   : -1;
    case FLOAT_DATA:
        return bytes % 4 == 0 ? bytes / 4 : -1;
    case DOUBLE_DATA:
        return bytes % 8 == 0 ? bytes / 8 : -1;
    case INT32_DATA:
    case INT64_DATA:
    case UINT64_DATA:
        return count_varints(tensor->data);
    default:
        return 0;
    }
}

static bool count_elements(MtfOnnxTensor *tensor) {
    tensor->elements = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] < 0 ||
            (tensor->dims[i] > 0 && tensor->elements > MOST / tensor->dims[i]))
            return false;
        tensor->elements *= tensor->dims[i];
    }
    return true;
}

static bool check(const char *where, MtfOnnxTensor *tensor, GError **error) {
    if (!count_elements(tensor))
        return fail(where, tensor, error,
                    "has sizes that are negative, or whose product exceeds 2^53");
    if (tensor->location != NULL || mtf_onnx_type_bytes(tensor->type) == 0)
        return true;
    if (tensor->field != 0 && tensor->field != RAW_DATA &&
        tensor->field != types[tensor->type].field)
        return fail(where, tensor, error, "keeps its elements where its type does not have them");
    int64_t n = held(tensor);
    return n == tensor->elements ||
           mtf_input_error(
               error, "%s: tensor \"%s\" should have %" PRId64 " elements and holds %" PRId64,
               where, tensor->name != NULL ? tensor->name : "", tensor->elements, MAX(n, 0));
}

bool mtf_onnx_tensor_read(MtfWire message, const char *where, MtfOnnxTensor *tensor,
                          GError **error) {
    MtfWireField field;
    bool good = true;
    *tensor = (MtfOnnxTensor){ .length = -1 };
    while (good && mtf_wire_next(&message, &field))
        good = read_field(tensor, &field);
    if (!good || message.broken)
        return fail(where, tensor, error, "is broken: its bytes are no TensorProto");
    if (tensor->name == NULL)
        tensor->name = g_strdup("");
    return check(where, tensor, error);
}

void mtf_onnx_tensor_clear(MtfOnnxTensor *tensor) {
    g_free(tensor->name);
    g_free(tensor->location);
    if (tensor->copy != NULL)
        g_byte_array_unref(tensor->copy);
    *tensor = (MtfOnnxTensor){ 0 };
}

/* ---- Elements -------------------------------------------------------------------------------- */

static double from_half(uint64_t bits) {
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25));
}

static double from_float_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double from_double_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The number that the bits of a type are. */
static double from_bits(int type, uint64_t bits) {
    switch (type) {
    case MTF_ONNX_FLOAT:
        return from_float_bits((uint32_t)bits);
    case MTF_ONNX_DOUBLE:
        return from_double_bits(bits);
    case MTF_ONNX_FLOAT16:
        return from_half(bits);
    case MTF_ONNX_BFLOAT16:
        return from_float_bits((uint32_t)bits << 16);
    case MTF_ONNX_INT8:
        return (int8_t)bits;
    case MTF_ONNX_INT16:
        return (int16_t)bits;
    case MTF_ONNX_INT32:
        return (int32_t)bits;
    case MTF_ONNX_INT64:
        return (double)(int64_t)bits;
    default:
        return (double)bits;
    }
}

static bool is_varint_field(uint32_t field) {
    return field == INT32_DATA || field == INT64_DATA || field == UINT64_DATA;
}

void mtf_onnx_tensor_keep(MtfOnnxTensor *tensor, GByteArray *bytes) {
    if (tensor->copy != NULL)
        g_byte_array_unref(tensor->copy);
    tensor->copy = bytes;
    tensor->field = RAW_DATA;
    tensor->data = (MtfWire){ bytes->data, bytes->data + bytes->len, false };
}

bool mtf_onnx_tensor_is_plain(const MtfOnnxTensor *tensor) {
    return tensor->location != NULL ||
           (tensor->copy == NULL && tensor->field != 0 && !is_varint_field(tensor->field));
}

bool mtf_onnx_tensor_values(const MtfOnnxTensor *tensor, double *values) {
    int bytes = mtf_onnx_type_bytes(tensor->type);
    MtfWire data = tensor->data;
    if ((tensor->location != NULL && tensor->copy == NULL) || bytes == 0)
        return false;
    for (int64_t i = 0; i < tensor->elements; i++) {
        uint64_t bits = 0;
        if (is_varint_field(tensor->field))
            bits = mtf_wire_varint(&data);
        else
            for (int b = 0; b < bytes; b++)
                bits |= (uint64_t)*data.at++ << (8 * b);
        values[i] = from_bits(tensor->type, bits);
    }
    return true;
}
