// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/onnx_maker.h"

#include <string.h>

static void put_inner(GByteArray *message, uint32_t field, GByteArray *inner) {
    mtf_wire_put_message(message, field, inner);
    g_byte_array_unref(inner);
}

static GByteArray *shape_of(const char *sizes) {
    GByteArray *shape = g_byte_array_new();
    g_auto(GStrv) parts = g_strsplit(sizes, ",", -1);
    for (char **part = parts; *part != NULL; part++) {
        GByteArray *dim = g_byte_array_new();
        if (g_ascii_isdigit(**part))
            mtf_wire_put_varint(dim, 1, g_ascii_strtoull(*part, NULL, 10));
        else if (strcmp(*part, "?") != 0)
            mtf_wire_put_string(dim, 2, *part);
        put_inner(shape, 1, dim);
    }
    return shape;
}

void mtf_make_input(GByteArray *graph, uint32_t field, const char *name, int type,
                    const char *sizes) {
    GByteArray *info = g_byte_array_new(), *outer = g_byte_array_new(),
               *tensor = g_byte_array_new();
    mtf_wire_put_varint(tensor, 1, (uint64_t)type);
    put_inner(tensor, 2, shape_of(sizes));
    put_inner(outer, 1, tensor);
    mtf_wire_put_string(info, 1, name);
    put_inner(info, 2, outer);
    put_inner(graph, field, info);
}

static void put_element(GByteArray *raw, int type, double value) {
    float single = (float)value;
    int64_t whole = (int64_t)value;
    if (type == MTF_ONNX_FLOAT)
        g_byte_array_append(raw, (const guint8 *)&single, sizeof single);
    else
        g_byte_array_append(raw, (const guint8 *)&whole, (guint)mtf_onnx_type_bytes(type));
}

void mtf_make_tensor(GByteArray *graph, const char *name, int type, const char *sizes,
                     const double *values) {
    GByteArray *tensor = g_byte_array_new(), *raw = g_byte_array_new();
    g_auto(GStrv) parts = g_strsplit(sizes, ",", -1);
    int64_t n = 1;
    for (char **part = parts; *part != NULL; part++) {
        n *= g_ascii_strtoll(*part, NULL, 10);
        mtf_wire_put_varint(tensor, 1, g_ascii_strtoull(*part, NULL, 10));
    }
    for (int64_t i = 0; i < n; i++)
        put_element(raw, type, values[i]);
    mtf_wire_put_varint(tensor, 2, (uint64_t)type);
    mtf_wire_put_string(tensor, 8, name);
    put_inner(tensor, 9, raw);
    put_inner(graph, 5, tensor);
}

static void put_names(GByteArray *node, uint32_t field, const char *names) {
    g_auto(GStrv) parts = g_strsplit(names, ",", -1);
    for (char **part = parts; *part != NULL; part++)
        mtf_wire_put_string(node, field, *part);
}

static GByteArray *attribute_of(const char *text) {
    GByteArray *attribute = g_byte_array_new();
    g_auto(GStrv) parts = g_strsplit(text, "=", 2);
    g_auto(GStrv) values = g_strsplit(parts[1], ",", -1);
    mtf_wire_put_string(attribute, 1, parts[0]);
    if (strchr(parts[1], '.') != NULL) {
        mtf_wire_put_float(attribute, 2, (float)g_ascii_strtod(parts[1], NULL));
        mtf_wire_put_varint(attribute, 20, 1);
    } else if (!g_ascii_isdigit(*parts[1]) && *parts[1] != '-') {
        mtf_wire_put_string(attribute, 4, parts[1]);
        mtf_wire_put_varint(attribute, 20, 3);
    } else {
        bool list = values[1] != NULL;
        for (char **value = values; *value != NULL; value++)
            mtf_wire_put_varint(attribute, list ? 8 : 3,
                                (uint64_t)g_ascii_strtoll(*value, NULL, 10));
        mtf_wire_put_varint(attribute, 20, list ? 7 : 2);
    }
    return attribute;
}

/* The node without attributes. */
static GByteArray *node_of(const char *op, const char *inputs, const char *outputs) {
    GByteArray *node = g_byte_array_new();
    put_names(node, 1, inputs);
    put_names(node, 2, outputs);
    mtf_wire_put_string(node, 4, op);
    return node;
}

void mtf_make_node(GByteArray *graph, const char *op, const char *inputs, const char *outputs,
                   const char *attributes) {
    GByteArray *node = node_of(op, inputs, outputs);
    g_auto(GStrv) parts = g_strsplit(attributes, " ", -1);
    for (char **part = parts; *part != NULL; part++)
        if (**part != '\0')
            put_inner(node, 5, attribute_of(*part));
    put_inner(graph, 1, node);
}

/* "x: int64 batch,8" of field 11 or 12. */
static void make_value(GByteArray *graph, uint32_t field, const char *text) {
    g_auto(GStrv) halves = g_strsplit(text, ": ", 2);
    const char *sizes = strchr(halves[1], ' ');
    int type = g_str_has_prefix(halves[1], "int64 ")  ? MTF_ONNX_INT64
               : g_str_has_prefix(halves[1], "bool ") ? MTF_ONNX_BOOL
                                                      : MTF_ONNX_FLOAT;
    mtf_make_input(graph, field, halves[0], type, sizes != NULL ? sizes + 1 : halves[1]);
}

/* "y = Softmax(x) axis=1". */
static void make_call(GByteArray *graph, const char *text) {
    g_auto(GStrv) halves = g_strsplit(text, " = ", 2);
    g_auto(GStrv) call = g_strsplit(halves[1], "(", 2);
    g_auto(GStrv) rest = g_strsplit(call[1], ")", 2);
    mtf_make_node(graph, call[0], rest[0], halves[0], g_strchug(rest[1]));
}

void mtf_make(GByteArray *graph, const char *text) {
    g_auto(GStrv) lines = g_strsplit(text, "; ", -1);
    for (char **line = lines; *line != NULL; line++) {
        bool output = g_str_has_prefix(*line, "-> ");
        if (strstr(*line, " = ") != NULL)
            make_call(graph, *line);
        else
            make_value(graph, output ? 12 : 11, *line + (output ? 3 : 0));
    }
}

void mtf_make_weight(GByteArray *graph, const char *name, int64_t rows, int64_t columns) {
    g_autofree double *values = g_new0(double, rows *columns);
    g_autofree char *sizes = g_strdup_printf("%d,%d", (int)rows, (int)columns);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (double)(i % 7);
    mtf_make_tensor(graph, name, MTF_ONNX_FLOAT, sizes, values);
}

static GByteArray *attribute_around(const char *name, GByteArray *inner) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    put_inner(attribute, 6, inner);
    mtf_wire_put_varint(attribute, 20, 5);
    return attribute;
}

void mtf_make_node_around(GByteArray *graph, const char *op, const char *inputs,
                          const char *outputs, const char *names, GByteArray *const *inner) {
    GByteArray *node = node_of(op, inputs, outputs);
    g_auto(GStrv) graphs = g_strsplit(names, ",", -1);
    for (int i = 0; graphs[i] != NULL; i++)
        put_inner(node, 5, attribute_around(graphs[i], inner[i]));
    put_inner(graph, 1, node);
}

GByteArray *mtf_make_model(GByteArray *graph, int opset) {
    GByteArray *model = g_byte_array_new(), *version = g_byte_array_new();
    mtf_wire_put_varint(model, 1, 8);
    mtf_wire_put_varint(version, 2, (uint64_t)opset);
    put_inner(model, 8, version);
    put_inner(model, 7, graph);
    return model;
}

MtfGraph *mtf_make_import(GByteArray *graph, const MtfOnnxImport *request, GError **error) {
    g_autoptr(GByteArray) bytes = mtf_make_model(graph, 17);
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_parse("m.onnx", bytes->data, bytes->len, error);
    return model == NULL ? NULL : mtf_onnx_import(model, request, NULL, error);
}

const char *mtf_make_format(const MtfGraph *graph, const char *tensor) {
    static char *text;
    g_free(text);
    int t = mtf_graph_find_tensor(graph, tensor);
    g_assert_cmpint(t, >=, 0);
    return text = mtf_graph_tensor_format(graph, t);
}
