// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/safetensors.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/base/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LENGTH_BYTES 8
#define ALIGNMENT 8
#define METADATA "__metadata__"

static const struct {
    const char *name;
    int64_t bytes;
} types[MTF_STORED_TYPES] = {
    [MTF_STORED_F64] = { "F64", 8 },         [MTF_STORED_F32] = { "F32", 4 },
    [MTF_STORED_F16] = { "F16", 2 },         [MTF_STORED_BF16] = { "BF16", 2 },
    [MTF_STORED_I64] = { "I64", 8 },         [MTF_STORED_I32] = { "I32", 4 },
    [MTF_STORED_I16] = { "I16", 2 },         [MTF_STORED_I8] = { "I8", 1 },
    [MTF_STORED_U64] = { "U64", 8 },         [MTF_STORED_U32] = { "U32", 4 },
    [MTF_STORED_U16] = { "U16", 2 },         [MTF_STORED_U8] = { "U8", 1 },
    [MTF_STORED_BOOL] = { "BOOL", 1 },       [MTF_STORED_F8_E4M3] = { "F8_E4M3", 1 },
    [MTF_STORED_F8_E5M2] = { "F8_E5M2", 1 },
};

const char *mtf_stored_type_name(MtfStoredType type) {
    return types[type].name;
}

int64_t mtf_stored_type_bytes(MtfStoredType type) {
    return types[type].bytes;
}

static void clear_tensor(gpointer data) {
    MtfStoredTensor *tensor = data;
    g_free(tensor->name);
    g_free(tensor->dims);
}

MtfSafetensors *mtf_safetensors_new(void) {
    MtfSafetensors *file = g_new0(MtfSafetensors, 1);
    file->tensors = g_array_new(FALSE, TRUE, sizeof(MtfStoredTensor));
    g_array_set_clear_func(file->tensors, clear_tensor);
    file->indexes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    file->metadata = cJSON_CreateObject();
    return file;
}

void mtf_safetensors_free(MtfSafetensors *file) {
    if (file == NULL)
        return;
    g_array_unref(file->tensors);
    g_hash_table_unref(file->indexes);
    cJSON_Delete(file->metadata);
    g_free(file);
}

const MtfStoredTensor *mtf_safetensors_find(const MtfSafetensors *file, const char *name) {
    int index = GPOINTER_TO_INT(g_hash_table_lookup(file->indexes, name)) - 1;
    return index < 0 ? NULL : &g_array_index(file->tensors, MtfStoredTensor, index);
}

const char *mtf_safetensors_get(const MtfSafetensors *file, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file->metadata, key));
}

/* Takes the tensor's name and dims. */
static void append(MtfSafetensors *file, const MtfStoredTensor *tensor) {
    g_array_append_val(file->tensors, *tensor);
    g_hash_table_insert(file->indexes, g_strdup(tensor->name),
                        GINT_TO_POINTER((int)file->tensors->len));
}

void mtf_safetensors_add(MtfSafetensors *file, const char *name, MtfStoredType type, int rank,
                         const int64_t *dims) {
    MtfStoredTensor tensor = { .name = g_strdup(name),
                               .type = type,
                               .rank = rank,
                               .dims = g_memdup2(dims, sizeof *dims * (gsize)rank),
                               .begin = file->data_bytes };
    int64_t bytes = types[type].bytes;
    for (int i = 0; i < rank; i++)
        bytes *= dims[i];
    tensor.end = tensor.begin + bytes;
    file->data_bytes = tensor.end;
    append(file, &tensor);
}

char *mtf_stored_dims_format(const int64_t *dims, int rank) {
    GString *text = g_string_new("[");
    for (int i = 0; i < rank; i++)
        g_string_append_printf(text, "%s%" PRId64, i > 0 ? ", " : "", dims[i]);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static cJSON *print_tensor(const MtfStoredTensor *tensor) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "dtype", types[tensor->type].name);
    cJSON *shape = cJSON_AddArrayToObject(object, "shape");
    for (int i = 0; i < tensor->rank; i++)
        cJSON_AddItemToArray(shape, mtf_json_new_integer(tensor->dims[i]));
    cJSON *offsets = cJSON_AddArrayToObject(object, "data_offsets");
    cJSON_AddItemToArray(offsets, mtf_json_new_integer(tensor->begin));
    cJSON_AddItemToArray(offsets, mtf_json_new_integer(tensor->end));
    return object;
}

/* A header's text behind its length, filled with spaces so that the data behind it is aligned. */
static char *with_length(const char *text, gsize *length) {
    gsize used = strlen(text);
    gsize padded = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    guint64 n = GUINT64_TO_LE((guint64)padded);
    *length = LENGTH_BYTES + padded;
    char *bytes = g_malloc(*length);
    memcpy(bytes, &n, LENGTH_BYTES);
    memcpy(bytes + LENGTH_BYTES, text, used);
    memset(bytes + LENGTH_BYTES + used, ' ', padded - used);
    return bytes;
}

char *mtf_safetensors_print(const MtfSafetensors *file, gsize *length) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, METADATA, cJSON_Duplicate(file->metadata, 1));
    for (guint i = 0; i < file->tensors->len; i++) {
        const MtfStoredTensor *tensor = &g_array_index(file->tensors, MtfStoredTensor, i);
        cJSON_AddItemToObject(root, tensor->name, print_tensor(tensor));
    }
    char *text = cJSON_PrintUnformatted(root);
    char *bytes = with_length(text, length);
    cJSON_free(text);
    cJSON_Delete(root);
    return bytes;
}

/* ---- Reading ------------------------------------------------------------------------------- */

static bool read_type(const MtfJson *object, MtfStoredType *type, GError **error) {
    MtfJson dtype;
    const char *text;
    if (!mtf_json_get(object, "dtype", &dtype, error) || !mtf_json_string(&dtype, &text, error))
        return false;
    for (int i = 0; i < MTF_STORED_TYPES; i++)
        if (strcmp(text, types[i].name) == 0) {
            *type = (MtfStoredType)i;
            return true;
        }
    return mtf_json_fail(&dtype, error, "\"%s\" is not a type of safetensors files", text);
}

/* The sizes, and the bytes they come to. */
static bool read_shape(const MtfJson *object, MtfStoredTensor *tensor, int64_t *bytes,
                       GError **error) {
    MtfJson shape, item;
    if (!mtf_json_get_array(object, "shape", &shape, error))
        return false;
    tensor->dims = g_new(int64_t, mtf_json_length(&shape) + 1);
    *bytes = types[tensor->type].bytes;
    for (bool more = mtf_json_first(&shape, &item); more; more = mtf_json_next(&item)) {
        int64_t *size = &tensor->dims[tensor->rank++];
        if (!mtf_json_integer(&item, 0, MTF_JSON_MAX_INTEGER, size, error))
            return false;
        if (__builtin_mul_overflow(*bytes, *size, bytes))
            return mtf_json_fail(&shape, error, "the tensor has more than 2^63 bytes");
    }
    return true;
}

static bool read_offsets(const MtfJson *object, MtfStoredTensor *tensor, int64_t bytes,
                         GError **error) {
    MtfJson offsets, item;
    int64_t bounds[2];
    int n = 0;
    if (!mtf_json_get_array(object, "data_offsets", &offsets, error))
        return false;
    if (mtf_json_length(&offsets) != 2)
        return mtf_json_fail(&offsets, error, "there should be two offsets, begin and end");
    for (bool more = mtf_json_first(&offsets, &item); more; more = mtf_json_next(&item))
        if (!mtf_json_integer(&item, 0, MTF_JSON_MAX_INTEGER, &bounds[n++], error))
            return false;
    if (bounds[1] - bounds[0] != bytes)
        return mtf_json_fail(&offsets, error,
                             "the tensor has %" PRId64 " bytes, but its shape asks for %" PRId64,
                             bounds[1] - bounds[0], bytes);
    tensor->begin = bounds[0];
    tensor->end = bounds[1];
    return true;
}

static bool read_tensor(const MtfJson *object, MtfSafetensors *file, GError **error) {
    static const char *const keys[] = { "dtype", "shape", "data_offsets", NULL };
    MtfStoredTensor tensor = { 0 };
    int64_t bytes;
    if (!mtf_json_object(object, error) || !mtf_json_keys(object, keys, error) ||
        !read_type(object, &tensor.type, error) || !read_shape(object, &tensor, &bytes, error) ||
        !read_offsets(object, &tensor, bytes, error)) {
        g_free(tensor.dims);
        return false;
    }
    tensor.name = g_strdup(mtf_json_key(object));
    g_array_append_val(file->tensors, tensor);
    return true;
}

static bool read_metadata(const MtfJson *object, MtfSafetensors *file, GError **error) {
    MtfJson item;
    const char *text;
    if (!mtf_json_object(object, error))
        return false;
    for (bool more = mtf_json_first(object, &item); more; more = mtf_json_next(&item)) {
        if (!mtf_json_string(&item, &text, error))
            return false;
        cJSON_AddStringToObject(file->metadata, mtf_json_key(&item), text);
    }
    return true;
}

static bool read_members(const MtfJson *root, MtfSafetensors *file, GError **error) {
    MtfJson member;
    if (!mtf_json_object(root, error))
        return false;
    for (bool more = mtf_json_first(root, &member); more; more = mtf_json_next(&member)) {
        bool is_metadata = strcmp(mtf_json_key(&member), METADATA) == 0;
        if (!(is_metadata ? read_metadata : read_tensor)(&member, file, error))
            return false;
    }
    return true;
}

static int compare_places(gconstpointer left, gconstpointer right) {
    const MtfStoredTensor *a = left;
    const MtfStoredTensor *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* The tensors follow one another from the first byte of the data to the last. */
static bool settle(const char *name, MtfSafetensors *file, int64_t data_bytes, GError **error) {
    g_array_sort(file->tensors, compare_places);
    for (guint i = 0; i < file->tensors->len; i++) {
        const MtfStoredTensor *tensor = &g_array_index(file->tensors, MtfStoredTensor, i);
        if (tensor->begin != file->data_bytes)
            return mtf_input_error(error,
                                   "%s: tensor \"%s\" begins at byte %" PRId64
                                   " of the data, but the one before it ends at %" PRId64,
                                   name, tensor->name, tensor->begin, file->data_bytes);
        file->data_bytes = tensor->end;
        g_hash_table_insert(file->indexes, g_strdup(tensor->name), GINT_TO_POINTER((int)i + 1));
    }
    if (file->data_bytes == data_bytes)
        return true;
    return mtf_input_error(error,
                           "%s: the header speaks of %" PRId64 " bytes of data, but there are "
                           "%" PRId64 "%s",
                           name, file->data_bytes, data_bytes,
                           data_bytes < file->data_bytes ? ": the file is cut short" : "");
}

MtfSafetensors *mtf_safetensors_parse(const char *name, const char *header, gsize length,
                                      int64_t file_bytes, GError **error) {
    g_autoptr(MtfSafetensors) file = mtf_safetensors_new();
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse(name, header + LENGTH_BYTES, length - LENGTH_BYTES, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    if (!read_members(&root, file, error) ||
        !settle(name, file, file_bytes - (int64_t)length, error))
        return NULL;
    return g_steal_pointer(&file);
}

/* The length of the header, from the first eight bytes. */
static bool read_length(const char *path, FILE *stream, int64_t file_bytes, gsize *length,
                        GError **error) {
    guint64 n;
    if (fread(&n, 1, sizeof n, stream) != sizeof n)
        return mtf_input_error(error, "%s: %" PRId64 " bytes are too few for a safetensors file",
                               path, file_bytes);
    n = GUINT64_FROM_LE(n);
    if (n > (guint64)MTF_SAFETENSORS_MAX_HEADER)
        return mtf_input_error(
            error, "%s: not a safetensors file (its header would have %" PRIu64 " bytes)", path, n);
    if ((int64_t)n > file_bytes - LENGTH_BYTES)
        return mtf_input_error(error, "%s: the file is cut short within its header", path);
    *length = (gsize)n + LENGTH_BYTES;
    return true;
}

char *mtf_safetensors_read(const char *path, gsize *length, int64_t *file_bytes, GError **error) {
    struct stat status;
    g_autofree char *header = NULL;
    FILE *stream = fopen(path, "rbe");
    if (stream == NULL || fstat(fileno(stream), &status) != 0) {
        mtf_input_error(error, "%s: cannot be opened: %s", path, g_strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        mtf_input_error(error, "%s: not a regular file", path);
    } else if (read_length(path, stream, status.st_size, length, error)) {
        *file_bytes = status.st_size;
        header = g_malloc(*length);
        rewind(stream);
        if (fread(header, 1, *length, stream) != *length) {
            mtf_input_error(error, "%s: cannot be read", path);
            g_clear_pointer(&header, g_free);
        }
    }
    if (stream != NULL)
        fclose(stream);
    return g_steal_pointer(&header);
}
