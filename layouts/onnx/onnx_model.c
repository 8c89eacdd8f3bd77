// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/onnx/onnx_model.h"

#include "layouts/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What reading needs to know of the file. */
typedef struct {
    MtfOnnxModel *model;
    GError **error;
    int inner; /* how many nodes the graph lies in */
} Reader;

typedef bool (*ReadField)(const Reader *r, void *object, const MtfWireField *field);

static bool fail(const Reader *r, const char *sentence) {
    return mtf_input_error(r->error, "%s: %s", r->model->path, sentence);
}

/* Hands every field of a message to `read`; false, with an error, where it is broken. */
static bool read_message(const Reader *r, MtfWire message, void *object, ReadField read) {
    MtfWireField field;
    while (mtf_wire_next(&message, &field))
        if (!read(r, object, &field))
            return false;
    return !message.broken ||
           fail(r, "not an ONNX model: its bytes are cut off, or are no ModelProto");
}

/* Replaces a string; false, with an error, where the field holds none. */
static bool read_string(const Reader *r, const MtfWireField *field, char **text) {
    if (field->type != MTF_WIRE_BYTES)
        return fail(r, "not an ONNX model: a number stands where a name should be");
    g_free(*text);
    *text = mtf_wire_string(&field->bytes);
    return g_utf8_validate(*text, -1, NULL) || fail(r, "a name in it is not valid UTF-8 text");
}

static bool is_message(const Reader *r, const MtfWireField *field) {
    return field->type == MTF_WIRE_BYTES ||
           fail(r, "not an ONNX model: a number stands where a message should be");
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static void add_int(MtfOnnxAttribute *attribute, uint64_t value) {
    int64_t number = (int64_t)value;
    g_array_append_val(attribute->ints, number);
}

static void read_ints(MtfOnnxAttribute *attribute, const MtfWireField *field) {
    MtfWire list = field->bytes;
    if (field->type == MTF_WIRE_VARINT)
        add_int(attribute, field->value);
    while (field->type == MTF_WIRE_BYTES && list.at < list.end && !list.broken)
        add_int(attribute, mtf_wire_varint(&list));
}

static double float_of(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static void read_floats(MtfOnnxAttribute *attribute, const MtfWireField *field) {
    double value = float_of(field->value);
    if (field->type == MTF_WIRE_FIXED32)
        g_array_append_val(attribute->floats, value);
    if (field->type != MTF_WIRE_BYTES)
        return;
    for (const uint8_t *at = field->bytes.at; at + 4 <= field->bytes.end; at += 4) {
        value = float_of((uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
                         (uint64_t)at[3] << 24);
        g_array_append_val(attribute->floats, value);
    }
}

static void note_type(MtfOnnxAttribute *attribute, int type) {
    if (attribute->type == MTF_ONNX_ATTRIBUTE_NONE)
        attribute->type = type;
}

static bool read_tensor(const Reader *r, const MtfWireField *field, MtfOnnxTensor **tensor) {
    if (!is_message(r, field))
        return false;
    if (*tensor != NULL)
        mtf_onnx_tensor_clear(*tensor);
    else
        *tensor = g_new0(MtfOnnxTensor, 1);
    return mtf_onnx_tensor_read(field->bytes, r->model->path, *tensor, r->error);
}

/* A branch of a condition or the body of a loop. */
static bool read_inner_graph(const Reader *r, const MtfWireField *field, MtfOnnxModel **graph);

static bool read_attribute_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxAttribute *attribute = object;
    switch (field->number) {
    case 1:
        return read_string(r, field, &attribute->name);
    case 2:
        attribute->f = float_of(field->value);
        note_type(attribute, MTF_ONNX_ATTRIBUTE_FLOAT);
        return true;
    case 3:
        attribute->i = (int64_t)field->value;
        note_type(attribute, MTF_ONNX_ATTRIBUTE_INT);
        return true;
    case 4:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_STRING);
        return read_string(r, field, &attribute->s);
    case 5:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_TENSOR);
        return read_tensor(r, field, &attribute->t);
    case 6:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_GRAPH);
        return read_inner_graph(r, field, &attribute->g);
    case 11:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_GRAPH);
        return true;
    case 7:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_FLOATS);
        read_floats(attribute, field);
        return true;
    case 8:
        note_type(attribute, MTF_ONNX_ATTRIBUTE_INTS);
        read_ints(attribute, field);
        return true;
    case 9: {
        char *word = NULL;
        bool good = read_string(r, field, &word);
        if (word != NULL)
            g_ptr_array_add(attribute->strings, word);
        return good;
    }
    case 20:
        attribute->type = (int)MIN(field->value, 100);
        return true;
    default:
        return true;
    }
}

static void clear_attribute(gpointer data) {
    MtfOnnxAttribute *attribute = data;
    g_free(attribute->name);
    g_free(attribute->s);
    if (attribute->t != NULL)
        mtf_onnx_tensor_clear(attribute->t);
    g_free(attribute->t);
    g_array_unref(attribute->ints);
    g_array_unref(attribute->floats);
    g_ptr_array_unref(attribute->strings);
    mtf_onnx_model_free(attribute->g);
}

static bool read_attribute(const Reader *r, GArray *attributes, const MtfWireField *field) {
    if (!is_message(r, field))
        return false;
    MtfOnnxAttribute attribute = { .ints = g_array_new(FALSE, FALSE, sizeof(int64_t)),
                                   .floats = g_array_new(FALSE, FALSE, sizeof(double)),
                                   .strings = g_ptr_array_new_with_free_func(g_free) };
    g_array_append_val(attributes, attribute);
    MtfOnnxAttribute *kept = &g_array_index(attributes, MtfOnnxAttribute, attributes->len - 1);
    if (!read_message(r, field->bytes, kept, read_attribute_field))
        return false;
    return kept->name != NULL || fail(r, "not an ONNX model: an attribute has no name");
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static bool add_name(const Reader *r, GPtrArray *names, const MtfWireField *field) {
    char *name = NULL;
    bool good = read_string(r, field, &name);
    if (name != NULL)
        g_ptr_array_add(names, name);
    return good;
}

static bool read_node_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxNode *node = object;
    switch (field->number) {
    case 1:
        return add_name(r, node->inputs, field);
    case 2:
        return add_name(r, node->outputs, field);
    case 3:
        return read_string(r, field, &node->name);
    case 4:
        return read_string(r, field, &node->op);
    case 5:
        return read_attribute(r, node->attributes, field);
    case 7:
        return read_string(r, field, &node->domain);
    default:
        return true;
    }
}

static void free_node(gpointer data) {
    MtfOnnxNode *node = data;
    g_free(node->name);
    g_free(node->op);
    g_free(node->domain);
    g_ptr_array_unref(node->inputs);
    g_ptr_array_unref(node->outputs);
    g_array_unref(node->attributes);
    g_free(node);
}

static MtfOnnxNode *new_node(void) {
    MtfOnnxNode *node = g_new0(MtfOnnxNode, 1);
    node->name = g_strdup("");
    node->op = g_strdup("");
    node->domain = g_strdup("");
    node->inputs = g_ptr_array_new_with_free_func(g_free);
    node->outputs = g_ptr_array_new_with_free_func(g_free);
    node->attributes = g_array_new(FALSE, FALSE, sizeof(MtfOnnxAttribute));
    g_array_set_clear_func(node->attributes, clear_attribute);
    return node;
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

static bool read_size_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxSize *size = object;
    if (field->number == 1)
        size->size = (int64_t)field->value;
    return field->number != 2 || read_string(r, field, &size->name);
}

static bool read_shape_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxInput *input = object;
    if (field->number != 1)
        return true;
    if (!is_message(r, field))
        return false;
    if (input->rank == MTF_ONNX_MAX_RANK)
        return fail(r, "an input has more than 10 dimensions");
    MtfOnnxSize *size = &input->dims[input->rank++];
    *size = (MtfOnnxSize){ .size = -1 };
    return read_message(r, field->bytes, size, read_size_field);
}

static bool read_tensor_type_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxInput *input = object;
    if (field->number == 1)
        input->type = (int)MIN(field->value, INT32_MAX);
    if (field->number != 2)
        return true;
    for (int i = 0; i < input->rank; i++)
        g_clear_pointer(&input->dims[i].name, g_free);
    input->rank = 0;
    return is_message(r, field) && read_message(r, field->bytes, input, read_shape_field);
}

static bool read_type_field(const Reader *r, void *object, const MtfWireField *field) {
    return field->number != 1 ||
           (is_message(r, field) && read_message(r, field->bytes, object, read_tensor_type_field));
}

static bool read_input_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxInput *input = object;
    if (field->number == 1)
        return read_string(r, field, &input->name);
    return field->number != 2 ||
           (is_message(r, field) && read_message(r, field->bytes, input, read_type_field));
}

static void free_input(gpointer data) {
    MtfOnnxInput *input = data;
    for (int i = 0; i < input->rank; i++)
        g_free(input->dims[i].name);
    g_free(input->name);
    g_free(input);
}

static bool add_input(const Reader *r, GPtrArray *inputs, const MtfWireField *field) {
    MtfOnnxInput *input = g_new0(MtfOnnxInput, 1);
    input->rank = -1;
    g_ptr_array_add(inputs, input);
    if (!is_message(r, field) || !read_message(r, field->bytes, input, read_input_field))
        return false;
    return input->name != NULL || fail(r, "not an ONNX model: an input or output has no name");
}

/* ---- The model ------------------------------------------------------------------------------- */

static void free_tensor(gpointer data) {
    mtf_onnx_tensor_clear(data);
    g_free(data);
}

static bool add_initializer(const Reader *r, const MtfWireField *field) {
    MtfOnnxTensor *tensor = NULL;
    bool good = read_tensor(r, field, &tensor);
    if (tensor != NULL)
        g_ptr_array_add(r->model->initializers, tensor);
    return good;
}

static bool add_node(const Reader *r, const MtfWireField *field) {
    MtfOnnxNode *node = new_node();
    g_ptr_array_add(r->model->nodes, node);
    return is_message(r, field) && read_message(r, field->bytes, node, read_node_field);
}

static bool read_graph_field(const Reader *r, void *object, const MtfWireField *field) {
    MtfOnnxModel *model = object;
    switch (field->number) {
    case 1:
        return add_node(r, field);
    case 2:
        return read_string(r, field, &model->name);
    case 5:
        return add_initializer(r, field);
    case 11:
        return add_input(r, model->inputs, field);
    case 12:
        return add_input(r, model->outputs, field);
    case 15:
        return fail(r, "it has sparse initial values, which are not supported");
    default:
        return true;
    }
}

typedef struct {
    char *domain;
    int64_t version;
} Opset;

static bool read_opset_field(const Reader *r, void *object, const MtfWireField *field) {
    Opset *opset = object;
    if (field->number == 2)
        opset->version = (int64_t)field->value;
    return field->number != 1 || read_string(r, field, &opset->domain);
}

static bool read_opset(const Reader *r, const MtfWireField *field) {
    Opset opset = { 0 };
    bool good = is_message(r, field) && read_message(r, field->bytes, &opset, read_opset_field);
    if (opset.domain == NULL || *opset.domain == '\0' || strcmp(opset.domain, "ai.onnx") == 0)
        r->model->opset = opset.version;
    g_free(opset.domain);
    return good;
}

static bool read_model_field(const Reader *r, void *object, const MtfWireField *field) {
    switch (field->number) {
    case 7:
        return is_message(r, field) && read_message(r, field->bytes, object, read_graph_field);
    case 8:
        return read_opset(r, field);
    default:
        return true;
    }
}

static MtfOnnxModel *new_model(const char *path) {
    MtfOnnxModel *model = g_new0(MtfOnnxModel, 1);
    model->path = g_strdup(path);
    model->nodes = g_ptr_array_new_with_free_func(free_node);
    model->initializers = g_ptr_array_new_with_free_func(free_tensor);
    model->inputs = g_ptr_array_new_with_free_func(free_input);
    model->outputs = g_ptr_array_new_with_free_func(free_input);
    return model;
}

/* Graphs inside of graphs inside of … take room on our stack. */
#define MOST_INNER 16

static bool read_inner_graph(const Reader *r, const MtfWireField *field, MtfOnnxModel **graph) {
    if (!is_message(r, field))
        return false;
    if (*graph != NULL || r->inner >= MOST_INNER)
        return fail(r, "graphs lie too deep inside of nodes, or two in one attribute");
    *graph = new_model(r->model->path);
    (*graph)->begin = r->model->begin;
    Reader inner = { *graph, r->error, r->inner + 1 };
    return read_message(&inner, field->bytes, *graph, read_graph_field);
}

static bool read_model(MtfOnnxModel *model, const uint8_t *bytes, gsize length, GError **error) {
    Reader r = { model, error, 0 };
    model->begin = bytes;
    if (!read_message(&r, (MtfWire){ bytes, bytes + length, false }, model, read_model_field))
        return false;
    if (model->nodes->len == 0 && model->outputs->len == 0)
        return fail(&r, "not an ONNX model: it has no graph");
    return true;
}

/* ---- Files beside -------------------------------------------------------------------------- */

#define FEW_ELEMENTS 1024
#define MOST_BYTES (1 << 24)

/* What shapes, axes and places may come of: whole numbers, and a few of any type. */
static bool may_be_known(const MtfOnnxTensor *tensor) {
    int64_t most = MOST_BYTES / MAX(1, mtf_onnx_type_bytes(tensor->type));
    bool whole = mtf_onnx_type_is_integer(tensor->type) || tensor->type == MTF_ONNX_BOOL;
    return tensor->location != NULL && mtf_onnx_type_bytes(tensor->type) > 0 &&
           tensor->elements <= (whole ? most : FEW_ELEMENTS) &&
           !g_path_is_absolute(tensor->location) && strstr(tensor->location, "..") == NULL;
}

/* Its elements, where the file beside has them; a file that is not there is missed where weights are read. */
static void read_beside(const MtfOnnxModel *model, MtfOnnxTensor *tensor) {
    g_autofree char *folder = g_path_get_dirname(model->path);
    g_autofree char *path = g_build_filename(folder, tensor->location, NULL);
    gsize bytes = (gsize)tensor->elements * (gsize)mtf_onnx_type_bytes(tensor->type);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return;
    GByteArray *array = g_byte_array_new();
    g_byte_array_set_size(array, (guint)bytes);
    if (fseeko(file, tensor->offset, SEEK_SET) == 0 && fread(array->data, 1, bytes, file) == bytes)
        mtf_onnx_tensor_keep(tensor, array);
    else
        g_byte_array_unref(array);
    fclose(file);
}

MtfOnnxModel *mtf_onnx_model_parse(const char *path, const uint8_t *bytes, gsize length,
                                   GError **error) {
    g_autoptr(MtfOnnxModel) model = new_model(path);
    return read_model(model, bytes, length, error) ? g_steal_pointer(&model) : NULL;
}

MtfOnnxModel *mtf_onnx_model_load(const char *path, GError **error) {
    g_autoptr(MtfOnnxModel) model = new_model(path);
    GError *cause = NULL;
    if (access(path, R_OK) != 0) {
        mtf_input_error(error, "%s: cannot be opened: %s", path, g_strerror(errno));
        return NULL;
    }
    model->map = g_mapped_file_new(path, FALSE, &cause);
    if (model->map == NULL) {
        mtf_input_error(error, "%s cannot be read: %s", path, cause->message);
        g_error_free(cause);
        return NULL;
    }
    const uint8_t *bytes = (const uint8_t *)g_mapped_file_get_contents(model->map);
    if (!read_model(model, bytes, g_mapped_file_get_length(model->map), error))
        return NULL;
    for (guint i = 0; i < model->initializers->len; i++)
        if (may_be_known(model->initializers->pdata[i]))
            read_beside(model, model->initializers->pdata[i]);
    return g_steal_pointer(&model);
}

void mtf_onnx_model_free(MtfOnnxModel *model) {
    if (model == NULL)
        return;
    g_ptr_array_unref(model->nodes);
    g_ptr_array_unref(model->initializers);
    g_ptr_array_unref(model->inputs);
    g_ptr_array_unref(model->outputs);
    g_free(model->name);
    g_free(model->path);
    if (model->map != NULL)
        g_mapped_file_unref(model->map);
    g_free(model);
}

bool mtf_onnx_is_path(const char *path) {
    return g_str_has_suffix(path, ".onnx");
}

const MtfOnnxAttribute *mtf_onnx_attribute(const MtfOnnxNode *node, const char *name) {
    for (guint i = 0; i < node->attributes->len; i++) {
        const MtfOnnxAttribute *attribute = &g_array_index(node->attributes, MtfOnnxAttribute, i);
        if (strcmp(attribute->name, name) == 0)
            return attribute;
    }
    return NULL;
}
