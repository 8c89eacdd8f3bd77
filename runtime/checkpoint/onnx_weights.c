// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/onnx_weights.h"

#include "layouts/base/error.h"
#include "layouts/onnx/onnx_model.h"
#include "runtime/support/agreement.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
    int onnx;
    MtfStoredType stored;
} types[] = {
    { MTF_ONNX_FLOAT, MTF_STORED_F32 },   { MTF_ONNX_DOUBLE, MTF_STORED_F64 },
    { MTF_ONNX_FLOAT16, MTF_STORED_F16 }, { MTF_ONNX_BFLOAT16, MTF_STORED_BF16 },
    { MTF_ONNX_INT64, MTF_STORED_I64 },   { MTF_ONNX_INT32, MTF_STORED_I32 },
    { MTF_ONNX_INT16, MTF_STORED_I16 },   { MTF_ONNX_INT8, MTF_STORED_I8 },
    { MTF_ONNX_UINT8, MTF_STORED_U8 },    { MTF_ONNX_BOOL, MTF_STORED_BOOL },
};

static bool find_type(int onnx, MtfStoredType *type) {
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        if (types[i].onnx != onnx)
            continue;
        *type = types[i].stored;
        return true;
    }
    return false;
}

/* The folder's file of that path; a new one has no tensors yet. */
static MtfPublishedFile *file_of(MtfPublishedFolder *folder, const char *path) {
    for (guint i = 0; i < folder->files->len; i++) {
        MtfPublishedFile *file = folder->files->pdata[i];
        if (strcmp(file->path, path) == 0)
            return file;
    }
    return mtf_published_folder_add(folder, path, mtf_safetensors_new());
}

/* The path of a file beside the model; NULL with an error for one elsewhere. Free with g_free. */
static char *beside(const MtfOnnxModel *model, const MtfOnnxTensor *tensor, GError **error) {
    if (g_path_is_absolute(tensor->location) || strstr(tensor->location, "..") != NULL) {
        mtf_input_error(error, "%s: tensor \"%s\" is in \"%s\", which is not beside the model",
                        model->path, tensor->name, tensor->location);
        return NULL;
    }
    g_autofree char *folder = g_path_get_dirname(model->path);
    return g_build_filename(folder, tensor->location, NULL);
}

static bool check_bytes(const MtfOnnxModel *model, const MtfOnnxTensor *tensor, const char *path,
                        int64_t bytes, GError **error) {
    struct stat status;
    if (stat(path, &status) != 0)
        return mtf_input_error(error, "%s: tensor \"%s\" is in %s, which cannot be read",
                               model->path, tensor->name, path);
    bool fits = tensor->length < 0 || tensor->length == bytes;
    return (fits && tensor->offset <= (int64_t)status.st_size - bytes) ||
           mtf_input_error(error, "%s: tensor \"%s\" does not fit into %s", model->path,
                           tensor->name, path);
}

/* Notes where a tensor lies. */
static bool add(MtfPublishedFolder *folder, const MtfOnnxModel *model, const MtfOnnxTensor *tensor,
                GError **error) {
    MtfStoredType type;
    if (!find_type(tensor->type, &type) || !mtf_onnx_tensor_is_plain(tensor) ||
        g_hash_table_contains(folder->names, tensor->name))
        return true;
    int64_t bytes = tensor->elements * mtf_stored_type_bytes(type);
    int64_t begin = tensor->location != NULL ? tensor->offset : tensor->data.at - model->begin;
    g_autofree char *path =
        tensor->location != NULL ? beside(model, tensor, error) : g_strdup(model->path);
    if (path == NULL ||
        (tensor->location != NULL && !check_bytes(model, tensor, path, bytes, error)))
        return false;
    MtfPublishedFile *file = file_of(folder, path);
    mtf_safetensors_add(file->file, tensor->name, type, tensor->rank, tensor->dims);
    MtfStoredTensor *stored =
        &g_array_index(file->file->tensors, MtfStoredTensor, file->file->tensors->len - 1);
    stored->begin = begin;
    stored->end = begin + bytes;
    g_hash_table_insert(folder->names, stored->name, file);
    return true;
}

static bool add_all(MtfPublishedFolder *folder, const MtfOnnxModel *model, GError **error);

/* Those of branches and bodies. */
static bool add_inner(MtfPublishedFolder *folder, const MtfOnnxNode *node, GError **error) {
    for (guint i = 0; i < node->attributes->len; i++) {
        const MtfOnnxAttribute *attribute = &g_array_index(node->attributes, MtfOnnxAttribute, i);
        if (attribute->g != NULL && !add_all(folder, attribute->g, error))
            return false;
    }
    return true;
}

static bool add_all(MtfPublishedFolder *folder, const MtfOnnxModel *model, GError **error) {
    for (guint i = 0; i < model->initializers->len; i++)
        if (!add(folder, model, model->initializers->pdata[i], error))
            return false;
    for (guint i = 0; i < model->nodes->len; i++) {
        const MtfOnnxNode *node = model->nodes->pdata[i];
        const MtfOnnxAttribute *value = mtf_onnx_attribute(node, "value");
        if (!add_inner(folder, node, error))
            return false;
        if (value == NULL || value->t == NULL || node->outputs->len == 0)
            continue;
        if (*value->t->name == '\0') { /* called as what the node makes */
            g_free(value->t->name);
            value->t->name = g_strdup(node->outputs->pdata[0]);
        }
        if (!add(folder, model, value->t, error))
            return false;
    }
    return true;
}

MtfPublishedFolder *mtf_onnx_weights_open(MPI_Comm control, const char *path, GError **error) {
    g_autoptr(MtfPublishedFolder) folder = mtf_published_folder_new(path);
    GError *local = NULL;
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_load(path, &local);
    if (model != NULL)
        add_all(folder, model, &local);
    return mtf_agree(control, local, error) ? g_steal_pointer(&folder) : NULL;
}
