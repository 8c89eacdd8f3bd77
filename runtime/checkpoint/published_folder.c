// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/published_folder.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

#define PACKED_ENDING "qweight"
#define BLOCKS_ENDING "_blocks"

static void free_file(gpointer data) {
    MtfPublishedFile *file = data;
    g_free(file->path);
    mtf_safetensors_free(file->file);
    g_array_unref(file->moves);
    g_free(file);
}

void mtf_published_folder_free(MtfPublishedFolder *folder) {
    if (folder == NULL)
        return;
    g_free(folder->path);
    g_hash_table_unref(folder->names);
    g_ptr_array_unref(folder->files);
    g_free(folder);
}

MtfPublishedFolder *mtf_published_folder_new(const char *path) {
    MtfPublishedFolder *folder = g_new0(MtfPublishedFolder, 1);
    folder->path = g_strdup(path);
    folder->files = g_ptr_array_new_with_free_func(free_file);
    folder->names = g_hash_table_new(g_str_hash, g_str_equal);
    return folder;
}

MtfPublishedFile *mtf_published_folder_add(MtfPublishedFolder *folder, const char *path,
                                           MtfSafetensors *file) {
    MtfPublishedFile *added = g_new0(MtfPublishedFile, 1);
    added->path = g_strdup(path);
    added->file = file;
    added->moves = g_array_new(FALSE, FALSE, sizeof(MtfTensorMove));
    g_ptr_array_add(folder->files, added);
    return added;
}

/* ---- Which files ----------------------------------------------------------------------------- */

/* Adds a file's name to a text of lines, unless it is there. A name leads nowhere else. */
static bool add_line(const MtfJson *where, GHashTable *seen, GString *lines, GError **error) {
    const char *name;
    if (!mtf_json_string(where, &name, error))
        return false;
    if (*name == '\0' || strpbrk(name, "/\n") != NULL)
        return mtf_json_fail(where, error, "a file of this folder is expected here");
    if (g_hash_table_add(seen, (gpointer)name))
        g_string_append_printf(lines, "%s\n", name);
    return true;
}

static bool read_index(const char *path, GString *lines, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document), map, child;
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    if (!mtf_json_get_object(&root, "weight_map", &map, error))
        return false;
    for (bool more = mtf_json_first(&map, &child); more; more = mtf_json_next(&child))
        if (!add_line(&child, seen, lines, error))
            return false;
    return lines->len > 0 || mtf_json_fail(&map, error, "no tensor is listed");
}

/* The names of the files, a line each. */
static bool list_files(const char *path, GString *lines, GError **error) {
    g_autofree char *index = g_build_filename(path, MTF_PUBLISHED_FILE ".index.json", NULL);
    g_autofree char *single = g_build_filename(path, MTF_PUBLISHED_FILE, NULL);
    if (g_file_test(index, G_FILE_TEST_EXISTS))
        return read_index(index, lines, error);
    g_autofree char *adapter = g_build_filename(path, MTF_ADAPTER_CONFIG, NULL);
    if (!g_file_test(single, G_FILE_TEST_EXISTS))
        return mtf_input_error(error, "%s holds neither " MTF_PUBLISHED_FILE " nor %s%s", path,
                               MTF_PUBLISHED_FILE ".index.json",
                               g_file_test(adapter, G_FILE_TEST_EXISTS)
                                   ? ": it holds adapters, which --init-adapter reads"
                                   : "");
    g_string_append(lines, MTF_PUBLISHED_FILE "\n");
    return true;
}

static bool read_block(const MtfJson *quantization, MtfPublishedFolder *folder, GError **error) {
    MtfJson block, side;
    if (!mtf_json_find(quantization, "weight_block_size", &block) || cJSON_IsNull(block.node))
        return true;
    if (!mtf_json_array(&block, error))
        return false;
    if (mtf_json_length(&block) != 2)
        return mtf_json_fail(&block, error, "rows and columns of a block are expected");
    bool good = mtf_json_first(&block, &side);
    for (int i = 0; i < 2 && good; i++, mtf_json_next(&side))
        good = mtf_json_integer(&side, 1, G_MAXINT, &folder->block[i], error);
    return good;
}

static bool says(const MtfJson *object, const char *key, const char *word) {
    MtfJson value;
    return mtf_json_find(object, key, &value) && cJSON_IsString(value.node) &&
           strcmp(value.node->valuestring, word) == 0;
}

static MtfPacking packing_of(const MtfJson *quantization) {
    if (says(quantization, "quant_method", "awq"))
        return MTF_PACKED_AWQ;
    if (says(quantization, "quant_method", "mxfp4"))
        return MTF_PACKED_MXFP4;
    if (!says(quantization, "quant_method", "gptq"))
        return MTF_PACKED_NONE;
    return says(quantization, "checkpoint_format", "gptq_v2") ? MTF_PACKED_GPTQ_V2
                                                              : MTF_PACKED_GPTQ;
}

/* How matrices of four bits lie, and in groups of how many inputs; -1 is all. */
static bool read_packing(const MtfJson *quantization, MtfPublishedFolder *folder, GError **error) {
    MtfJson size, bits;
    int64_t inputs = -1, number = 4;
    folder->packing = packing_of(quantization);
    if (mtf_json_find(quantization, "group_size", &size) && !cJSON_IsNull(size.node) &&
        !mtf_json_integer(&size, -1, G_MAXINT, &inputs, error))
        return false;
    if (folder->packing != MTF_PACKED_NONE && mtf_json_find(quantization, "bits", &bits) &&
        !mtf_json_integer(&bits, 1, 16, &number, error))
        return false;
    folder->bits = (int)number;
    folder->group_size = MAX(0, inputs);
    return true;
}

/* What the folder's config.json, if there is one, says of weights in few bits. */
static bool read_quantization(MtfPublishedFolder *folder, GError **error) {
    g_autofree char *path = g_build_filename(folder->path, "config.json", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load_config(path, NULL, error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document), quantization;
    if (!cJSON_IsObject(root.node) || !mtf_json_find(&root, "quantization_config", &quantization) ||
        !cJSON_IsObject(quantization.node))
        return true;
    folder->quantized = true;
    return read_block(&quantization, folder, error) && read_packing(&quantization, folder, error);
}

static void share_quantization(MtfPublishedFolder *folder, MPI_Comm control) {
    int64_t said[6] = { folder->quantized, folder->block[0],   folder->block[1],
                        folder->packing,   folder->group_size, folder->bits };
    mtf_mpi_require(MPI_Bcast(said, 6, MPI_INT64_T, 0, control), "MPI_Bcast");
    folder->quantized = said[0] != 0;
    folder->block[0] = said[1];
    folder->block[1] = said[2];
    folder->packing = (MtfPacking)said[3];
    folder->group_size = said[4];
    folder->bits = (int)said[5];
}

/* Rank 0's lines on every rank; free with g_strfreev. */
static char **share_lines(MPI_Comm control, GString *lines) {
    int64_t length = (int64_t)lines->len;
    mtf_mpi_require(MPI_Bcast(&length, 1, MPI_INT64_T, 0, control), "MPI_Bcast");
    g_string_set_size(lines, (gsize)length);
    mtf_mpi_require(MPI_Bcast(lines->str, (int)length, MPI_BYTE, 0, control), "MPI_Bcast");
    return g_strsplit(g_strchomp(lines->str), "\n", -1);
}

/* ---- What is in them ------------------------------------------------------------------------- */

static bool add_file(MtfPublishedFolder *folder, MPI_Comm control, const char *name,
                     GError **error) {
    gsize length;
    g_autofree char *header = NULL;
    g_autofree char *path = g_build_filename(folder->path, name, NULL);
    MtfPublishedFile *file = mtf_published_folder_add(folder, path, NULL);
    file->file = mtf_header_read(control, file->path, &header, &length, error);
    if (file->file == NULL)
        return false;
    file->data_start = (int64_t)length;
    for (guint i = 0; i < file->file->tensors->len; i++) {
        char *tensor = g_array_index(file->file->tensors, MtfStoredTensor, i).name;
        if (!g_hash_table_insert(folder->names, tensor, file))
            return mtf_input_error(error, "%s: two files have a tensor \"%s\"", folder->path,
                                   tensor);
    }
    return true;
}

MtfPublishedFolder *mtf_published_folder_open(MPI_Comm control, const char *path, GError **error) {
    g_autoptr(MtfPublishedFolder) folder = mtf_published_folder_new(path);
    g_autoptr(GString) lines = g_string_new(NULL);
    GError *local = NULL;
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    if (rank == 0 && list_files(path, lines, &local))
        read_quantization(folder, &local);
    if (!mtf_agree(control, local, error))
        return NULL;
    share_quantization(folder, control);
    g_auto(GStrv) names = share_lines(control, lines);
    for (int i = 0; names[i] != NULL; i++)
        if (!add_file(folder, control, names[i], error))
            return NULL;
    return g_steal_pointer(&folder);
}

MtfPublishedFolder *mtf_published_folder_open_file(MPI_Comm control, const char *path,
                                                   const char *name, GError **error) {
    g_autoptr(MtfPublishedFolder) folder = mtf_published_folder_new(path);
    return add_file(folder, control, name, error) ? g_steal_pointer(&folder) : NULL;
}

/* Whether one name is the other behind a prefix that ends with a dot. */
static bool is_behind_prefix(const char *longer, const char *name) {
    gsize all = strlen(longer), end = strlen(name);
    return all > end + 1 && longer[all - end - 1] == '.' && strcmp(longer + all - end, name) == 0;
}

static const MtfStoredTensor *find_in(MtfPublishedFile *of, const char *name,
                                      MtfPublishedFile **file) {
    *file = of;
    return mtf_safetensors_find(of->file, name);
}

/* The tensor of that name, or the one whose name is it behind a prefix, or whose name with a prefix it is;
 * NULL with `several` where it might be more than one. */
static const MtfStoredTensor *find_named(const MtfPublishedFolder *folder, const char *name,
                                         MtfPublishedFile **file, bool *several) {
    MtfPublishedFile *exact = g_hash_table_lookup(folder->names, name);
    const char *found = NULL, *tensor;
    GHashTableIter all;
    gpointer value = NULL, of = NULL;
    if (exact != NULL)
        return find_in(exact, name, file);
    g_hash_table_iter_init(&all, folder->names);
    while (!*several && g_hash_table_iter_next(&all, (gpointer *)&tensor, &value)) {
        if (!is_behind_prefix(tensor, name) && !is_behind_prefix(name, tensor))
            continue;
        *several = found != NULL;
        found = tensor;
        of = value;
    }
    return found != NULL && !*several ? find_in(of, found, file) : NULL;
}

/* What TensorFlow, from which BERT's first files were translated, called the weights of norms, newer PyTorch what is normed of
 * weights, and where newer files have the text part of a model that reads pictures, too, behind `part`; NULL: nothing. Free with g_free. */
static char *other_name(const char *name, const char *part) {
    static const char *const endings[][2] = { { "LayerNorm.weight", "LayerNorm.gamma" },
                                              { "LayerNorm.bias", "LayerNorm.beta" },
                                              { "weight_g", "parametrizations.weight.original0" },
                                              { "weight_v", "parametrizations.weight.original1" } };
    for (gsize i = 0; i < G_N_ELEMENTS(endings); i++)
        if (g_str_has_suffix(name, endings[i][0]))
            return g_strdup_printf("%.*s%s", (int)(strlen(name) - strlen(endings[i][0])), name,
                                   endings[i][1]);
    return g_str_has_prefix(name, "model.")
               ? g_strconcat("model.", part, name + strlen("model."), NULL)
               : NULL;
}

/* The tensor of that name as find_named has it, or of one of its other names. */
static const MtfStoredTensor *find_by_any_name(const MtfPublishedFolder *folder, const char *name,
                                               MtfPublishedFile **file, bool *several) {
    static const char *const parts[] = { "language_model.", "text_model." };
    const MtfStoredTensor *stored = find_named(folder, name, file, several);
    for (gsize i = 0; i < G_N_ELEMENTS(parts) && stored == NULL && !*several; i++) {
        g_autofree char *other = other_name(name, parts[i]);
        stored = other != NULL ? find_named(folder, other, file, several) : NULL;
    }
    return stored;
}

const MtfStoredTensor *mtf_published_folder_find(const MtfPublishedFolder *folder, const char *name,
                                                 MtfPublishedFile **file, GError **error) {
    bool several = false;
    const MtfStoredTensor *stored = find_by_any_name(folder, name, file, &several);
    if (several)
        mtf_input_error(error, "%s has no tensor \"%s\", but several whose names end so",
                        folder->path, name);
    else if (stored == NULL)
        mtf_input_error(error, "%s has no tensor \"%s\", which the model needs", folder->path,
                        name);
    return stored;
}

bool mtf_published_folder_has(const MtfPublishedFolder *folder, const char *name) {
    MtfPublishedFile *file;
    bool several = false;
    return find_by_any_name(folder, name, &file, &several) != NULL || several;
}

/* ---- Scales ---------------------------------------------------------------------------------- */

static const MtfStoredTensor *find_scale(const MtfPublishedFolder *folder, const char *name,
                                         MtfPublishedFile **file) {
    static const char *const suffixes[] = { "_scale_inv", "_scale" };
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *scale = g_strconcat(name, suffixes[i], NULL);
        MtfPublishedFile *of = g_hash_table_lookup(folder->names, scale);
        if (of != NULL)
            return find_in(of, scale, file);
    }
    return NULL;
}

bool mtf_published_folder_scales(const MtfPublishedFolder *folder, const MtfStoredTensor *stored,
                                 MtfBlockScales *scales, GError **error) {
    MtfPublishedFile *file;
    *scales = (MtfBlockScales){ 0 };
    if (!folder->quantized || mtf_stored_type_bytes(stored->type) > 1)
        return true;
    const MtfStoredTensor *scale = find_scale(folder, stored->name, &file);
    if (scale == NULL)
        return mtf_input_error(
            error, "%s has no tensor \"%s_scale_inv\" or \"%s_scale\", the units of \"%s\"",
            folder->path, stored->name, stored->name, stored->name);
    if (!mtf_block_scales_set(stored, scale, folder->block, scales))
        return mtf_input_error(
            error, "%s: \"%s\" is not one scale for each block, for each row or for all of \"%s\"",
            file->path, scale->name, stored->name);
    scales->path = file->path;
    scales->place = file->data_start + scale->begin;
    return true;
}

/* ---- Four bits ----------------------------------------------------------------------------- */

/* The tensor that stands beside a packed one under another ending, in the same folder; NULL: none. */
static const MtfStoredTensor *find_beside(const MtfPublishedFolder *folder, const char *packed,
                                          const char *ending, MtfStoredData *data) {
    g_autofree char *name =
        g_strdup_printf("%.*s%s", (int)(strlen(packed) - strlen(PACKED_ENDING)), packed, ending);
    MtfPublishedFile *of = g_hash_table_lookup(folder->names, name), *file;
    if (of == NULL)
        return NULL;
    const MtfStoredTensor *tensor = find_in(of, name, &file);
    *data = (MtfStoredData){ file->path, file->data_start + tensor->begin, tensor->type };
    return tensor;
}

static bool is_matrix(const MtfStoredTensor *tensor, int64_t rows, int64_t columns) {
    return tensor != NULL && tensor->rank == 2 && tensor->dims[0] == rows &&
           tensor->dims[1] == columns;
}

/* Sets sizes and units of a packed matrix; false where they do not go together. */
static bool describe_packed(const MtfPublishedFolder *folder, const MtfStoredTensor *stored,
                            MtfPackedMatrix *m) {
    bool along = folder->packing == MTF_PACKED_AWQ;
    if (stored->type != MTF_STORED_I32 || stored->rank != 2 || stored->dims[0] < 1 ||
        stored->dims[1] < 1 || stored->dims[0] > G_MAXINT / 8 || stored->dims[1] > G_MAXINT / 8 ||
        (folder->bits != 4 && (along || folder->bits != 8)))
        return false;
    *m = (MtfPackedMatrix){ .packing = folder->packing, .bits = folder->bits };
    int n = mtf_packed_numbers(m);
    m->in = stored->dims[0] * (along ? 1 : n);
    m->out = stored->dims[1] * (along ? n : 1);
    m->group_size = folder->group_size > 0 ? folder->group_size : m->in;
    m->groups = (m->in - 1) / m->group_size + 1;
    const MtfStoredTensor *scales = find_beside(folder, stored->name, "scales", &m->scales);
    const MtfStoredTensor *zeros = find_beside(folder, stored->name, "qzeros", &m->zeros);
    const MtfStoredTensor *order = find_beside(folder, stored->name, "g_idx", &m->order);
    return is_matrix(scales, m->groups, m->out) && mtf_stored_type_is_readable(scales->type) &&
           is_matrix(zeros, m->groups, m->out / n) && zeros->type == MTF_STORED_I32 &&
           m->out % n == 0 && m->groups * m->out < G_MAXINT / 8 &&
           (order == NULL || (order->type == MTF_STORED_I32 && order->rank == 1 &&
                              order->dims[0] == m->in && !along));
}

/* The same of a stack of experts. */
static bool describe_experts(const MtfPublishedFolder *folder, const MtfStoredTensor *stored,
                             MtfPackedMatrix *m) {
    g_autofree char *name = g_strdup_printf(
        "%.*s_scales", (int)(strlen(stored->name) - strlen(BLOCKS_ENDING)), stored->name);
    MtfPublishedFile *of = g_hash_table_lookup(folder->names, name), *file;
    const MtfStoredTensor *scales = of == NULL ? NULL : find_in(of, name, &file);
    const int64_t *dims = stored->dims;
    if (scales == NULL || stored->rank != 4 || scales->rank != 3 || scales->dims[0] != dims[0] ||
        scales->dims[1] != dims[1] || scales->dims[2] != dims[2] ||
        dims[3] != MTF_MXFP4_INPUTS / 2 || dims[1] < 1 || dims[2] < 1 ||
        dims[1] > G_MAXINT / MTF_MXFP4_INPUTS / dims[2] || stored->type != MTF_STORED_U8 ||
        scales->type != MTF_STORED_U8)
        return false;
    *m = (MtfPackedMatrix){ .packing = folder->packing,
                            .in = dims[2] * MTF_MXFP4_INPUTS,
                            .out = dims[1],
                            .groups = dims[2],
                            .group_size = MTF_MXFP4_INPUTS,
                            .experts = dims[0],
                            .scales = { file->path, file->data_start + scales->begin,
                                        scales->type } };
    return true;
}

/* What a matrix of that name is called where it is packed, or NULL: such a one never is. Free with g_free. */
static char *packed_name(const MtfPublishedFolder *folder, const char *name) {
    if (folder->packing == MTF_PACKED_NONE)
        return NULL;
    if (folder->packing == MTF_PACKED_MXFP4)
        return g_strconcat(name, BLOCKS_ENDING, NULL);
    return !g_str_has_suffix(name, ".weight")
               ? NULL
               : g_strdup_printf("%.*s" PACKED_ENDING, (int)(strlen(name) - strlen("weight")),
                                 name);
}

const MtfStoredTensor *mtf_published_folder_packed(const MtfPublishedFolder *folder,
                                                   const char *name, MtfPublishedFile **file,
                                                   MtfPackedMatrix *matrix, GError **error) {
    bool several = false;
    *matrix = (MtfPackedMatrix){ .packing = MTF_PACKED_NONE };
    g_autofree char *packed = packed_name(folder, name);
    const MtfStoredTensor *stored =
        packed == NULL ? NULL : find_named(folder, packed, file, &several);
    bool experts = folder->packing == MTF_PACKED_MXFP4;
    if (stored == NULL || (experts ? describe_experts : describe_packed)(folder, stored, matrix))
        return stored;
    mtf_input_error(
        error,
        "%s: \"%s\" is not packed in few bits beside scales (and zeros) of its groups of "
        "inputs, as the folder's config.json says",
        (*file)->path, stored->name);
    return NULL;
}
