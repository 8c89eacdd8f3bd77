// SPDX-License-Identifier: GPL-3.0-or-later
/* The header of a safetensors file: the tensors it holds, their types and shapes, and where they lie.
 *
 *     8 bytes   N, little-endian
 *     N bytes   {"__metadata__": {"step": "100"},
 *                "w1": {"dtype": "F32", "shape": [64, 10], "data_offsets": [0, 2560]}, …}   spaces
 *     the rest  the tensors, row-major and little-endian, one after another without holes
 *
 * Offsets count from the end of the header. Nothing here touches the data. */
#ifndef MTF_SAFETENSORS_H
#define MTF_SAFETENSORS_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest header that readers of the format accept. */
#define MTF_SAFETENSORS_MAX_HEADER INT64_C(100000000)

typedef enum {
    MTF_STORED_F64,
    MTF_STORED_F32,
    MTF_STORED_F16,
    MTF_STORED_BF16,
    MTF_STORED_I64,
    MTF_STORED_I32,
    MTF_STORED_I16,
    MTF_STORED_I8,
    MTF_STORED_U64,
    MTF_STORED_U32,
    MTF_STORED_U16,
    MTF_STORED_U8,
    MTF_STORED_BOOL,
    MTF_STORED_F8_E4M3,
    MTF_STORED_F8_E5M2,
    MTF_STORED_TYPES,
} MtfStoredType;

/* "F32", and the bytes of one element. */
const char *mtf_stored_type_name(MtfStoredType type);
int64_t mtf_stored_type_bytes(MtfStoredType type);

/* "[64, 3, 3]"; free with g_free. */
char *mtf_stored_dims_format(const int64_t *dims, int rank);

typedef struct {
    char *name;
    MtfStoredType type;
    int rank;
    int64_t *dims;      /* sizes */
    int64_t begin, end; /* bytes of the data */
} MtfStoredTensor;

typedef struct {
    GArray *tensors;     /* MtfStoredTensor, in the order of their data */
    GHashTable *indexes; /* name -> index + 1 */
    cJSON *metadata;     /* object of strings */
    int64_t data_bytes;
} MtfSafetensors;

/* A file without tensors; the caller frees it. */
MtfSafetensors *mtf_safetensors_new(void);
void mtf_safetensors_free(MtfSafetensors *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfSafetensors, mtf_safetensors_free)

/* Appends a tensor behind those there are; its name must be new. */
void mtf_safetensors_add(MtfSafetensors *file, const char *name, MtfStoredType type, int rank,
                         const int64_t *dims);

/* The tensor of that name, or NULL. */
const MtfStoredTensor *mtf_safetensors_find(const MtfSafetensors *file, const char *name);

/* A string of the metadata, or NULL. */
const char *mtf_safetensors_get(const MtfSafetensors *file, const char *key);

/* The bytes before the data, a multiple of 8; free with g_free. */
char *mtf_safetensors_print(const MtfSafetensors *file, gsize *length);

/* Reads what mtf_safetensors_print wrote, or any program. `header` is what lies before the data in
 * a file of `file_bytes` bytes. Fails (bad input) on whatever breaks the format's rules: an unknown
 * type, holes, tensors that overlap or reach beyond the end, data after the last. */
MtfSafetensors *mtf_safetensors_parse(const char *name, const char *header, gsize length,
                                      int64_t file_bytes, GError **error);

/* The bytes before the data of a file, to be freed with g_free, and the size of the whole file.
 * Fails (bad input) when it cannot be read, or is too short to be one. */
char *mtf_safetensors_read(const char *path, gsize *length, int64_t *file_bytes, GError **error);

#endif
