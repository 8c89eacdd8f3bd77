// SPDX-License-Identifier: GPL-3.0-or-later

#include "runtime/checkpoint/published_weights.h"
#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/graph/stage_split.h"
#include "layouts/onnx/onnx_model.h"
#include "runtime/checkpoint/adapter_weights.h"
#include "runtime/checkpoint/onnx_weights.h"
#include "runtime/checkpoint/published_folder.h"
#include "runtime/checkpoint/quantization.h"
#include "runtime/checkpoint/staged_variables.h"
#include "runtime/checkpoint/stored_place.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank_of(MPI_Comm control) {
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    return rank;
}

bool mtf_published_weights_are_at(MPI_Comm control, const char *path) {
    bool there = g_file_test(path, G_FILE_TEST_IS_DIR) || mtf_onnx_is_path(path);
    return mtf_agree_first(control, there ? 1 : 0) != 0;
}

/* ---- Variables and their places -------------------------------------------------------------- */

/* Calls `visit` (if not NULL) with every variable that counts as a weight, its place and how many tensors it
 * is a stack of. */
typedef bool (*Visit)(const MtfStoredPlace *place, int tensor, int64_t count, void *user,
                      GError **error);

static bool visit_variable(const MtfGraph *graph, int t, Visit visit, void *user, GError **error) {
    const MtfTensor *tensor = mtf_graph_tensor(graph, t);
    MtfStoredPlace place;
    if (tensor->stored == NULL)
        return mtf_input_error(error,
                               "the model does not say where published files keep \"%s\": plans of "
                               "a config.json do (meshtf-plan search DIR), and those of published "
                               "families (meshtf-plan model gpt2)",
                               tensor->name);
    if (!mtf_stored_place_parse(tensor->stored, &place, error))
        return false;
    int64_t elements = mtf_graph_unpadded_elements(graph, &tensor->shape);
    int64_t count = place.stacked ? elements / place.elements : 1;
    bool done = count * place.elements == elements
                    ? visit == NULL || visit(&place, t, count, user, error)
                    : mtf_input_error(error, "\"%s\" has %" PRId64 " elements, but \"%s\" has not",
                                      tensor->name, elements, tensor->stored);
    mtf_stored_place_clear(&place);
    return done;
}

/* Which variables are visited. */
typedef enum {
    OF_MODEL,    /* all but adapters */
    WITH_PLACE,  /* of these the ones that have one */
    OF_ADAPTERS, /* adapters alone */
} Which;

static bool visit_weights(const MtfGraph *graph, Which which, Visit visit, void *user,
                          GError **error) {
    g_autoptr(GHashTable) adapters = mtf_adapter_variables(graph);
    g_autoptr(GHashTable) scales = g_hash_table_new(g_str_hash, g_str_equal);
    mtf_quantization_add_scales(graph, scales);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        bool adapts = g_hash_table_contains(adapters, tensor->name);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE &&
            !g_hash_table_contains(scales, tensor->name) && adapts == (which == OF_ADAPTERS) &&
            (which != WITH_PLACE || tensor->stored != NULL) &&
            !visit_variable(graph, t, visit, user, error))
            return false;
    }
    return true;
}

/* Part `i` of a variable that is a stack, or the variable itself. */
static MtfTensorMove move_of(const MtfStoredPlace *place, int tensor, int64_t i, int stored) {
    return (MtfTensorMove){ .stored = stored,
                            .tensor = tensor,
                            .begin = i * place->elements,
                            .count = place->elements,
                            .first = place->first,
                            .block = place->block,
                            .stride = place->stride };
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool check_stored(const MtfPublishedFile *file, const MtfStoredTensor *stored,
                         const MtfStoredPlace *place, GError **error) {
    bool same = stored->rank == place->rank;
    for (int i = 0; same && i < place->rank; i++)
        same = stored->dims[i] == place->dims[i];
    if (!mtf_stored_type_is_readable(stored->type))
        return mtf_input_error(error, "%s: the values of \"%s\" have type %s, which cannot be read",
                               file->path, stored->name, mtf_stored_type_name(stored->type));
    if (same)
        return true;
    g_autofree char *there = mtf_stored_dims_format(stored->dims, stored->rank);
    g_autofree char *here = mtf_stored_dims_format(place->dims, place->rank);
    return mtf_input_error(error, "%s: \"%s\" has shape %s, but this model's is %s", file->path,
                           stored->name, there, here);
}

/* Whether a place is all of a packed matrix, or of a packed stack of experts some outputs. */
static bool is_of_packed(const MtfStoredPlace *place, const MtfPackedMatrix *packed) {
    if (packed->packing == MTF_PACKED_MXFP4)
        return place->rank == 3 && place->dims[0] == packed->experts &&
               place->dims[1] == packed->in && place->dims[2] == packed->out &&
               (place->elements == packed->experts * packed->in * packed->out ||
                packed->out % place->stride == 0);
    return place->rank == 2 && place->dims[0] == packed->out && place->dims[1] == packed->in &&
           place->elements == packed->out * packed->in;
}

/* A matrix that the folder has packed, which the place must be of; *stored is NULL where it is not packed. */
static bool find_packed(const MtfPublishedFolder *folder, const MtfStoredPlace *place,
                        const char *name, MtfPublishedFile **file, MtfPackedMatrix *packed,
                        const MtfStoredTensor **stored, GError **error) {
    GError *cause = NULL;
    *stored = mtf_published_folder_packed(folder, name, file, packed, &cause);
    if (cause != NULL) {
        g_propagate_error(error, cause);
        return false;
    }
    return *stored == NULL || is_of_packed(place, packed) ||
           mtf_input_error(error,
                           "%s: \"%s\" is a packed matrix of [%" PRId64 ", %" PRId64
                           "], of which this model wants a part or another shape",
                           (*file)->path, (*stored)->name, packed->out, packed->in);
}

/* Whence, and which weights are not there, or NULL. */
typedef struct {
    const MtfPublishedFolder *folder;
    GPtrArray *lacking;
} Reading;

static bool add_reading(const MtfStoredPlace *place, int tensor, int64_t count, void *user,
                        GError **error) {
    const Reading *reading = user;
    const MtfPublishedFolder *folder = reading->folder;
    for (int64_t i = 0; i < count; i++) {
        MtfPublishedFile *file;
        g_autofree char *name = mtf_stored_place_name(place, i);
        const MtfStoredTensor *stored;
        MtfPackedMatrix packed;
        if (!find_packed(folder, place, name, &file, &packed, &stored, error))
            return false;
        bool whole = stored == NULL;
        if (whole && reading->lacking != NULL && !mtf_published_folder_has(folder, name)) {
            g_ptr_array_add(reading->lacking, g_steal_pointer(&name));
            continue;
        }
        if (whole)
            stored = mtf_published_folder_find(folder, name, &file, error);
        if (stored == NULL || (whole && !check_stored(file, stored, place, error)))
            return false;
        const MtfStoredTensor *first = (const MtfStoredTensor *)(void *)file->file->tensors->data;
        MtfTensorMove move = move_of(place, tensor, i, (int)(stored - first));
        move.packed = packed;
        if (whole && !mtf_published_folder_scales(folder, stored, &move.scales, error))
            return false;
        g_array_append_val(file->moves, move);
    }
    return true;
}

static bool read_moves(const MtfCheckpointed *what, const MtfPublishedFolder *open,
                       GError **error) {
    for (guint i = 0; i < open->files->len; i++) {
        const MtfPublishedFile *file = g_ptr_array_index(open->files, i);
        uint64_t checksum;
        MtfTensorFile data = { .control = what->control,
                               .worker = what->worker,
                               .file = file->file,
                               .moves = file->moves,
                               .data_start = file->data_start,
                               .path = file->path };
        if (file->moves->len > 0 &&
            !mtf_staged_variables_move(what, &data, mtf_tensor_file_read, &checksum, error))
            return false;
    }
    return true;
}

/* A folder that lacks more than it has is another model's. */
static bool check_lacking(const Reading *reading, GError **error) {
    guint there = 0;
    for (guint i = 0; i < reading->folder->files->len; i++)
        there += ((const MtfPublishedFile *)reading->folder->files->pdata[i])->moves->len;
    return reading->lacking == NULL || reading->lacking->len <= there ||
           mtf_input_error(error,
                           "%s has %u of the model's weights and lacks %u, \"%s\" among them: it "
                           "is another model's",
                           reading->folder->path, there, reading->lacking->len,
                           (const char *)reading->lacking->pdata[0]);
}

/* What files hold beside weights: tables and masks that models make anew. */
static bool is_made_anew(const char *name) {
    static const char *const endings[] = { "inv_freq",        "position_ids",
                                           ".attn.bias",      ".attn.masked_bias",
                                           ".masked_bias",    "num_batches_tracked",
                                           ".attention.bias", "embed_positions.weights" };
    for (gsize i = 0; i < G_N_ELEMENTS(endings); i++)
        if (g_str_has_suffix(name, endings[i]))
            return true;
    return false;
}

static void list_unread(const MtfPublishedFolder *folder, GPtrArray *unread) {
    for (guint i = 0; i < folder->files->len && !folder->quantized; i++) {
        const MtfPublishedFile *file = g_ptr_array_index(folder->files, i);
        const GArray *tensors = file->file->tensors;
        g_autofree bool *read = g_new0(bool, tensors->len + 1);
        for (guint k = 0; k < file->moves->len; k++)
            read[g_array_index(file->moves, MtfTensorMove, k).stored] = true;
        for (guint k = 0; k < tensors->len; k++) {
            const char *name = g_array_index(tensors, MtfStoredTensor, k).name;
            if (!read[k] && !is_made_anew(name))
                g_ptr_array_add(unread, g_strdup(name));
        }
    }
}

bool mtf_published_weights_read(const MtfCheckpointed *what, const char *folder, GError **error) {
    bool onnx = mtf_onnx_is_path(folder);
    g_autoptr(MtfPublishedFolder) open =
        onnx ? mtf_onnx_weights_open(what->control, folder, error)
             : mtf_published_folder_open(what->control, folder, error);
    Reading reading = { open, what->lacking };
    if (open == NULL || !visit_weights(mtf_checkpointed_graph(what), onnx ? WITH_PLACE : OF_MODEL,
                                       add_reading, &reading, error))
        return false;
    if (!onnx && what->unread != NULL)
        list_unread(open, what->unread);
    return check_lacking(&reading, error) && read_moves(what, open, error);
}

/* How many tensors of the file are read, in whole or in part. */
static guint count_tensors(const MtfPublishedFile *file) {
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < file->moves->len; i++)
        g_hash_table_add(seen,
                         GINT_TO_POINTER(g_array_index(file->moves, MtfTensorMove, i).stored));
    return g_hash_table_size(seen);
}

bool mtf_published_adapters_read(const MtfCheckpointed *what, const char *folder, GError **error) {
    const MtfGraph *graph = mtf_checkpointed_graph(what);
    g_autofree char *config = g_build_filename(folder, MTF_ADAPTER_CONFIG, NULL);
    GError *local = NULL;
    if (rank_of(what->control) == 0)
        mtf_adapter_config_check(graph, config, &local);
    if (!mtf_agree(what->control, local, error))
        return false;
    g_autoptr(MtfPublishedFolder) open =
        mtf_published_folder_open_file(what->control, folder, MTF_ADAPTER_FILE, error);
    Reading reading = { open, NULL };
    if (open == NULL || !visit_weights(graph, OF_ADAPTERS, add_reading, &reading, error))
        return false;
    const MtfPublishedFile *file = g_ptr_array_index(open->files, 0);
    guint wanted = count_tensors(file);
    if (wanted != file->file->tensors->len)
        return mtf_input_error(error, "%s has %u tensors, but the adapters of this plan are %u",
                               file->path, file->file->tensors->len, wanted);
    return read_moves(what, open, error);
}

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct {
    const MtfGraph *graph;
    const MtfPublishedFolder *like; /* or NULL */
    MtfSafetensors *file;
    GHashTable *indexes; /* name -> number in the file + 1 */
    GArray *moves;
    const char *folder, *file_name, *config_name;
    char *config;    /* its text, or NULL */
    bool has_others; /* weights that the model it is like has not */
} Export;

/* The name and type that a tensor is written with: those of the model it is like, where its type
 * can be written. */
static bool choose_name(Export *e, int tensor, char **name, MtfStoredType *type, GError **error) {
    MtfPublishedFile *file;
    *type = mtf_stored_type_of(mtf_graph_tensor(e->graph, tensor)->dtype);
    if (e->like == NULL)
        return true;
    MtfPackedMatrix packed;
    if (mtf_published_folder_packed(e->like, *name, &file, &packed, NULL) != NULL)
        return true;
    if (!mtf_published_folder_has(e->like, *name)) {
        e->has_others = true;
        return true;
    }
    const MtfStoredTensor *stored = mtf_published_folder_find(e->like, *name, &file, error);
    if (stored == NULL)
        return false;
    g_free(*name);
    *name = g_strdup(stored->name);
    *type = stored->type <= MTF_STORED_BF16 ? stored->type : *type;
    return true;
}

static bool add_writing(const MtfStoredPlace *place, int tensor, int64_t count, void *user,
                        GError **error) {
    Export *e = user;
    for (int64_t i = 0; i < count; i++) {
        MtfStoredType type;
        g_autofree char *name = mtf_stored_place_name(place, i);
        if (!choose_name(e, tensor, &name, &type, error))
            return false;
        int number = GPOINTER_TO_INT(g_hash_table_lookup(e->indexes, name)) - 1;
        if (number < 0) {
            number = (int)e->file->tensors->len;
            mtf_safetensors_add(e->file, name, type, place->rank, place->dims);
            g_hash_table_insert(e->indexes, g_strdup(name), GINT_TO_POINTER(number + 1));
        }
        MtfTensorMove move = move_of(place, tensor, i, number);
        g_array_append_val(e->moves, move);
    }
    return true;
}

/* What only the first rank does, with a verdict for all. */
static bool prepare_file(const char *folder, const char *partial, int64_t bytes, GError **error) {
    if (g_mkdir_with_parents(folder, 0777) != 0)
        return mtf_failure(error, "%s cannot be made: %s", folder, g_strerror(errno));
    return mtf_whole_file_reserve(partial, bytes, error);
}

static bool write_config(const Export *e, GError **error) {
    g_autofree char *to = g_build_filename(e->folder, e->config_name, NULL);
    GError *cause = NULL;
    if (e->config == NULL || g_file_set_contents(to, e->config, -1, &cause))
        return true;
    mtf_failure(error, "%s: %s", to, cause->message);
    g_error_free(cause);
    return false;
}

static bool write_file(const MtfCheckpointed *what, const Export *e, GError **error) {
    g_autofree char *path = g_build_filename(e->folder, e->file_name, NULL);
    g_autofree char *partial = g_strconcat(path, MTF_PARTIAL_SUFFIX, NULL);
    bool first = rank_of(what->control) == 0;
    gsize length;
    uint64_t checksum;
    g_autofree char *header = mtf_safetensors_print(e->file, &length);
    GError *local = NULL;
    if (first)
        prepare_file(e->folder, partial, (int64_t)length + e->file->data_bytes, &local);
    if (!mtf_agree(what->control, local, error))
        return false;
    MtfTensorFile data = { .control = what->control,
                           .worker = what->worker,
                           .file = e->file,
                           .moves = e->moves,
                           .data_start = (int64_t)length,
                           .path = partial };
    bool done = mtf_staged_variables_move(what, &data, mtf_tensor_file_write, &checksum, error);
    local = NULL;
    if (done && first && mtf_whole_file_write_header(partial, header, length, &local) &&
        write_config(e, &local))
        mtf_whole_file_settle(partial, path, &local);
    done = done && mtf_agree(what->control, local, error);
    if (!done && first)
        unlink(partial);
    return done;
}

static Export begin_export(const MtfGraph *graph, const char *folder) {
    Export e = { .graph = graph, .folder = folder, .file = mtf_safetensors_new() };
    e.indexes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    e.moves = g_array_new(FALSE, FALSE, sizeof(MtfTensorMove));
    cJSON_AddStringToObject(e.file->metadata, "format", "pt");
    return e;
}

static void end_export(Export *e) {
    mtf_safetensors_free(e->file);
    g_hash_table_unref(e->indexes);
    g_array_unref(e->moves);
    g_free(e->config);
}

/* The config of the folder that weights are like, or of the model, where it has others or there is no such
 * folder; of one in eight bits without saying so, since what is written is not. Free with g_free. */
static char *choose_config(const Export *e) {
    gsize length;
    g_autofree char *path = e->like != NULL && !(e->has_others && e->graph->config != NULL)
                                ? g_build_filename(e->like->path, e->config_name, NULL)
                                : NULL;
    char *text = path != NULL ? mtf_file_read(path, &length, NULL) : NULL;
    if (text == NULL)
        text = g_strdup(e->graph->config);
    if (text == NULL || strstr(text, "\"quantization_config\"") == NULL)
        return text;
    cJSON *config = cJSON_Parse(text);
    cJSON_DeleteItemFromObjectCaseSensitive(config, "quantization_config");
    char *printed = cJSON_Print(config);
    g_free(text);
    text = g_strdup(printed);
    cJSON_free(printed);
    cJSON_Delete(config);
    return text;
}

/* With adapters added in, where there are any. */
static bool write_model(const MtfCheckpointed *what, Export *e, GError **error) {
    if (!visit_weights(e->graph, OF_MODEL, add_writing, e, error))
        return false;
    e->config = choose_config(e);
    g_autofree MtfMergedWeights **merged = g_new(MtfMergedWeights *, what->n_more + 1);
    for (int part = 0; part <= what->n_more; part++) {
        MtfCheckpointed one = mtf_checkpointed_part(what, part);
        merged[part] = mtf_adapters_merge(&one);
    }
    bool written = write_file(what, e, error);
    for (int part = 0; part <= what->n_more; part++)
        mtf_adapters_unmerge(merged[part]);
    return written;
}

/* Adapters are added in by the stage that has the weight. */
static bool check_adapter_stages(const MtfGraph *graph, GError **error) {
    g_autofree int *stages = mtf_graph_tensor_stages(graph);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        const char *parts[] = { tensor->adapter.down, tensor->adapter.up };
        for (int p = 0; p < 2 && parts[p] != NULL; p++)
            if (stages[mtf_graph_find_tensor(graph, parts[p])] != stages[t])
                return mtf_input_error(error,
                                       "the cut between stages leads between \"%s\" and its "
                                       "adapter \"%s\": --export-adapter writes adapters alone",
                                       tensor->name, parts[p]);
    }
    return true;
}

bool mtf_published_weights_check(const MtfGraph *graph, bool adapters, GError **error) {
    g_autofree char *config = adapters ? mtf_adapter_config_print(graph, NULL, error) : NULL;
    return (config != NULL || !adapters) && (adapters || check_adapter_stages(graph, error)) &&
           visit_weights(graph, adapters ? OF_ADAPTERS : OF_MODEL, NULL, NULL, error);
}

bool mtf_published_weights_write(const MtfCheckpointed *what, const char *folder, const char *like,
                                 GError **error) {
    g_autoptr(MtfPublishedFolder) open = NULL;
    if (like != NULL && !mtf_onnx_is_path(like) &&
        mtf_published_weights_are_at(what->control, like)) {
        open = mtf_published_folder_open(what->control, like, error);
        if (open == NULL)
            return false;
    }
    Export e = begin_export(mtf_checkpointed_graph(what), folder);
    e.like = open;
    e.file_name = MTF_PUBLISHED_FILE;
    e.config_name = "config.json";
    bool written = write_model(what, &e, error);
    end_export(&e);
    return written;
}

bool mtf_published_adapters_write(const MtfCheckpointed *what, const char *folder, const char *base,
                                  GError **error) {
    Export e = begin_export(mtf_checkpointed_graph(what), folder);
    e.file_name = MTF_ADAPTER_FILE;
    e.config_name = MTF_ADAPTER_CONFIG;
    e.config = mtf_adapter_config_print(e.graph, base, error);
    bool written = e.config != NULL &&
                   visit_weights(e.graph, OF_ADAPTERS, add_writing, &e, error) &&
                   write_file(what, &e, error);
    end_export(&e);
    return written;
}
