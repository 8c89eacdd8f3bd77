// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/graph_json.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/nearest_name.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/optimizer.h"
#include "layouts/graph_file/graph_fields.h"
#include "layouts/graph_file/graph_link.h"
#include "layouts/graph_file/window_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_ELEMENTS (INT64_C(1) << 53)
#define MAX_TOTAL_BYTES (INT64_C(1) << 61)
#define MAX_REPEAT 2000000

/* ---- dimensions ---- */

/* The names of all dimensions, with a NULL behind them. */
static GPtrArray *dimension_names(const MtfGraph *graph) {
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < graph->dimensions->len; i++)
        g_ptr_array_add(names, mtf_graph_dimension(graph, (int)i)->name);
    g_ptr_array_add(names, NULL);
    return names;
}

static bool check_overrides(const MtfGraph *graph, const MtfJson *where,
                            const MtfSizeOverrides *overrides, GError **error) {
    if (overrides == NULL || overrides->names == NULL)
        return true;
    g_autoptr(GPtrArray) known = dimension_names(graph);
    for (int i = 0; overrides->names[i] != NULL; i++) {
        const char *name = overrides->names[i];
        g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)known->pdata);
        if (mtf_graph_find_dimension(graph, name) < 0)
            return mtf_input_error(error,
                                   "%s: \"%s\", which is to get another size, is not a "
                                   "dimension of this graph%s",
                                   where->file, name, hint);
    }
    return true;
}

/* Adds to `names` (const char *) what `rename` operations below a node of the file call the dimension
 * `name`, or what they make it from: those are the same size. */
static void add_renamed(const cJSON *node, const char *name, GPtrArray *names) {
    const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, "op"));
    const char *from = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, "from"));
    const char *to = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, "to"));
    if (g_strcmp0(op, "rename") == 0 && from != NULL && to != NULL) {
        const char *other = strcmp(from, name) == 0 ? to : strcmp(to, name) == 0 ? from : NULL;
        if (other != NULL && !g_ptr_array_find_with_equal_func(names, other, g_str_equal, NULL))
            g_ptr_array_add(names, (gpointer)other);
    }
    for (const cJSON *child = node->child; child != NULL; child = child->next)
        if (cJSON_IsObject(child) || cJSON_IsArray(child))
            add_renamed(child, name, names);
}

/* A dimension and all that it is renamed to and from, itself first (const char *). */
static GPtrArray *names_of_dimension(const MtfJson *root, const char *name) {
    GPtrArray *names = g_ptr_array_new();
    g_ptr_array_add(names, (gpointer)name);
    for (guint i = 0; i < names->len; i++)
        add_renamed(root->node, g_ptr_array_index(names, i), names);
    return names;
}

/* A size given for the dimension itself, or else for one that it is renamed to or from and that has its
 * size in the file. */
static int64_t overridden(const MtfJson *root, const MtfJson *dimensions,
                          const MtfSizeOverrides *overrides, const char *name, int64_t size) {
    if (overrides == NULL || overrides->names == NULL || overrides->names[0] == NULL)
        return size;
    g_autoptr(GPtrArray) names = names_of_dimension(root, name);
    for (guint n = 0; n < names->len; n++)
        for (int i = 0; overrides->names[i] != NULL; i++) {
            const cJSON *other =
                cJSON_GetObjectItemCaseSensitive(dimensions->node, overrides->names[i]);
            if (strcmp(overrides->names[i], g_ptr_array_index(names, n)) == 0 && other != NULL &&
                cJSON_GetNumberValue(other) == (double)size)
                return overrides->sizes[i];
        }
    return size;
}

/* A size, or {"size": 50304, "unpadded": 50257} (`*unpadded` is 0 for a mere size). */
static bool read_size(const MtfJson *where, int64_t *size, int64_t *unpadded, GError **error) {
    static const char *const keys[] = { "size", "unpadded", NULL };
    *unpadded = 0;
    if (!cJSON_IsObject(where->node))
        return mtf_json_integer(where, 1, MTF_JSON_MAX_INTEGER, size, error);
    return mtf_json_keys(where, keys, error) &&
           mtf_json_get_integer(where, "size", 2, MTF_JSON_MAX_INTEGER, size, error) &&
           mtf_json_get_integer(where, "unpadded", 1, *size - 1, unpadded, error);
}

static bool read_dimension(MtfGraph *graph, const MtfJson *root, const MtfJson *where,
                           const MtfJson *child, const MtfSizeOverrides *overrides,
                           GError **error) {
    int64_t size = 0, unpadded;
    GError *cause = NULL;
    const char *name = mtf_json_key(child);
    if (!read_size(child, &size, &unpadded, error))
        return false;
    int64_t given = overridden(root, where, overrides, name, size);
    if (given != size && unpadded > 0)
        return mtf_json_fail(child, error,
                             "\"%s\" is padded from %" PRId64 " elements: give the graph without "
                             "padding another size, and pad that",
                             name, unpadded);
    int dim = mtf_graph_add_dimension(graph, name, given, &cause);
    if (dim < 0)
        return mtf_field_relay(where, cause, error);
    mtf_graph_dimension(graph, dim)->unpadded = unpadded;
    return true;
}

static bool read_dimensions(MtfGraph *graph, const MtfJson *root, const MtfSizeOverrides *overrides,
                            GError **error) {
    MtfJson dimensions, child;
    if (!mtf_json_get_object(root, "dimensions", &dimensions, error))
        return false;
    bool more = mtf_json_first(&dimensions, &child);
    for (; more; more = mtf_json_next(&child))
        if (!read_dimension(graph, root, &dimensions, &child, overrides, error))
            return false;
    return check_overrides(graph, &dimensions, overrides, error);
}

/* ---- inputs ---- */

static bool read_feed(const MtfJson *object, MtfFeed *feed, GError **error) {
    MtfJson child;
    const char *words[MTF_FEEDS + 1] = { NULL };
    for (int i = 0; i < MTF_FEEDS; i++)
        words[i] = mtf_feed_name((MtfFeed)i);
    int index = 0;
    if (!mtf_json_get(object, "feed", &child, error) ||
        !mtf_field_word(&child, "a feed", words, &index, error))
        return false;
    *feed = (MtfFeed)index;
    return true;
}

static bool check_feed_type(const MtfJson *where, const char *name, MtfFeed feed, MtfDtype dtype,
                            GError **error) {
    bool integer = mtf_feed_is_integer(feed), truth = feed == MTF_FEED_MASK;
    return (integer ? mtf_dtype_is_integer(dtype)
                    : mtf_dtype_is_float(dtype) || (truth && dtype == MTF_BOOL)) ||
           mtf_json_fail(where, error,
                         "input \"%s\": feed \"%s\" gives %s, so its dtype cannot be %s", name,
                         mtf_feed_name(feed),
                         integer ? "int32 or int64"
                         : truth ? "float32, float64 or bool"
                                 : "float32 or float64",
                         mtf_dtype_name(dtype));
}

static bool read_input(MtfGraph *graph, const MtfJson *where, GError **error) {
    static const char *const keys[] = { "name", "dims", "dtype", "feed", NULL };
    MtfJson dims;
    const char *name;
    MtfShape shape;
    MtfDtype dtype = MTF_F32;
    MtfFeed feed;
    GError *cause = NULL;
    if (!mtf_json_keys(where, keys, error) || !mtf_json_get_string(where, "name", &name, error) ||
        !mtf_json_get(where, "dims", &dims, error) ||
        !mtf_field_dims(graph, &dims, &shape, error) || !mtf_field_dtype(where, &dtype, error) ||
        !read_feed(where, &feed, error) || !check_feed_type(where, name, feed, dtype, error))
        return false;
    return mtf_graph_add_input(graph, name, &shape, dtype, feed, &cause) >= 0 ||
           mtf_field_relay(where, cause, error);
}

static bool read_inputs(MtfGraph *graph, const MtfJson *root, GError **error) {
    MtfJson list, child;
    if (!mtf_json_find(root, "inputs", &list))
        return true;
    if (!mtf_json_array(&list, error))
        return false;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!read_input(graph, &child, error))
            return false;
    return true;
}

/* ---- loss, updates, repeats ---- */

static bool read_loss(MtfGraph *graph, const MtfJson *root, const MtfLinker *linker,
                      GError **error) {
    MtfJson child;
    const char *name;
    if (!mtf_json_find(root, "loss", &child))
        return true;
    if (!mtf_json_string(&child, &name, error))
        return false;
    int loss = mtf_linker_find(linker, &child, "loss", name, error);
    if (loss < 0)
        return false;
    const MtfTensor *tensor = mtf_graph_tensor(graph, loss);
    g_autofree char *format = mtf_graph_tensor_format(graph, loss);
    if (tensor->shape.rank > 0 || !mtf_dtype_is_float(tensor->dtype))
        return mtf_json_fail(&child, error,
                             "loss \"%s\" is %s; a loss is one number without dimensions: reduce "
                             "it first",
                             name, format);
    if (tensor->producer < 0)
        return mtf_json_fail(&child, error, "loss \"%s\" is not the result of an operation", name);
    graph->loss = loss;
    return true;
}

/* "outputs": what the graph is run for. */
static bool read_outputs(MtfGraph *graph, const MtfJson *root, const MtfLinker *linker,
                         GError **error) {
    MtfJson list, child;
    int n = 0;
    if (!mtf_json_find(root, "outputs", &list))
        return true;
    if (!mtf_json_array(&list, error))
        return false;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child)) {
        const char *name;
        if (!mtf_json_string(&child, &name, error))
            return false;
        int output = mtf_linker_find(linker, &child, "output", name, error);
        if (output < 0)
            return false;
        MtfTensor *tensor = mtf_graph_tensor(graph, output);
        if (tensor->producer < 0)
            return mtf_json_fail(&child, error, "output \"%s\" is not the result of an operation",
                                 name);
        if (tensor->output > 0)
            return mtf_json_fail(&child, error, "output \"%s\" is there twice", name);
        tensor->output = ++n;
    }
    return true;
}

static bool read_update(MtfGraph *graph, const MtfJson *where, const MtfLinker *linker,
                        GHashTable *updated, GError **error) {
    static const char *const keys[] = { "variable", "value", NULL };
    const char *names[2];
    int tensors[2];
    if (!mtf_json_keys(where, keys, error))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!mtf_json_get_string(where, keys[i], &names[i], error))
            return false;
        tensors[i] = mtf_linker_find(linker, where, keys[i], names[i], error);
        if (tensors[i] < 0)
            return false;
    }
    const MtfTensor *variable = mtf_graph_tensor(graph, tensors[0]);
    const MtfTensor *value = mtf_graph_tensor(graph, tensors[1]);
    if (variable->source != MTF_SOURCE_VARIABLE)
        return mtf_json_fail(where, error, "\"%s\" is not a variable", names[0]);
    if (!g_hash_table_add(updated, GINT_TO_POINTER(tensors[0])))
        return mtf_json_fail(where, error, "variable \"%s\" is updated twice", names[0]);
    if (variable->dtype != value->dtype || !mtf_shape_equal(&variable->shape, &value->shape))
        return mtf_json_fail(where, error,
                             "variable \"%s\" and its next value \"%s\" must have the same "
                             "dimensions and type",
                             names[0], names[1]);
    mtf_graph_add_update(graph, tensors[0], tensors[1]);
    return true;
}

static bool read_updates(MtfGraph *graph, const MtfJson *root, const MtfLinker *linker,
                         GError **error) {
    g_autoptr(GHashTable) updated = g_hash_table_new(NULL, NULL);
    MtfJson list, child;
    if (!mtf_json_find(root, "updates", &list))
        return true;
    if (!mtf_json_array(&list, error))
        return false;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!read_update(graph, &child, linker, updated, error))
            return false;
    return true;
}

/* The names of blocks that were unrolled before the file was written. */
static bool read_repeats(MtfGraph *graph, const MtfJson *root, GError **error) {
    MtfJson map, child;
    if (!mtf_json_find(root, "repeats", &map))
        return true;
    if (!mtf_json_object(&map, error))
        return false;
    for (bool more = mtf_json_first(&map, &child); more; more = mtf_json_next(&child)) {
        int64_t count = 0;
        const char *name = mtf_json_key(&child);
        if (!mtf_json_integer(&child, 1, MAX_REPEAT, &count, error))
            return false;
        if (!mtf_tensor_name_is_legal(name) || mtf_graph_find_repeat(graph, name) > 0)
            return mtf_json_fail(&map, error, "\"%s\" is not a new name of a repeated block", name);
        mtf_graph_add_repeat(graph, name, (int)count);
    }
    return true;
}

static bool check_loop(const MtfGraph *graph, const MtfJson *where, const char *name, int dim,
                       GError **error) {
    for (guint i = 0; i < graph->loops->len; i++)
        if (strcmp(g_array_index(graph->loops, MtfLoop, i).name, name) == 0)
            return mtf_json_fail(where, error, "two loops are called \"%s\"", name);
    return (mtf_tensor_name_is_legal(name) && mtf_graph_size(graph, dim) <= MTF_MAX_ITERATIONS) ||
           mtf_json_fail(where, error, "a loop has a name and runs at most %d times",
                         MTF_MAX_ITERATIONS);
}

/* The loops that operations of the file name. */
static bool read_loop(MtfGraph *graph, const MtfJson *where, GError **error) {
    static const char *const keys[] = { "name", "dimension", "reverse", NULL };
    MtfJson dimension, reverse;
    const char *name;
    int dim = -1;
    bool backwards = false;
    if (!mtf_json_keys(where, keys, error) || !mtf_json_get_string(where, "name", &name, error) ||
        !mtf_json_get(where, "dimension", &dimension, error) ||
        !mtf_field_dimension(graph, &dimension, &dim, error) ||
        (mtf_json_find(where, "reverse", &reverse) &&
         !mtf_json_boolean(&reverse, &backwards, error)) ||
        !check_loop(graph, where, name, dim, error))
        return false;
    mtf_graph_add_loop(graph, name, dim, backwards);
    return true;
}

static bool read_loops(MtfGraph *graph, const MtfJson *root, GError **error) {
    MtfJson list, child;
    if (!mtf_json_find(root, "loops", &list))
        return true;
    if (!mtf_json_array(&list, error))
        return false;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!read_loop(graph, &child, error))
            return false;
    return true;
}

/* ---- optimizer ---- */

static bool check_optimizer_keys(const MtfJson *where, const char *kind, GError **error) {
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    g_ptr_array_add(keys, (char *)"kind");
    g_ptr_array_add(keys, (char *)"schedule");
    const MtfOptimizerNumber *number = mtf_optimizer_numbers();
    for (; number->name != NULL; number++)
        if (mtf_optimizer_has(kind, number))
            g_ptr_array_add(keys, (char *)number->name);
    g_ptr_array_add(keys, NULL);
    return mtf_json_keys(where, (const char *const *)keys->pdata, error);
}

static bool read_optimizer_number(const MtfJson *where, const MtfOptimizerNumber *number,
                                  MtfOptimizer *optimizer, GError **error) {
    MtfJson child;
    double value = 0;
    if (!mtf_json_find(where, number->name, &child))
        return true;
    if (!mtf_json_number(&child, &value, error))
        return false;
    if (value < number->low && isinf(number->high))
        return mtf_json_fail(&child, error, "\"%s\" is %g, which is not at least %g", number->name,
                             value, number->low);
    if (!(value >= number->low && value < number->high))
        return mtf_json_fail(&child, error, "\"%s\" is %g, which is not at least %g and below %g",
                             number->name, value, number->low, number->high);
    G_STRUCT_MEMBER(double, optimizer, number->offset) = value;
    return true;
}

static bool read_optimizer_fields(const MtfJson *where, MtfOptimizer *optimizer, GError **error) {
    MtfJson child;
    const MtfOptimizerNumber *number = mtf_optimizer_numbers();
    for (; number->name != NULL; number++)
        if (mtf_optimizer_has(optimizer->kind, number) &&
            !read_optimizer_number(where, number, optimizer, error))
            return false;
    int schedule = 0;
    if (mtf_json_find(where, "schedule", &child) &&
        !mtf_field_word(&child, "a schedule", mtf_schedules(), &schedule, error))
        return false;
    g_free(optimizer->schedule);
    optimizer->schedule = g_strdup(mtf_schedules()[schedule]);
    g_autofree char *lack = mtf_optimizer_lacks(optimizer);
    return lack == NULL || mtf_json_fail(where, error, "%s", lack);
}

static bool read_optimizer(MtfGraph *graph, const MtfJson *root, GError **error) {
    MtfJson where, child;
    int kind = 0;
    if (!mtf_json_find(root, "optimizer", &where))
        return true;
    if (!mtf_json_get(&where, "kind", &child, error) ||
        !mtf_field_word(&child, "an optimizer", mtf_optimizer_kinds(), &kind, error) ||
        !check_optimizer_keys(&where, mtf_optimizer_kinds()[kind], error) ||
        !mtf_json_get(&where, "rate", &child, error))
        return false;
    graph->optimizer = mtf_optimizer_standard(mtf_optimizer_kinds()[kind], 0);
    return read_optimizer_fields(&where, &graph->optimizer, error);
}

/* ---- the whole ---- */

/* Sums over the graph stay inside 64 bits, with room for counting things several times. */
static bool check_total(const MtfGraph *graph, const MtfJson *root, GError **error) {
    int64_t bytes = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        bytes += mtf_graph_tensor_bytes(graph, t);
        if (bytes > MAX_TOTAL_BYTES)
            return mtf_json_fail(root, error,
                                 "the tensors up to \"%s\" hold more than 2^61 bytes together",
                                 mtf_graph_tensor(graph, t)->name);
    }
    return mtf_graph_parameters(graph) <= MAX_ELEMENTS ||
           mtf_json_fail(root, error, "the variables hold more than 2^53 elements together");
}

/* By repeat; free with g_free. */
static bool *blocks_with_layers(const MtfGraph *graph) {
    bool *has_layers = g_new0(bool, graph->repeats->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        int block = mtf_graph_tensor(graph, t)->layer.block;
        if (block > 0)
            has_layers[block - 1] = true;
    }
    return has_layers;
}

/* Every block that was unrolled before has operations that say so. */
static bool check_repeats(const MtfGraph *graph, const MtfJson *root, int unrolled,
                          GError **error) {
    g_autofree bool *has_layers = blocks_with_layers(graph);
    for (int i = 0; i < unrolled; i++)
        if (!has_layers[i])
            return mtf_json_fail(root, error,
                                 "\"repeats\" has block \"%s\", but no operation or variable "
                                 "says that it is of this \"block\" and which \"iteration\"; "
                                 "graphs written by older versions are to be written again",
                                 g_array_index(graph->repeats, MtfRepeat, i).name);
    return true;
}

/* Any text: whoever reads it later judges it. */
static bool read_config(MtfGraph *graph, const MtfJson *root, GError **error) {
    MtfJson value;
    const char *text;
    if (!mtf_json_find(root, "config", &value))
        return true;
    if (!mtf_json_string(&value, &text, error))
        return false;
    graph->config = g_strdup(text);
    return true;
}

static bool read_rest(MtfGraph *graph, const MtfJson *root, const MtfSizeOverrides *overrides,
                      GError **error) {
    if (!read_dimensions(graph, root, overrides, error) || !read_inputs(graph, root, error) ||
        !read_loops(graph, root, error) || !read_repeats(graph, root, error))
        return false;
    int unrolled = (int)graph->repeats->len;
    g_autoptr(MtfBlockText) text = mtf_graph_text_read(graph, root, error);
    if (text == NULL)
        return false;
    g_autoptr(MtfLinker) linker = mtf_graph_link(graph, text, error);
    return linker != NULL && read_loss(graph, root, linker, error) &&
           read_outputs(graph, root, linker, error) && read_updates(graph, root, linker, error) &&
           check_repeats(graph, root, unrolled, error) && read_optimizer(graph, root, error) &&
           read_config(graph, root, error) && check_total(graph, root, error);
}

MtfGraph *mtf_graph_from_json(const MtfJson *root, const MtfSizeOverrides *overrides,
                              GError **error) {
    static const char *const keys[] = { "meshtf_graph", "name",       "dimensions", "inputs",
                                        "variables",    "operations", "loss",       "outputs",
                                        "optimizer",    "updates",    "repeats",    "loops",
                                        "config",       NULL };
    const char *name;
    if (!mtf_json_version(root, "meshtf_graph", 1, error) || !mtf_json_keys(root, keys, error) ||
        !mtf_json_get_string(root, "name", &name, error))
        return NULL;
    g_autoptr(MtfGraph) graph = mtf_graph_new(name);
    return read_rest(graph, root, overrides, error) ? g_steal_pointer(&graph) : NULL;
}

MtfGraph *mtf_graph_load(const char *path, const MtfSizeOverrides *overrides, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_graph_from_json(&root, overrides, error);
}

/* ---- Writing ---------------------------------------------------------------------------------- */

static cJSON *dims_to_json(const MtfGraph *graph, const MtfShape *shape) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < shape->rank; i++)
        cJSON_AddItemToArray(list,
                             cJSON_CreateString(mtf_graph_dimension(graph, shape->dims[i])->name));
    return list;
}

static cJSON *dimensions_to_json(const MtfGraph *graph) {
    cJSON *map = cJSON_CreateObject();
    for (int i = 0; i < (int)graph->dimensions->len; i++) {
        const MtfDimension *dimension = mtf_graph_dimension(graph, i);
        cJSON *padded = dimension->unpadded > 0 ? cJSON_CreateObject() : NULL;
        mtf_json_add_integer(padded != NULL ? padded : map,
                             padded != NULL ? "size" : dimension->name, dimension->size);
        if (padded == NULL)
            continue;
        mtf_json_add_integer(padded, "unpadded", dimension->unpadded);
        cJSON_AddItemToObject(map, dimension->name, padded);
    }
    return map;
}

static cJSON *init_to_json(const MtfInit *init) {
    if (init->kind == MTF_INIT_CONSTANT && (init->value == 0 || init->value == 1))
        return cJSON_CreateString(init->value == 0 ? "zeros" : "ones");
    static const char *const keys[] = {
        [MTF_INIT_CONSTANT] = "constant",
        [MTF_INIT_NORMAL] = "normal",
        [MTF_INIT_UNIFORM] = "uniform",
    };
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_number(object, keys[init->kind], init->value);
    return object;
}

/* What inputs and variables have in common. */
static cJSON *source_to_json(const MtfGraph *graph, const MtfTensor *tensor) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", tensor->name);
    cJSON_AddItemToObject(object, "dims", dims_to_json(graph, &tensor->shape));
    cJSON_AddStringToObject(object, "dtype", mtf_dtype_name(tensor->dtype));
    return object;
}

static void add_layer(const MtfGraph *graph, MtfLayer layer, cJSON *object) {
    if (layer.block == 0)
        return;
    cJSON_AddStringToObject(object, "block",
                            g_array_index(graph->repeats, MtfRepeat, layer.block - 1).name);
    mtf_json_add_integer(object, "iteration", layer.iteration);
}

static cJSON *adapter_to_json(const MtfAdapter *adapter) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "down", adapter->down);
    cJSON_AddStringToObject(object, "up", adapter->up);
    mtf_json_add_number(object, "scale", adapter->scale);
    return object;
}

static cJSON *sources_to_json(const MtfGraph *graph, MtfSource source) {
    cJSON *list = cJSON_CreateArray();
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != source)
            continue;
        cJSON *object = source_to_json(graph, tensor);
        if (source == MTF_SOURCE_INPUT)
            cJSON_AddStringToObject(object, "feed", mtf_feed_name(tensor->feed));
        else
            cJSON_AddItemToObject(object, "init", init_to_json(&tensor->init));
        if (source == MTF_SOURCE_VARIABLE && tensor->memory != MTF_MEMORY_VARIABLE)
            cJSON_AddStringToObject(object, "memory_kind", mtf_memory_name(tensor->memory));
        if (tensor->frozen)
            cJSON_AddBoolToObject(object, "frozen", true);
        if (tensor->undecayed)
            cJSON_AddBoolToObject(object, "decay", false);
        if (tensor->stored != NULL)
            cJSON_AddStringToObject(object, "stored", tensor->stored);
        add_layer(graph, tensor->layer, object);
        if (tensor->adapter.down != NULL)
            cJSON_AddItemToObject(object, "adapter", adapter_to_json(&tensor->adapter));
        if (tensor->scale != NULL)
            cJSON_AddStringToObject(object, "scale", tensor->scale);
        if (tensor->mean_of != NULL)
            cJSON_AddStringToObject(object, "mean_of", tensor->mean_of);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

/* Left out where they follow from the inputs. */
static bool needs_dims(const MtfOperationRow *row) {
    return row->dims != MTF_DIMS_FIRST && row->dims != MTF_DIMS_RENAMED &&
           row->dims != MTF_DIMS_REPLACED && row->dims != MTF_DIMS_WITHOUT &&
           row->dims != MTF_DIMS_WITH;
}

static void add_memory(const MtfGraph *graph, const MtfOperation *operation, cJSON *object) {
    MtfMemoryKind first = mtf_graph_tensor(graph, operation->outputs[0])->memory;
    bool alike = true;
    for (int k = 1; k < operation->n_outputs; k++)
        alike = alike && mtf_graph_tensor(graph, operation->outputs[k])->memory == first;
    if (alike && first != MTF_MEMORY_ACTIVATION)
        cJSON_AddStringToObject(object, "memory_kind", mtf_memory_name(first));
    if (alike)
        return;
    cJSON *list = cJSON_AddArrayToObject(object, "memory_kind");
    for (int k = 0; k < operation->n_outputs; k++) {
        MtfMemoryKind kind = mtf_graph_tensor(graph, operation->outputs[k])->memory;
        cJSON_AddItemToArray(list, cJSON_CreateString(mtf_memory_name(kind)));
    }
}

static void add_attribute(const MtfGraph *graph, const MtfAttributes *attributes,
                          const MtfAttributeSpec *spec, cJSON *object) {
    const void *slot = G_STRUCT_MEMBER_P(attributes, (glong)spec->offset);
    switch (spec->type) {
    case MTF_ATTRIBUTE_NUMBER:
        if (spec->required || *(const double *)slot != spec->standard)
            mtf_json_add_number(object, spec->name, *(const double *)slot);
        break;
    case MTF_ATTRIBUTE_DIMENSION:
        if (*(const int *)slot >= 0)
            cJSON_AddStringToObject(object, spec->name,
                                    mtf_graph_dimension(graph, *(const int *)slot)->name);
        break;
    case MTF_ATTRIBUTE_STRING:
        if (*(char *const *)slot != NULL)
            cJSON_AddStringToObject(object, spec->name, *(char *const *)slot);
        break;
    case MTF_ATTRIBUTE_WINDOWS:
        cJSON_AddItemToObject(object, spec->name, mtf_windows_to_json(graph, attributes));
        break;
    }
}

static const MtfLoop *loop_at(const MtfGraph *graph, int loop) {
    return &g_array_index(graph->loops, MtfLoop, loop - 1);
}

static cJSON *operation_to_json(const MtfGraph *graph, const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    const MtfTensor *output = mtf_graph_tensor(graph, operation->outputs[0]);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", operation->name);
    cJSON_AddStringToObject(object, "op", row->name);
    cJSON *inputs = cJSON_AddArrayToObject(object, "inputs");
    for (int k = 0; k < operation->n_inputs; k++)
        cJSON_AddItemToArray(
            inputs, cJSON_CreateString(mtf_graph_tensor(graph, operation->inputs[k])->name));
    if (needs_dims(row))
        cJSON_AddItemToObject(object, "dims", dims_to_json(graph, &output->shape));
    if (mtf_operation_needs_dtype(graph, operation))
        cJSON_AddStringToObject(object, "dtype", mtf_dtype_name(output->dtype));
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++)
        add_attribute(graph, &operation->attributes, spec, object);
    if (operation->phase != MTF_PHASE_FORWARD)
        cJSON_AddStringToObject(object, "phase", mtf_phase_name(operation->phase));
    if (operation->stage > 0)
        mtf_json_add_integer(object, "stage", operation->stage);
    if (operation->loop > 0)
        cJSON_AddStringToObject(object, "loop", loop_at(graph, operation->loop)->name);
    if (operation->origin != MTF_ORIGIN_WRITTEN) {
        cJSON_AddStringToObject(object, "origin", mtf_origin_name(operation->origin));
        cJSON_AddStringToObject(object, "of", operation->of);
    }
    add_layer(graph, operation->layer, object);
    add_memory(graph, operation, object);
    return object;
}

static cJSON *operations_to_json(const MtfGraph *graph) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < (int)graph->operations->len; i++)
        cJSON_AddItemToArray(list, operation_to_json(graph, mtf_graph_operation(graph, i)));
    return list;
}

static cJSON *optimizer_to_json(const MtfOptimizer *optimizer) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", optimizer->kind);
    if (optimizer->schedule != NULL)
        cJSON_AddStringToObject(object, "schedule", optimizer->schedule);
    const MtfOptimizerNumber *number = mtf_optimizer_numbers();
    for (; number->name != NULL; number++)
        if (mtf_optimizer_has(optimizer->kind, number) &&
            !(number->optional &&
              G_STRUCT_MEMBER(double, optimizer, number->offset) == number->standard))
            mtf_json_add_number(object, number->name,
                                G_STRUCT_MEMBER(double, optimizer, number->offset));
    return object;
}

static cJSON *updates_to_json(const MtfGraph *graph) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "variable",
                                mtf_graph_tensor(graph, update->variable)->name);
        cJSON_AddStringToObject(object, "value", mtf_graph_tensor(graph, update->value)->name);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

/* Blocks with a layer in this graph: a pipeline stage may hold none of a block. */
static cJSON *repeats_to_json(const MtfGraph *graph) {
    cJSON *map = cJSON_CreateObject();
    g_autofree bool *has_layers = blocks_with_layers(graph);
    for (guint i = 0; i < graph->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(graph->repeats, MtfRepeat, i);
        if (has_layers[i])
            mtf_json_add_integer(map, repeat->name, repeat->count);
    }
    return map;
}

static cJSON *loops_to_json(const MtfGraph *graph) {
    cJSON *list = cJSON_CreateArray();
    for (int l = 1; l <= (int)graph->loops->len; l++) {
        const MtfLoop *loop = loop_at(graph, l);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", loop->name);
        cJSON_AddStringToObject(object, "dimension",
                                mtf_graph_dimension(graph, loop->dimension)->name);
        if (loop->reverse)
            cJSON_AddBoolToObject(object, "reverse", true);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static cJSON *outputs_to_json(const MtfGraph *graph) {
    g_autoptr(GArray) outputs = mtf_graph_outputs(graph);
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < outputs->len; i++)
        cJSON_AddItemToArray(
            list,
            cJSON_CreateString(mtf_graph_tensor(graph, g_array_index(outputs, int, i))->name));
    return list;
}

/* Adds a list or map, unless it is empty. */
static void add_filled(cJSON *root, const char *key, cJSON *items) {
    if (items->child != NULL)
        cJSON_AddItemToObject(root, key, items);
    else
        cJSON_Delete(items);
}

cJSON *mtf_graph_to_json(const MtfGraph *graph) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_integer(root, "meshtf_graph", 1);
    cJSON_AddStringToObject(root, "name", graph->name);
    cJSON_AddItemToObject(root, "dimensions", dimensions_to_json(graph));
    cJSON_AddItemToObject(root, "inputs", sources_to_json(graph, MTF_SOURCE_INPUT));
    cJSON_AddItemToObject(root, "variables", sources_to_json(graph, MTF_SOURCE_VARIABLE));
    cJSON_AddItemToObject(root, "operations", operations_to_json(graph));
    if (graph->loss >= 0)
        cJSON_AddStringToObject(root, "loss", mtf_graph_tensor(graph, graph->loss)->name);
    add_filled(root, "outputs", outputs_to_json(graph));
    if (graph->optimizer.kind != NULL)
        cJSON_AddItemToObject(root, "optimizer", optimizer_to_json(&graph->optimizer));
    if (graph->updates->len > 0)
        cJSON_AddItemToObject(root, "updates", updates_to_json(graph));
    add_filled(root, "repeats", repeats_to_json(graph));
    add_filled(root, "loops", loops_to_json(graph));
    if (graph->config != NULL)
        cJSON_AddStringToObject(root, "config", graph->config);
    return root;
}

bool mtf_graph_save(const MtfGraph *graph, const char *path, GError **error) {
    return mtf_json_save(mtf_graph_to_json(graph), path, error);
}
