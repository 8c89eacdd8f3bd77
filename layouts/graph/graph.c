// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/graph.h"

#include "layouts/base/error.h"
#include "layouts/graph/operation_check.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/window.h"

#include <inttypes.h>
#include <string.h>

#define MAX_ELEMENTS (INT64_C(1) << 53)

static void clear_operation(gpointer data) {
    MtfOperation *operation = data;
    g_free(operation->name);
    g_free(operation->inputs);
    g_free(operation->of);
    g_free(operation->attributes.schedule);
    g_free(operation->attributes.stream);
    g_free(operation->attributes.divisors);
    g_free(operation->attributes.long_divisors);
    g_free(operation->attributes.expression);
    g_free(operation->attributes.arguments);
}

/* Strings of its own. */
static void own_strings(MtfAttributes *attributes) {
    attributes->schedule = g_strdup(attributes->schedule);
    attributes->stream = g_strdup(attributes->stream);
    attributes->divisors = g_strdup(attributes->divisors);
    attributes->long_divisors = g_strdup(attributes->long_divisors);
    attributes->expression = g_strdup(attributes->expression);
    attributes->arguments = g_strdup(attributes->arguments);
}

/* Dimensions, repeats and loops begin with the name they own. */
static void clear_name(gpointer data) {
    g_free(*(char **)data);
}

static void clear_tensor(gpointer data) {
    MtfTensor *tensor = data;
    g_free(tensor->name);
    g_free(tensor->stored);
    g_free(tensor->adapter.down);
    g_free(tensor->adapter.up);
    g_free(tensor->scale);
    g_free(tensor->mean_of);
}

void mtf_variable_take_facts(MtfTensor *to, const MtfTensor *from) {
    to->stored = g_strdup(from->stored);
    to->frozen = from->frozen;
    to->undecayed = from->undecayed;
    to->layer = from->layer;
    to->scale = g_strdup(from->scale);
    to->mean_of = g_strdup(from->mean_of);
    to->adapter = (MtfAdapter){ .down = g_strdup(from->adapter.down),
                                .up = g_strdup(from->adapter.up),
                                .scale = from->adapter.scale };
}

static GArray *new_array(guint element_size, GDestroyNotify clear) {
    GArray *array = g_array_new(FALSE, TRUE, element_size);
    if (clear != NULL)
        g_array_set_clear_func(array, clear);
    return array;
}

MtfGraph *mtf_graph_new(const char *name) {
    MtfGraph *graph = g_new0(MtfGraph, 1);
    graph->name = g_strdup(name);
    graph->dimensions = new_array(sizeof(MtfDimension), clear_name);
    graph->tensors = new_array(sizeof(MtfTensor), clear_tensor);
    graph->operations = new_array(sizeof(MtfOperation), clear_operation);
    graph->updates = new_array(sizeof(MtfUpdate), NULL);
    graph->repeats = new_array(sizeof(MtfRepeat), clear_name);
    graph->loops = new_array(sizeof(MtfLoop), clear_name);
    graph->loss = -1;
    graph->tensor_ids = g_hash_table_new(g_str_hash, g_str_equal);
    graph->dimension_ids = g_hash_table_new(g_str_hash, g_str_equal);
    return graph;
}

MtfGraph *mtf_graph_new_like(const MtfGraph *graph) {
    MtfGraph *like = mtf_graph_new(graph->name);
    like->config = g_strdup(graph->config);
    like->logit_bytes = graph->logit_bytes;
    return like;
}

void mtf_graph_free(MtfGraph *graph) {
    if (graph == NULL)
        return;
    g_hash_table_unref(graph->tensor_ids);
    g_hash_table_unref(graph->dimension_ids);
    g_array_unref(graph->dimensions);
    g_array_unref(graph->tensors);
    g_array_unref(graph->operations);
    g_array_unref(graph->updates);
    g_array_unref(graph->repeats);
    g_array_unref(graph->loops);
    g_free(graph->optimizer.kind);
    g_free(graph->optimizer.schedule);
    g_free(graph->name);
    g_free(graph->config);
    g_free(graph);
}

MtfDimension *mtf_graph_dimension(const MtfGraph *graph, int dim) {
    return &g_array_index(graph->dimensions, MtfDimension, dim);
}

/* Takes the name over. */
static void rename_tensor(MtfGraph *graph, int tensor, char *name) {
    MtfTensor *t = mtf_graph_tensor(graph, tensor);
    g_hash_table_remove(graph->tensor_ids, t->name);
    g_free(t->name);
    t->name = name;
    g_hash_table_insert(graph->tensor_ids, t->name, GINT_TO_POINTER(tensor + 1));
}

void mtf_graph_rename(MtfGraph *graph, int tensor, const char *name) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    rename_tensor(graph, tensor, g_strdup(name));
    if (producer < 0)
        return;
    MtfOperation *operation = mtf_graph_operation(graph, producer);
    g_free(operation->name);
    operation->name = g_strdup(name);
    for (int k = 1; k < operation->n_outputs; k++)
        rename_tensor(
            graph, operation->outputs[k],
            g_strdup_printf("%s/%s", name, mtf_operation_row(operation->kind)->suffixes[k]));
}

GArray *mtf_graph_outputs(const MtfGraph *graph) {
    GArray *outputs = g_array_new(FALSE, TRUE, sizeof(int));
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        int place = mtf_graph_tensor(graph, t)->output;
        if (place > (int)outputs->len)
            g_array_set_size(outputs, (guint)place);
        if (place > 0)
            g_array_index(outputs, int, place - 1) = t;
    }
    return outputs;
}

MtfTensor *mtf_graph_tensor(const MtfGraph *graph, int tensor) {
    return &g_array_index(graph->tensors, MtfTensor, tensor);
}

MtfOperation *mtf_graph_operation(const MtfGraph *graph, int operation) {
    return &g_array_index(graph->operations, MtfOperation, operation);
}

int64_t mtf_graph_size(const MtfGraph *graph, int dim) {
    return mtf_graph_dimension(graph, dim)->size;
}

int64_t mtf_graph_unpadded_size(const MtfGraph *graph, int dim) {
    const MtfDimension *dimension = mtf_graph_dimension(graph, dim);
    return dimension->unpadded > 0 ? dimension->unpadded : dimension->size;
}

/* Tables hold index + 1, so that 0 (absent) becomes -1. */
static int find(GHashTable *ids, const char *name) {
    return GPOINTER_TO_INT(g_hash_table_lookup(ids, name)) - 1;
}

int mtf_graph_find_dimension(const MtfGraph *graph, const char *name) {
    return find(graph->dimension_ids, name);
}

int mtf_graph_find_tensor(const MtfGraph *graph, const char *name) {
    return find(graph->tensor_ids, name);
}

int mtf_graph_find_operation(const MtfGraph *graph, const char *name) {
    int tensor = mtf_graph_find_tensor(graph, name);
    if (tensor < 0)
        return -1;
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    return producer >= 0 && strcmp(mtf_graph_operation(graph, producer)->name, name) == 0 ? producer
                                                                                          : -1;
}

static bool name_is_legal(const char *name, const char *forbidden) {
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || strchr(forbidden, *c) != NULL)
            return false;
    return *name != '\0' && g_utf8_validate(name, -1, NULL);
}

static bool dimension_name_is_legal(const char *name) {
    return name_is_legal(name, " ,.;:");
}

bool mtf_tensor_name_is_legal(const char *name) {
    return name_is_legal(name, "");
}

static bool check_dimension(const MtfGraph *graph, const char *name, int64_t size, GError **error) {
    /* What else may stand where placements and strategies name a dimension. */
    static const char *const words[] = { "replicated", "duplicated", "partial", NULL };
    if (!dimension_name_is_legal(name))
        return mtf_input_error(error,
                               "dimension \"%s\": a name holds no space , . ; : or control "
                               "character and is not empty",
                               name);
    if (g_strv_contains(words, name))
        return mtf_input_error(error, "dimension \"%s\": that is a word of layouts", name);
    if (mtf_graph_find_dimension(graph, name) >= 0)
        return mtf_input_error(error, "dimension \"%s\" is given twice", name);
    if (size < 1 || size > MAX_ELEMENTS)
        return mtf_input_error(error, "dimension \"%s\": size %" PRId64 " is not from 1 to 2^53",
                               name, size);
    if (graph->dimensions->len >= INT16_MAX)
        return mtf_input_error(error, "more than %d dimensions", INT16_MAX);
    return true;
}

int mtf_graph_add_dimension(MtfGraph *graph, const char *name, int64_t size, GError **error) {
    if (!check_dimension(graph, name, size, error))
        return -1;
    MtfDimension dimension = { .name = g_strdup(name), .size = size };
    g_array_append_val(graph->dimensions, dimension);
    int id = (int)graph->dimensions->len - 1;
    g_hash_table_insert(graph->dimension_ids, dimension.name, GINT_TO_POINTER(id + 1));
    return id;
}

/* The elements of a shape, or -1 when there are more than 2^53. */
static int64_t checked_elements(const MtfGraph *graph, const MtfShape *shape) {
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = mtf_graph_size(graph, shape->dims[i]);
        if (elements > MAX_ELEMENTS / size)
            return -1;
        elements *= size;
    }
    return elements;
}

static bool check_tensor(const MtfGraph *graph, const char *name, const MtfShape *shape,
                         GError **error) {
    if (!mtf_tensor_name_is_legal(name))
        return mtf_input_error(
            error, "tensor \"%s\": a name is not empty and holds no control character", name);
    if (mtf_graph_find_tensor(graph, name) >= 0)
        return mtf_input_error(error, "the name \"%s\" is given to two tensors", name);
    for (int i = 0; i < shape->rank; i++)
        for (int j = 0; j < i; j++)
            if (shape->dims[i] == shape->dims[j])
                return mtf_input_error(error, "tensor \"%s\" has dimension \"%s\" twice", name,
                                       mtf_graph_dimension(graph, shape->dims[i])->name);
    if (checked_elements(graph, shape) < 0)
        return mtf_input_error(error, "tensor \"%s\" has more than 2^53 elements", name);
    return true;
}

static int append_tensor(MtfGraph *graph, const MtfTensor *tensor) {
    MtfTensor copy = *tensor;
    copy.name = g_strdup(tensor->name);
    mtf_variable_take_facts(&copy, tensor);
    g_array_append_val(graph->tensors, copy);
    int id = (int)graph->tensors->len - 1;
    g_hash_table_insert(graph->tensor_ids, copy.name, GINT_TO_POINTER(id + 1));
    return id;
}

int mtf_graph_add_input(MtfGraph *graph, const char *name, const MtfShape *shape, MtfDtype dtype,
                        MtfFeed feed, GError **error) {
    if (!check_tensor(graph, name, shape, error))
        return -1;
    return append_tensor(graph, &(MtfTensor){ .name = (char *)name,
                                              .shape = *shape,
                                              .dtype = dtype,
                                              .source = MTF_SOURCE_INPUT,
                                              .memory = MTF_MEMORY_INPUT,
                                              .feed = feed,
                                              .producer = -1 });
}

int mtf_graph_add_variable(MtfGraph *graph, const char *name, const MtfShape *shape, MtfDtype dtype,
                           MtfInit init, MtfMemoryKind memory, GError **error) {
    if (!check_tensor(graph, name, shape, error))
        return -1;
    return append_tensor(graph, &(MtfTensor){ .name = (char *)name,
                                              .shape = *shape,
                                              .dtype = dtype,
                                              .source = MTF_SOURCE_VARIABLE,
                                              .memory = memory,
                                              .init = init,
                                              .producer = -1 });
}

/* Appends the tensors of a checked operation; output 0 has `shape` and `dtype`. */
static bool append_outputs(MtfGraph *graph, MtfOperation *operation, const MtfShape *shape,
                           MtfDtype dtype, GError **error) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    for (int k = 0; k < row->n_outputs; k++) {
        MtfTensor tensor = { .shape = *shape,
                             .dtype = dtype,
                             .source = MTF_SOURCE_OPERATION,
                             .memory = MTF_MEMORY_ACTIVATION,
                             .layer = operation->layer,
                             .producer = (int)graph->operations->len };
        g_autofree char *name = k == 0
                                    ? g_strdup(operation->name)
                                    : g_strdup_printf("%s/%s", operation->name, row->suffixes[k]);
        if (k > 0) {
            int other = row->outputs_like[k];
            const MtfTensor *like = mtf_graph_tensor(
                graph, other == MTF_OUTPUT ? operation->outputs[0] : operation->inputs[other]);
            tensor.shape = like->shape;
            tensor.dtype = like->dtype;
            if (row->integer_outputs >> k & 1)
                tensor.dtype = MTF_I32;
            if (row->statistics >> k & 1) {
                mtf_shape_remove(&tensor.shape, operation->attributes.dimension);
                tensor.dtype = mtf_dtype_wide(like->dtype);
            }
        }
        tensor.name = name;
        if (!check_tensor(graph, name, &tensor.shape, error))
            return false;
        operation->outputs[operation->n_outputs++] = append_tensor(graph, &tensor);
    }
    return true;
}

int mtf_graph_add_operation(MtfGraph *graph, const MtfNewOperation *new_operation, GError **error) {
    MtfShape shape;
    MtfDtype dtype;
    if (!mtf_operation_infer(graph, new_operation, &shape, &dtype, error) ||
        !check_tensor(graph, new_operation->name, &shape, error))
        return -1;
    MtfOperation operation = {
        .name = g_strdup(new_operation->name),
        .kind = new_operation->kind,
        .phase = new_operation->phase,
        .stage = new_operation->stage,
        .loop = new_operation->loop,
        .layer = new_operation->layer,
        .origin = new_operation->origin,
        .of = g_strdup(new_operation->of),
        .n_inputs = new_operation->n_inputs,
        .inputs = g_memdup2(new_operation->inputs, sizeof(int) * (gsize)new_operation->n_inputs),
        .attributes = new_operation->attributes,
    };
    own_strings(&operation.attributes);
    mtf_window_sample(graph, mtf_operation_row(operation.kind), &operation.attributes);
    bool whole = append_outputs(graph, &operation, &shape, dtype, error);
    g_array_append_val(graph->operations, operation);
    return whole ? operation.outputs[0] : -1;
}

void mtf_graph_add_update(MtfGraph *graph, int variable, int value) {
    g_array_append_val(graph->updates, ((MtfUpdate){ variable, value }));
}

bool mtf_graph_is_training(const MtfGraph *graph) {
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        const MtfTensor *variable = mtf_graph_tensor(graph, update->variable);
        bool kept = variable->memory == MTF_MEMORY_CACHE || variable->memory == MTF_MEMORY_OUTPUT;
        if (!variable->frozen && !kept)
            return true;
    }
    return false;
}

void mtf_graph_add_repeat(MtfGraph *graph, const char *name, int count) {
    g_array_append_val(graph->repeats, ((MtfRepeat){ g_strdup(name), count }));
}

bool mtf_layer_equal(MtfLayer a, MtfLayer b) {
    return a.block == b.block && a.iteration == b.iteration;
}

int mtf_graph_find_repeat(const MtfGraph *graph, const char *name) {
    for (int i = 0; i < (int)graph->repeats->len; i++)
        if (strcmp(g_array_index(graph->repeats, MtfRepeat, i).name, name) == 0)
            return i + 1;
    return 0;
}

int mtf_graph_add_loop(MtfGraph *graph, const char *name, int dimension, bool reverse) {
    g_array_append_val(graph->loops, ((MtfLoop){ g_strdup(name), dimension, reverse }));
    return (int)graph->loops->len;
}

static void copy_optimizer(MtfGraph *copy, const MtfGraph *graph) {
    copy->optimizer = graph->optimizer;
    copy->optimizer.kind = g_strdup(graph->optimizer.kind);
    copy->optimizer.schedule = g_strdup(graph->optimizer.schedule);
}

static void copy_operations(MtfGraph *copy, const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation operation = *mtf_graph_operation(graph, i);
        operation.name = g_strdup(operation.name);
        operation.of = g_strdup(operation.of);
        operation.inputs = g_memdup2(operation.inputs, sizeof(int) * (gsize)operation.n_inputs);
        own_strings(&operation.attributes);
        g_array_append_val(copy->operations, operation);
    }
}

void mtf_graph_copy_dimensions(MtfGraph *to, const MtfGraph *from) {
    for (int d = 0; d < (int)from->dimensions->len; d++) {
        const MtfDimension *dimension = mtf_graph_dimension(from, d);
        mtf_graph_add_dimension(to, dimension->name, dimension->size, NULL);
        mtf_graph_dimension(to, d)->unpadded = dimension->unpadded;
        mtf_graph_dimension(to, d)->step_size = dimension->step_size;
        mtf_graph_dimension(to, d)->even = dimension->even;
    }
}

/* The repeats and the loops, under their numbers. */
static void copy_iterated(MtfGraph *copy, const MtfGraph *graph) {
    for (guint i = 0; i < graph->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(graph->repeats, MtfRepeat, i);
        mtf_graph_add_repeat(copy, repeat->name, repeat->count);
    }
    for (guint i = 0; i < graph->loops->len; i++) {
        const MtfLoop *loop = &g_array_index(graph->loops, MtfLoop, i);
        mtf_graph_add_loop(copy, loop->name, loop->dimension, loop->reverse);
    }
}

MtfGraph *mtf_graph_copy(const MtfGraph *graph) {
    MtfGraph *copy = mtf_graph_new_like(graph);
    mtf_graph_copy_dimensions(copy, graph);
    for (int i = 0; i < (int)graph->tensors->len; i++)
        append_tensor(copy, mtf_graph_tensor(graph, i));
    copy_operations(copy, graph);
    g_array_append_vals(copy->updates, graph->updates->data, graph->updates->len);
    copy_iterated(copy, graph);
    copy->loss = graph->loss;
    copy_optimizer(copy, graph);
    return copy;
}

/* Moves tensor `t` to the end of `order`; place[t] says where it went. */
static void move_tensor(const MtfGraph *graph, int t, GArray *order, int *place) {
    place[t] = (int)order->len;
    g_array_append_val(order, *mtf_graph_tensor(graph, t));
}

static void move_sources(const MtfGraph *graph, MtfSource source, GArray *order, int *place) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == source)
            move_tensor(graph, t, order, place);
}

static void renumber(MtfGraph *graph, const int *place) {
    for (guint i = 0; i < graph->updates->len; i++) {
        MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        *update = (MtfUpdate){ place[update->variable], place[update->value] };
    }
    if (graph->loss >= 0)
        graph->loss = place[graph->loss];
    for (int t = 0; t < (int)graph->tensors->len; t++)
        g_hash_table_insert(graph->tensor_ids, mtf_graph_tensor(graph, t)->name,
                            GINT_TO_POINTER(t + 1));
}

/* Of one operation; what it reads has moved before. */
static void move_results(MtfGraph *graph, MtfOperation *operation, GArray *order, int *place) {
    for (int k = 0; k < operation->n_outputs; k++) {
        move_tensor(graph, operation->outputs[k], order, place);
        operation->outputs[k] = place[operation->outputs[k]];
    }
    for (int k = 0; k < operation->n_inputs; k++)
        operation->inputs[k] = place[operation->inputs[k]];
}

void mtf_graph_canonicalize(MtfGraph *graph) {
    g_autofree int *place = g_new(int, graph->tensors->len + 1);
    GArray *order = new_array(sizeof(MtfTensor), NULL);
    move_sources(graph, MTF_SOURCE_INPUT, order, place);
    move_sources(graph, MTF_SOURCE_VARIABLE, order, place);
    for (int i = 0; i < (int)graph->operations->len; i++)
        move_results(graph, mtf_graph_operation(graph, i), order, place);
    /* What tensors own moved with their tensors. */
    g_array_set_clear_func(graph->tensors, NULL);
    g_array_unref(graph->tensors);
    g_array_set_clear_func(order, clear_tensor);
    graph->tensors = order;
    renumber(graph, place);
}

static void drop_operation(MtfGraph *graph, MtfOperation *operation) {
    for (int k = 0; k < operation->n_outputs; k++) {
        MtfTensor *tensor = mtf_graph_tensor(graph, operation->outputs[k]);
        g_hash_table_remove(graph->tensor_ids, tensor->name);
        g_free(tensor->name);
    }
    clear_operation(operation);
}

void mtf_graph_drop_variable(MtfGraph *graph, int variable) {
    MtfTensor *tensor = mtf_graph_tensor(graph, variable);
    g_hash_table_remove(graph->tensor_ids, tensor->name);
    g_clear_pointer(&tensor->name, g_free);
    g_clear_pointer(&tensor->stored, g_free);
    g_clear_pointer(&tensor->adapter.down, g_free);
    g_clear_pointer(&tensor->adapter.up, g_free);
    g_clear_pointer(&tensor->scale, g_free);
    g_clear_pointer(&tensor->mean_of, g_free);
    /* The next canonical order takes over sources and results of operations alone. */
    tensor->source = MTF_SOURCE_OPERATION;
    tensor->producer = -1;
}

void mtf_graph_arrange(MtfGraph *graph, const int *order, int n) {
    GArray *old = graph->operations;
    g_autofree bool *kept = g_new0(bool, old->len + 1);
    graph->operations = new_array(sizeof(MtfOperation), clear_operation);
    for (int i = 0; i < n; i++) {
        MtfOperation *operation = &g_array_index(old, MtfOperation, order[i]);
        g_array_append_vals(graph->operations, operation, 1);
        kept[order[i]] = true;
        for (int k = 0; k < operation->n_outputs; k++)
            mtf_graph_tensor(graph, operation->outputs[k])->producer = i;
    }
    for (guint i = 0; i < old->len; i++)
        if (!kept[i])
            drop_operation(graph, &g_array_index(old, MtfOperation, i));
    g_array_set_clear_func(old, NULL);
    g_array_unref(old);
    mtf_graph_canonicalize(graph);
}

int64_t mtf_graph_elements(const MtfGraph *graph, const MtfShape *shape) {
    return checked_elements(graph, shape);
}

int64_t mtf_graph_unpadded_elements(const MtfGraph *graph, const MtfShape *shape) {
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= mtf_graph_unpadded_size(graph, shape->dims[i]);
    return elements;
}

int64_t mtf_graph_tensor_bytes(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    return mtf_graph_elements(graph, &t->shape) * mtf_dtype_bytes(t->dtype);
}

int64_t mtf_graph_statistics(const MtfGraph *graph) {
    int64_t total = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->frozen &&
            tensor->memory == MTF_MEMORY_VARIABLE)
            total += mtf_graph_elements(graph, &tensor->shape);
    }
    return total;
}

/* Scales of int8 variables say how these are written and are no parameters of their own. */
static int64_t elements_of_scales(const MtfGraph *graph) {
    int64_t elements = 0;
    for (int i = 0; i < (int)graph->tensors->len; i++) {
        const char *name = mtf_graph_tensor(graph, i)->scale;
        int scale = name != NULL ? mtf_graph_find_tensor(graph, name) : -1;
        if (scale >= 0)
            elements += mtf_graph_elements(graph, &mtf_graph_tensor(graph, scale)->shape);
    }
    return elements;
}

int64_t mtf_graph_parameters(const MtfGraph *graph) {
    int64_t parameters = -elements_of_scales(graph);
    for (int i = 0; i < (int)graph->tensors->len; i++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, i);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE)
            parameters += mtf_graph_elements(graph, &tensor->shape);
    }
    return parameters;
}

char *mtf_graph_tensor_format(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    GString *text = g_string_new(mtf_dtype_short_name(t->dtype));
    g_string_append_c(text, '[');
    for (int i = 0; i < t->shape.rank; i++) {
        const MtfDimension *dimension = mtf_graph_dimension(graph, t->shape.dims[i]);
        g_string_append_printf(text, "%s%s:%" PRId64, i > 0 ? ", " : "", dimension->name,
                               dimension->size);
    }
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

static bool reads_earlier(const MtfOperation *operation, int k) {
    for (int j = 0; j < k; j++)
        if (operation->inputs[j] == operation->inputs[k])
            return true;
    return false;
}

MtfConsumers *mtf_graph_consumers(const MtfGraph *graph) {
    MtfConsumers *consumers = g_new0(MtfConsumers, 1);
    int n = (int)graph->tensors->len;
    consumers->starts = g_new0(int, n + 2);
    /* Counts go two places up, so that filling shifts every start to its own place. */
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *operation = mtf_graph_operation(graph, i);
        for (int k = 0; k < operation->n_inputs; k++)
            consumers->starts[operation->inputs[k] + 2] += !reads_earlier(operation, k);
    }
    for (int t = 2; t <= n + 1; t++)
        consumers->starts[t] += consumers->starts[t - 1];
    consumers->operations = g_new(int, consumers->starts[n + 1] + 1);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *operation = mtf_graph_operation(graph, i);
        for (int k = 0; k < operation->n_inputs; k++)
            if (!reads_earlier(operation, k))
                consumers->operations[consumers->starts[operation->inputs[k] + 1]++] = i;
    }
    return consumers;
}

void mtf_consumers_free(MtfConsumers *consumers) {
    if (consumers == NULL)
        return;
    g_free(consumers->starts);
    g_free(consumers->operations);
    g_free(consumers);
}

const char *mtf_feed_name(MtfFeed feed) {
    static const char *const names[] = {
        [MTF_FEED_TOKENS] = "tokens",
        [MTF_FEED_NEXT_TOKENS] = "next_tokens",
        [MTF_FEED_MASK] = "mask",
        [MTF_FEED_FEATURES] = "features",
        [MTF_FEED_TARGETS] = "targets",
        [MTF_FEED_LABELS] = "labels",
        [MTF_FEED_SOURCE] = "source",
        [MTF_FEED_SEGMENTS] = "segments",
        [MTF_FEED_PLACES] = "places",
        [MTF_FEED_SOURCE_SEGMENTS] = "source_segments",
        [MTF_FEED_SOURCE_PLACES] = "source_places",
        [MTF_FEED_CATEGORIES] = "categories",
        [MTF_FEED_TRANSFER] = "transfer",
        [MTF_FEED_TRANSFER_ONCE] = "transfer_once",
        [MTF_FEED_POSITION] = "position",
        [MTF_FEED_LAST] = "last",
    };
    return names[feed];
}

bool mtf_feed_is_integer(MtfFeed feed) {
    return feed != MTF_FEED_MASK && feed != MTF_FEED_FEATURES && feed != MTF_FEED_TARGETS;
}

const char *mtf_origin_name(MtfOrigin origin) {
    static const char *const names[MTF_ORIGINS] = {
        [MTF_ORIGIN_GRADIENT] = "gradient", [MTF_ORIGIN_CLONE] = "clone",
        [MTF_ORIGIN_PART] = "part",         [MTF_ORIGIN_BACKWARD] = "backward",
        [MTF_ORIGIN_UPDATE] = "update",     [MTF_ORIGIN_ACCUMULATION] = "accumulation",
    };
    return names[origin];
}

void mtf_graph_set_origin(MtfGraph *graph, int tensor, MtfOrigin origin, const char *of) {
    MtfOperation *operation = mtf_graph_operation(graph, mtf_graph_tensor(graph, tensor)->producer);
    char *name = g_strdup(of);
    g_free(operation->of);
    operation->origin = origin;
    operation->of = name;
}

void mtf_graph_set_layer(MtfGraph *graph, int tensor, MtfLayer layer) {
    MtfOperation *operation = mtf_graph_operation(graph, mtf_graph_tensor(graph, tensor)->producer);
    operation->layer = layer;
    for (int k = 0; k < operation->n_outputs; k++)
        mtf_graph_tensor(graph, operation->outputs[k])->layer = layer;
}

int mtf_graph_gradient_of(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    if (producer < 0)
        return -1;
    const MtfOperation *operation = mtf_graph_operation(graph, producer);
    bool is_gradient = operation->origin == MTF_ORIGIN_GRADIENT && operation->outputs[0] == tensor;
    return is_gradient ? mtf_graph_find_tensor(graph, operation->of) : -1;
}

int mtf_graph_find_gradient(const MtfGraph *graph, int of) {
    const char *name = mtf_graph_tensor(graph, of)->name;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *operation = mtf_graph_operation(graph, i);
        if (operation->origin == MTF_ORIGIN_GRADIENT && strcmp(operation->of, name) == 0)
            return operation->outputs[0];
    }
    return -1;
}

const char *mtf_phase_name(MtfPhase phase) {
    static const char *const names[MTF_PHASES] = {
        [MTF_PHASE_FORWARD] = "forward",
        [MTF_PHASE_BACKWARD] = "backward",
        [MTF_PHASE_CLIP] = "clip",
        [MTF_PHASE_UPDATE] = "update",
    };
    return names[phase];
}

const char *mtf_memory_name(MtfMemoryKind kind) {
    static const char *const names[MTF_MEMORY_KINDS] = {
        [MTF_MEMORY_VARIABLE] = "variables",  [MTF_MEMORY_GRADIENT] = "gradients",
        [MTF_MEMORY_OPTIMIZER] = "optimizer", [MTF_MEMORY_ACTIVATION] = "activations",
        [MTF_MEMORY_INPUT] = "inputs",        [MTF_MEMORY_COMMUNICATION] = "communication",
        [MTF_MEMORY_WORKSPACE] = "workspace", [MTF_MEMORY_CACHE] = "caches",
        [MTF_MEMORY_OUTPUT] = "outputs",      [MTF_MEMORY_HOST] = "host",
    };
    return names[kind];
}
