// SPDX-License-Identifier: GPL-3.0-or-later

#include "runtime/checkpoint/checkpoint.h"
#include "layouts/base/error.h"
#include "runtime/checkpoint/adapter_weights.h"
#include "runtime/checkpoint/published_weights.h"
#include "runtime/checkpoint/quantization.h"
#include "runtime/checkpoint/staged_variables.h"
#include "runtime/checkpoint/tensor_file.h"
#include "runtime/checkpoint/whole_file.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define VERSION "1"
#define ZEROS64 "0000000000000000000000000000000000000000000000000000000000000000"
#define SEAL_KEY "\"header_sha256\":\""

void mtf_progress_clear(MtfProgress *progress) {
    g_free(progress->data);
    g_free(progress->program);
    g_free(progress->products);
    *progress = (MtfProgress){ 0 };
}

static int rank_of(MPI_Comm control) {
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    return rank;
}

static bool is_weight(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE;
}

/* ---- The seal: a digest of the header ------------------------------------------------------ */

/* Where the 64 digits stand in a header; NULL when there are none. */
static char *find_seal(char *header, gsize length) {
    char *key = g_strstr_len(header + 8, (gssize)length - 8, SEAL_KEY);
    char *seal = key != NULL ? key + strlen(SEAL_KEY) : NULL;
    return seal != NULL && header + length - seal >= 64 ? seal : NULL;
}

/* The digest with zeros in the seal's place; free with g_free. */
static char *digest_header(char *header, gsize length, char *seal) {
    char kept[64];
    memcpy(kept, seal, sizeof kept);
    memset(seal, '0', sizeof kept);
    char *digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)header, length);
    memcpy(seal, kept, sizeof kept);
    return digest;
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void add_variable(MtfSafetensors *file, const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    int64_t dims[MTF_MAX_RANK];
    for (int i = 0; i < t->shape.rank; i++)
        dims[i] = mtf_graph_unpadded_size(graph, t->shape.dims[i]);
    mtf_safetensors_add(file, t->name, mtf_stored_type_of(t->dtype), t->shape.rank, dims);
}

/* All variables, or those alone that are results; those of large elements first, so that each lies at a
 * multiple of its own. */
static int *add_variables(MtfSafetensors *file, const MtfGraph *graph, bool results) {
    int n = (int)graph->tensors->len;
    int *tensors = g_new(int, n + 1);
    for (int64_t bytes = 8; bytes >= 1; bytes /= 2)
        for (int t = 0; t < n; t++) {
            const MtfTensor *tensor = mtf_graph_tensor(graph, t);
            if (tensor->source != MTF_SOURCE_VARIABLE || mtf_dtype_bytes(tensor->dtype) != bytes ||
                (results && tensor->memory != MTF_MEMORY_OUTPUT))
                continue;
            tensors[file->tensors->len] = t;
            add_variable(file, graph, t);
        }
    return tensors;
}

static void set_text(MtfSafetensors *file, const char *key, const char *text) {
    cJSON_DeleteItemFromObjectCaseSensitive(file->metadata, key);
    cJSON_AddStringToObject(file->metadata, key, text);
}

static void set_number(MtfSafetensors *file, const char *key, int64_t number) {
    char text[32];
    g_snprintf(text, sizeof text, "%" PRId64, number);
    set_text(file, key, text);
}

/* The same on all ranks, whatever stage they run. */
static void describe(MtfSafetensors *file, const MtfCheckpointed *what,
                     const MtfProgress *progress) {
    const MtfProgram *program = what->worker->program;
    g_autofree char *mesh =
        what->whole != NULL ? g_strdup("pipeline") : mtf_mesh_format(&program->layout->mesh);
    set_text(file, "meshtf_checkpoint", VERSION);
    set_text(file, "graph", program->graph->name);
    set_number(file, "step", progress->step);
    set_number(file, "seed", (int64_t)progress->seed);
    set_text(file, "data", progress->data);
    set_number(file, "examples", progress->examples);
    set_text(file, "mesh", mesh);
    set_text(file, "program", progress->program);
    if (progress->products != NULL)
        set_text(file, "products", progress->products);
}

/* The finished header. Its length does not depend on the checksum. */
static char *seal_header(MtfSafetensors *file, uint64_t checksum, gsize *length) {
    char text[17];
    g_snprintf(text, sizeof text, "%016" PRIx64, checksum);
    set_text(file, "checksum", text);
    set_text(file, "header_sha256", ZEROS64);
    char *header = mtf_safetensors_print(file, length);
    char *seal = find_seal(header, *length);
    g_autofree char *digest = digest_header(header, *length, seal);
    memcpy(seal, digest, 64);
    return header;
}

static bool write_data(const MtfCheckpointed *what, MtfSafetensors *file, const int *tensors,
                       const char *partial, GError **error) {
    gsize length;
    uint64_t checksum;
    GError *local = NULL;
    g_free(seal_header(file, 0, &length)); /* for its length */
    bool is_first = rank_of(what->control) == 0;
    if (is_first)
        mtf_whole_file_reserve(partial, (int64_t)length + file->data_bytes, &local);
    if (!mtf_agree(what->control, local, error))
        return false;
    MtfTensorFile data = { .control = what->control,
                           .worker = what->worker,
                           .file = file,
                           .tensors = tensors,
                           .data_start = (int64_t)length,
                           .path = partial };
    if (!mtf_staged_variables_move(what, &data, mtf_tensor_file_write, &checksum, error))
        return false;
    g_autofree char *header = seal_header(file, checksum, &length);
    local = NULL;
    if (is_first)
        mtf_whole_file_write_header(partial, header, length, &local);
    return mtf_agree(what->control, local, error);
}

static bool write_file(const MtfCheckpointed *what, bool results, const char *path,
                       const MtfProgress *progress, GError **error) {
    g_autoptr(MtfSafetensors) file = mtf_safetensors_new();
    g_autofree int *tensors = add_variables(file, mtf_checkpointed_graph(what), results);
    g_autofree char *partial = g_strconcat(path, MTF_PARTIAL_SUFFIX, NULL);
    bool is_first = rank_of(what->control) == 0;
    describe(file, what, progress);
    bool done = write_data(what, file, tensors, partial, error);
    if (done) {
        GError *local = NULL;
        if (is_first)
            mtf_whole_file_settle(partial, path, &local);
        done = mtf_agree(what->control, local, error);
    }
    if (!done && is_first)
        unlink(partial);
    return done;
}

bool mtf_checkpoint_write(const MtfCheckpointed *what, const char *path,
                          const MtfProgress *progress, GError **error) {
    return write_file(what, false, path, progress, error);
}

bool mtf_results_write(const MtfCheckpointed *what, const char *path, const MtfProgress *progress,
                       GError **error) {
    return write_file(what, true, path, progress, error);
}

/* ---- Reading ------------------------------------------------------------------------------- */

MtfSafetensors *mtf_header_read(MPI_Comm control, const char *path, char **header, gsize *length,
                                GError **error) {
    int64_t sizes[2] = { 0 };
    GError *local = NULL;
    *header = NULL;
    if (rank_of(control) == 0)
        *header = mtf_safetensors_read(path, length, &sizes[1], &local);
    if (!mtf_agree(control, local, error))
        return NULL;
    if (*header != NULL)
        sizes[0] = (int64_t)*length;
    mtf_mpi_require(MPI_Bcast(sizes, 2, MPI_INT64_T, 0, control), "MPI_Bcast");
    *length = (gsize)sizes[0];
    if (*header == NULL)
        *header = g_malloc(*length);
    mtf_mpi_require(MPI_Bcast(*header, (int)*length, MPI_BYTE, 0, control), "MPI_Bcast");
    return mtf_safetensors_parse(path, *header, *length, sizes[1], error);
}

static bool same_shape(const MtfGraph *graph, const MtfTensor *tensor,
                       const MtfStoredTensor *stored) {
    bool same = tensor->shape.rank == stored->rank;
    for (int i = 0; same && i < stored->rank; i++)
        same = mtf_graph_unpadded_size(graph, tensor->shape.dims[i]) == stored->dims[i];
    return same;
}

/* Whether the file's tensor can become the variable. */
static bool check_variable(const char *path, const MtfSafetensors *file, const MtfGraph *graph,
                           int tensor, GError **error) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    const MtfStoredTensor *stored = mtf_safetensors_find(file, t->name);
    if (stored == NULL)
        return mtf_input_error(error, "%s has no tensor \"%s\", a variable of this model", path,
                               t->name);
    if (!mtf_stored_type_is_readable(stored->type))
        return mtf_input_error(error, "%s: the values of \"%s\" have type %s, which cannot be read",
                               path, t->name, mtf_stored_type_name(stored->type));
    if (same_shape(graph, t, stored))
        return true;
    g_autofree char *there = mtf_stored_dims_format(stored->dims, stored->rank);
    g_autofree char *here = mtf_graph_tensor_format(graph, tensor);
    return mtf_input_error(error, "%s: \"%s\" has shape %s, but in this model it is %s", path,
                           t->name, there, here);
}

/* Variables that a file is to have, and names of those that it may lack, or NULL. */
typedef struct {
    bool (*wanted)(const MtfTensor *);
    GHashTable *optional;
} Wanted;

/* The numbers of the graph's tensors by the file's, for all variables that are wanted. */
static int *match(const char *path, const MtfSafetensors *file, const MtfGraph *graph,
                  const Wanted *w, GError **error) {
    int n = (int)file->tensors->len;
    g_autofree int *tensors = g_new(int, n + 1);
    for (int i = 0; i < n; i++)
        tensors[i] = -1;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        bool may_lack = w->optional != NULL && g_hash_table_contains(w->optional, tensor->name);
        if (!w->wanted(tensor) || (may_lack && mtf_safetensors_find(file, tensor->name) == NULL))
            continue;
        if (!check_variable(path, file, graph, t, error))
            return NULL;
        const MtfStoredTensor *stored = mtf_safetensors_find(file, tensor->name);
        tensors[stored - (const MtfStoredTensor *)(void *)file->tensors->data] = t;
    }
    return g_steal_pointer(&tensors);
}

static bool is_variable(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_VARIABLE;
}

static bool has_nothing_else(const char *path, const MtfSafetensors *file, const int *tensors,
                             GError **error) {
    for (guint i = 0; i < file->tensors->len; i++)
        if (tensors[i] < 0)
            return mtf_input_error(error,
                                   "%s has a tensor \"%s\" that this model lacks: --init takes the "
                                   "weights alone",
                                   path, g_array_index(file->tensors, MtfStoredTensor, i).name);
    return true;
}

static bool get_number(const MtfSafetensors *file, const char *key, int64_t *number) {
    const char *text = mtf_safetensors_get(file, key);
    return text != NULL && g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, number, NULL);
}

/* What the metadata says. Fails when it is no checkpoint, or its header has changed since it was
 * written. */
static bool read_progress(const char *path, const MtfSafetensors *file, char *header, gsize length,
                          MtfProgress *progress, GError **error) {
    const char *version = mtf_safetensors_get(file, "meshtf_checkpoint");
    char *seal = find_seal(header, length);
    int64_t seed;
    if (version == NULL || seal == NULL)
        return mtf_input_error(error,
                               "%s is a safetensors file but not a checkpoint: --init takes its "
                               "weights",
                               path);
    if (strcmp(version, VERSION) != 0)
        return mtf_input_error(
            error, "%s is a checkpoint of version %s, this program reads " VERSION, path, version);
    g_autofree char *digest = digest_header(header, length, seal);
    if (strncmp(seal, digest, 64) != 0)
        return mtf_input_error(
            error, "%s is damaged: its header does not have the digest it should", path);
    if (!get_number(file, "step", &progress->step) || !get_number(file, "seed", &seed) ||
        !get_number(file, "examples", &progress->examples))
        return mtf_input_error(error, "%s does not say how far the run had come", path);
    progress->seed = (uint64_t)seed;
    progress->data = g_strdup(mtf_safetensors_get(file, "data"));
    progress->program = g_strdup(mtf_safetensors_get(file, "program"));
    progress->products = g_strdup(mtf_safetensors_get(file, "products"));
    return true;
}

static bool check_data(const char *path, const MtfSafetensors *file, uint64_t checksum,
                       GError **error) {
    char text[17];
    g_snprintf(text, sizeof text, "%016" PRIx64, checksum);
    const char *wanted = mtf_safetensors_get(file, "checksum");
    return g_strcmp0(wanted, text) == 0 ||
           mtf_input_error(error, "%s is damaged: its data has the checksum %s, not %s", path, text,
                           wanted != NULL ? wanted : "any");
}

static bool read_tensors(const MtfCheckpointed *what, const char *path, const MtfSafetensors *file,
                         const int *tensors, gsize header_bytes, uint64_t *checksum,
                         GError **error) {
    MtfTensorFile data = { .control = what->control,
                           .worker = what->worker,
                           .file = file,
                           .tensors = tensors,
                           .data_start = (int64_t)header_bytes,
                           .path = path };
    return mtf_staged_variables_move(what, &data, mtf_tensor_file_read, checksum, error);
}

MtfCheckpointVerdict mtf_checkpoint_read(const MtfCheckpointed *what, const char *path,
                                         MtfProgress *progress, GError **error) {
    gsize length;
    uint64_t checksum;
    g_autofree char *header = NULL;
    *progress = (MtfProgress){ 0 };
    g_autoptr(MtfSafetensors) file = mtf_header_read(what->control, path, &header, &length, error);
    if (file == NULL || !read_progress(path, file, header, length, progress, error))
        return MTF_CHECKPOINT_BAD;
    g_autofree int *tensors =
        match(path, file, mtf_checkpointed_graph(what), &(Wanted){ is_variable, NULL }, error);
    if (tensors == NULL || !has_nothing_else(path, file, tensors, error))
        return MTF_CHECKPOINT_FOREIGN;
    if (!read_tensors(what, path, file, tensors, length, &checksum, error) ||
        !check_data(path, file, checksum, error))
        return MTF_CHECKPOINT_BAD;
    return MTF_CHECKPOINT_READ;
}

bool mtf_weights_read(const MtfCheckpointed *what, const char *path, GError **error) {
    gsize length;
    uint64_t checksum;
    g_autofree char *header = NULL;
    if (mtf_published_weights_are_at(what->control, path))
        return mtf_published_weights_read(what, path, error);
    g_autoptr(MtfSafetensors) file = mtf_header_read(what->control, path, &header, &length, error);
    if (file == NULL)
        return false;
    g_autoptr(GHashTable) optional = mtf_adapter_variables(mtf_checkpointed_graph(what));
    mtf_quantization_add_scales(mtf_checkpointed_graph(what), optional);
    g_autofree int *tensors =
        match(path, file, mtf_checkpointed_graph(what), &(Wanted){ is_weight, optional }, error);
    return tensors != NULL && read_tensors(what, path, file, tensors, length, &checksum, error);
}
