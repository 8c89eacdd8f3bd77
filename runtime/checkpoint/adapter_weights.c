// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/adapter_weights.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "layouts/base/json_writer.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WEIGHT ".weight"

struct MtfMergedWeights {
    const MtfWorker *worker;
    GArray *tensors;   /* int */
    GPtrArray *values; /* of the slices as they were */
};

GHashTable *mtf_adapter_variables(const MtfGraph *graph) {
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfAdapter *adapter = &mtf_graph_tensor(graph, t)->adapter;
        if (adapter->down == NULL)
            continue;
        g_hash_table_add(names, adapter->down);
        g_hash_table_add(names, adapter->up);
    }
    return names;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* A variable whole: every rank has its values, row-major. */
typedef struct {
    MtfShape shape;
    double *values;
} Whole;

static bool speaks(const MtfWorker *worker, int tensor) {
    const MtfProgram *program = worker->program;
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfPlacement *placement =
        &mtf_program_buffer(program, program->tensor_buffers[tensor])->placement;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, worker->rank, a) > 0)
            return false;
    return true;
}

static Whole gather_variable(const MtfCheckpointed *what, const char *name) {
    const MtfGraph *graph = what->worker->program->graph;
    int tensor = mtf_graph_find_tensor(graph, name);
    const MtfOperand *slice = mtf_worker_tensor(what->worker, tensor);
    Whole whole = { .shape = mtf_graph_tensor(graph, tensor)->shape };
    int64_t n = mtf_graph_elements(graph, &whole.shape);
    whole.values = g_new0(double, n);
    for (int64_t i = 0; speaks(what->worker, tensor) && i < mtf_slice_elements(slice); i++)
        whole.values[mtf_slice_global_index(slice, i)] = mtf_slice_get(slice, i);
    mtf_agree_sums(what->control, whole.values, n);
    return whole;
}

/* Elements from one index of a dimension to the next; 0 where the shape lacks it. */
static int64_t stride_of(const MtfGraph *graph, const MtfShape *shape, int dim) {
    int at = mtf_shape_find(shape, dim);
    int64_t stride = at >= 0 ? 1 : 0;
    for (int i = at + 1; at >= 0 && i < shape->rank; i++)
        stride *= mtf_graph_size(graph, shape->dims[i]);
    return stride;
}

/* The dimension that both have and the weight has not. */
static int rank_dimension(const MtfShape *weight, const MtfShape *down) {
    for (int i = 0; i < down->rank; i++)
        if (mtf_shape_find(weight, down->dims[i]) < 0)
            return down->dims[i];
    return -1;
}

static void add_product(const MtfGraph *graph, const MtfOperand *slice, const MtfShape *weight,
                        const Whole parts[2], double scale) {
    int rank = rank_dimension(weight, &parts[0].shape);
    int64_t ranks = mtf_graph_size(graph, rank), strides[2][MTF_MAX_RANK], steps[2];
    for (int p = 0; p < 2; p++) {
        steps[p] = stride_of(graph, &parts[p].shape, rank);
        for (int k = 0; k < slice->rank; k++)
            strides[p][k] = stride_of(graph, &parts[p].shape, slice->dims[k]);
    }
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
        int64_t at[2] = { 0, 0 }, rest = i;
        for (int k = slice->rank - 1; k >= 0; k--) {
            int64_t index = slice->begin[k] + rest % slice->size[k];
            rest /= slice->size[k];
            at[0] += index * strides[0][k];
            at[1] += index * strides[1][k];
        }
        double sum = 0;
        for (int64_t r = 0; r < ranks; r++)
            sum += parts[0].values[at[0] + r * steps[0]] * parts[1].values[at[1] + r * steps[1]];
        mtf_slice_set(slice, i, mtf_slice_get(slice, i) + scale * sum);
    }
}

static gsize slice_bytes(const MtfOperand *slice) {
    return (gsize)(mtf_slice_elements(slice) * mtf_dtype_bytes(slice->dtype));
}

static void merge_variable(const MtfCheckpointed *what, MtfMergedWeights *merged, int t) {
    const MtfGraph *graph = what->worker->program->graph;
    const MtfTensor *tensor = mtf_graph_tensor(graph, t);
    const MtfOperand *slice = mtf_worker_tensor(what->worker, t);
    Whole parts[2] = { gather_variable(what, tensor->adapter.down),
                       gather_variable(what, tensor->adapter.up) };
    g_array_append_val(merged->tensors, t);
    g_ptr_array_add(merged->values, g_memdup2(slice->data, slice_bytes(slice)));
    add_product(graph, slice, &tensor->shape, parts, tensor->adapter.scale);
    g_free(parts[0].values);
    g_free(parts[1].values);
}

MtfMergedWeights *mtf_adapters_merge(const MtfCheckpointed *what) {
    const MtfGraph *graph = what->worker->program->graph;
    MtfMergedWeights *merged = g_new0(MtfMergedWeights, 1);
    merged->worker = what->worker;
    merged->tensors = g_array_new(FALSE, FALSE, sizeof(int));
    merged->values = g_ptr_array_new_with_free_func(g_free);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        if (mtf_graph_tensor(graph, t)->adapter.down != NULL)
            merge_variable(what, merged, t);
    }
    return merged;
}

void mtf_adapters_unmerge(MtfMergedWeights *merged) {
    for (guint i = 0; i < merged->tensors->len; i++) {
        const MtfOperand *slice =
            mtf_worker_tensor(merged->worker, g_array_index(merged->tensors, int, i));
        if (slice_bytes(slice) > 0)
            memcpy(slice->data, merged->values->pdata[i], slice_bytes(slice));
    }
    g_array_unref(merged->tensors);
    g_ptr_array_unref(merged->values);
    g_free(merged);
}

/* ---- The config ------------------------------------------------------------------------------ */

/* "q_proj" of "model.layers.0.self_attn.q_proj.weight[64,64]"; NULL where files do not have it so. */
static char *module_name(const char *stored) {
    const char *end = stored != NULL ? strstr(stored, WEIGHT "[") : NULL;
    if (end == NULL)
        return NULL;
    g_autofree char *module = g_strndup(stored, (gsize)(end - stored));
    const char *dot = strrchr(module, '.');
    return g_strdup(dot != NULL ? dot + 1 : module);
}

/* What all adapters of a model have in common, as the first has it, and the modules of all. */
typedef struct {
    int64_t rank;
    double scale;
    bool fans_in_out; /* weights lie [inputs, outputs] */
    GPtrArray *modules;
} Common;

static bool add_module(const MtfGraph *graph, const MtfTensor *weight, Common *c, GError **error) {
    const MtfShape *down =
        &mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, weight->adapter.down))->shape;
    g_autofree char *module = module_name(weight->stored);
    if (module == NULL)
        return mtf_input_error(error,
                               "the model does not say where published files keep \"%s\": plans of "
                               "a config.json do (meshtf-plan import DIR --lora RANK)",
                               weight->name);
    c->rank = mtf_graph_size(graph, rank_dimension(&weight->shape, down));
    c->scale = weight->adapter.scale;
    c->fans_in_out = mtf_shape_find(down, weight->shape.dims[0]) >= 0;
    if (!g_ptr_array_find_with_equal_func(c->modules, module, g_str_equal, NULL))
        g_ptr_array_add(c->modules, g_steal_pointer(&module));
    return true;
}

static char *print_config(const Common *c, const char *base) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "peft_type", "LORA");
    cJSON_AddStringToObject(root, "task_type", "CAUSAL_LM");
    if (base != NULL)
        cJSON_AddStringToObject(root, "base_model_name_or_path", base);
    else
        cJSON_AddNullToObject(root, "base_model_name_or_path");
    mtf_json_add_integer(root, "r", c->rank);
    mtf_json_add_number(root, "lora_alpha", c->scale * (double)c->rank);
    mtf_json_add_number(root, "lora_dropout", 0);
    cJSON_AddStringToObject(root, "bias", "none");
    cJSON_AddBoolToObject(root, "fan_in_fan_out", c->fans_in_out);
    cJSON_AddBoolToObject(root, "inference_mode", true);
    cJSON_AddNullToObject(root, "modules_to_save");
    cJSON *modules = cJSON_AddArrayToObject(root, "target_modules");
    for (guint i = 0; i < c->modules->len; i++)
        cJSON_AddItemToArray(modules, cJSON_CreateString(c->modules->pdata[i]));
    char *text = mtf_json_print(root);
    cJSON_Delete(root);
    return text;
}

/* What the adapters of the graph have in common; `modules` are the caller's to unref. */
static bool gather_common(const MtfGraph *graph, Common *c, GError **error) {
    *c = (Common){ .modules = g_ptr_array_new_with_free_func(g_free) };
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->adapter.down != NULL && !add_module(graph, tensor, c, error))
            return false;
    }
    return c->modules->len > 0 ||
           mtf_input_error(error, "the model has no adapters: they are made by meshtf-plan import "
                                  "DIR --lora RANK");
}

char *mtf_adapter_config_print(const MtfGraph *graph, const char *base, GError **error) {
    Common c;
    char *text = gather_common(graph, &c, error) ? print_config(&c, base) : NULL;
    g_ptr_array_unref(c.modules);
    return text;
}

/* Whether something is said at the key: not null, false, empty or "none". */
static bool says_something(const MtfJson *value) {
    const cJSON *node = value->node;
    if (cJSON_IsString(node))
        return strcmp(node->valuestring, "none") != 0;
    return !(cJSON_IsNull(node) || cJSON_IsFalse(node) ||
             ((cJSON_IsArray(node) || cJSON_IsObject(node)) && node->child == NULL));
}

/* What changes what adapters compute and is not there in ours. */
static bool refuse_extras(const MtfJson *root, GError **error) {
    static const char *const extras[] = { "use_dora",          "bias",
                                          "rank_pattern",      "alpha_pattern",
                                          "lora_bias",         "modules_to_save",
                                          "layer_replication", "use_qalora",
                                          "use_bdlora",        "kasa_config",
                                          "arrow_config",      "trainable_token_indices",
                                          "target_parameters" };
    MtfJson value;
    for (gsize i = 0; i < G_N_ELEMENTS(extras); i++)
        if (mtf_json_find(root, extras[i], &value) && says_something(&value))
            return mtf_json_fail(&value, error,
                                 "not supported: adapters are LoRA's two matrices a "
                                 "module, of one rank and scale");
    return true;
}

static bool check_config(const MtfJson *root, const Common *c, GError **error) {
    MtfJson value;
    const char *type;
    double alpha;
    int64_t rank;
    bool by_root = false;
    if (!mtf_json_object(root, error) || !mtf_json_get(root, "peft_type", &value, error) ||
        !mtf_json_string(&value, &type, error))
        return false;
    if (strcmp(type, "LORA") != 0)
        return mtf_json_fail(&value, error, "only LORA is supported, not %s", type);
    if (!refuse_extras(root, error) || !mtf_json_get(root, "r", &value, error) ||
        !mtf_json_integer(&value, 1, INT32_MAX, &rank, error))
        return false;
    if (rank != c->rank)
        return mtf_json_fail(&value, error,
                             "rank %" PRId64 ", but the plan's adapters have %" PRId64, rank,
                             c->rank);
    if (!mtf_json_optional_boolean(root, "use_rslora", &by_root, error))
        return false;
    if (!mtf_json_get(root, "lora_alpha", &value, error) || !mtf_json_number(&value, &alpha, error))
        return false;
    /* Of the root of the rank, the plan's own alpha is the file's times that root. */
    double divisor = by_root ? sqrt((double)rank) : (double)rank, wanted = c->scale * divisor;
    return fabs(alpha - wanted) <= 1e-6 * wanted ||
           mtf_json_fail(&value, error,
                         "alpha %g, but the plan's adapters are for %g: import the model with "
                         "--lora %" PRId64 ":%g",
                         alpha, wanted, rank, alpha / divisor * (double)rank);
}

bool mtf_adapter_config_check(const MtfGraph *graph, const char *path, GError **error) {
    Common c;
    g_autoptr(MtfJsonDocument) document = NULL;
    bool good = gather_common(graph, &c, error);
    if (good)
        document = mtf_json_document_load(path, error);
    if (document != NULL) {
        MtfJson root = mtf_json_root(document);
        good = check_config(&root, &c, error);
    }
    g_ptr_array_unref(c.modules);
    return good && document != NULL;
}
