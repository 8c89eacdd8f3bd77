// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/json_writer.h"
#include "layouts/graph/graph_json.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/optimizer.h"

#include <string.h>

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
        mtf_json_add_integer(map, dimension->name, dimension->size);
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

static cJSON *repeats_to_json(const MtfGraph *graph) {
    cJSON *map = cJSON_CreateObject();
    for (guint i = 0; i < graph->repeats->len; i++) {
        const MtfRepeat *repeat = &g_array_index(graph->repeats, MtfRepeat, i);
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
    if (graph->optimizer.kind != NULL)
        cJSON_AddItemToObject(root, "optimizer", optimizer_to_json(&graph->optimizer));
    if (graph->updates->len > 0)
        cJSON_AddItemToObject(root, "updates", updates_to_json(graph));
    if (graph->repeats->len > 0)
        cJSON_AddItemToObject(root, "repeats", repeats_to_json(graph));
    if (graph->loops->len > 0)
        cJSON_AddItemToObject(root, "loops", loops_to_json(graph));
    return root;
}

bool mtf_graph_save(const MtfGraph *graph, const char *path, GError **error) {
    cJSON *tree = mtf_graph_to_json(graph);
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return mtf_file_write(path, text, strlen(text), error);
}
