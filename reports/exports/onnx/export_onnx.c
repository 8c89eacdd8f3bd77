// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/onnx/export_onnx.h"

#include "layouts/base/error.h"
#include "layouts/graph/loops.h"
#include "reports/exports/onnx/onnx_loop_nodes.h"
#include "reports/exports/onnx/stored_weights.h"

#include <inttypes.h>

/* Further fields of GraphProto. */
enum { GRAPH_NAME = 2, INPUT = 11, OUTPUT = 12 };

typedef struct {
    MtfOnnxNodes nodes;
    MtfStoredWeights *weights; /* or NULL */
    bool *needed;              /* tensors */
} Export;

static const MtfTensor *tensor_of(const Export *e, int tensor) {
    return mtf_graph_tensor(e->nodes.graph, tensor);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void put_info(Export *e, uint32_t field, int tensor) {
    mtf_node_put_inner(e->nodes.message, field,
                       mtf_onnx_info(e->nodes.graph, tensor, tensor_of(e, tensor)->name));
}

/* {"location": FILE, "offset": N, "length": N}: the elements are in the checkpoint. */
static bool put_stored(Export *e, int t) {
    const MtfTensor *variable = tensor_of(e, t);
    MtfStoredWeight weight;
    if (mtf_graph_unpadded_elements(e->nodes.graph, &variable->shape) !=
        mtf_graph_elements(e->nodes.graph, &variable->shape))
        return mtf_input_error(e->nodes.error,
                               "\"%s\" is padded and the weights in the checkpoint are not: export "
                               "them with a plan without --pad",
                               variable->name);
    if (!mtf_stored_weights_find(e->weights, variable->name, &weight, e->nodes.error))
        return false;
    g_autofree char *offset = g_strdup_printf("%" PRId64, weight.offset);
    g_autofree char *length = g_strdup_printf("%" PRId64, weight.length);
    const char *pairs[][2] = { { "location", mtf_stored_weights_location(e->weights) },
                               { "offset", offset },
                               { "length", length } };
    GByteArray *tensor = g_byte_array_new();
    for (int i = 0; i < variable->shape.rank; i++)
        mtf_wire_put_varint(tensor, 1,
                            (uint64_t)mtf_graph_size(e->nodes.graph, variable->shape.dims[i]));
    mtf_wire_put_varint(tensor, 2, (uint64_t)weight.type);
    mtf_wire_put_string(tensor, 8, variable->name);
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        GByteArray *entry = g_byte_array_new();
        mtf_wire_put_string(entry, 1, pairs[i][0]);
        mtf_wire_put_string(entry, 2, pairs[i][1]);
        mtf_node_put_inner(tensor, 13, entry);
    }
    mtf_wire_put_varint(tensor, 14, 1);
    mtf_node_put_inner(e->nodes.message, MTF_ONNX_INITIALIZER, tensor);
    return true;
}

/* The tensor's sizes as a stored list of the name. */
static void put_sizes(Export *e, const MtfTensor *t, const char *list) {
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < t->shape.rank; i++)
        sizes[i] = (double)mtf_graph_size(e->nodes.graph, t->shape.dims[i]);
    GByteArray *shape =
        mtf_node_numbers(MTF_ONNX_INT64, sizes, 1, (const int64_t[]){ t->shape.rank });
    mtf_wire_put_string(shape, 8, list);
    mtf_node_put_inner(e->nodes.message, MTF_ONNX_INITIALIZER, shape);
}

/* A number everywhere: ConstantOfShape. */
static void put_filled(Export *e, const MtfTensor *t, double value) {
    g_autofree char *list = g_strconcat(t->name, "/shape", NULL);
    const char *inputs[] = { list };
    put_sizes(e, t, list);
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, "value");
    mtf_node_put_inner(
        attribute, 5,
        mtf_node_numbers(mtf_node_type_of(t->dtype), &value, 1, (const int64_t[]){ 1 }));
    mtf_wire_put_varint(attribute, 20, 4);
    GByteArray *node = mtf_node_begin("ConstantOfShape", 1, inputs, t->name);
    mtf_node_put_inner(node, 5, attribute);
    mtf_node_put(&e->nodes, node);
}

static bool put_variable(Export *e, int tensor) {
    const MtfTensor *t = tensor_of(e, tensor);
    if (e->weights != NULL)
        return put_stored(e, tensor);
    put_filled(e, t, t->init.kind == MTF_INIT_CONSTANT ? t->init.value : 0);
    return true;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static const MtfOnnxWriter *find_writer(int kind) {
    const MtfOnnxWriter *const tables[] = { mtf_onnx_elementwise, mtf_onnx_sums,
                                            mtf_onnx_places,      mtf_onnx_attention,
                                            mtf_onnx_windows,     mtf_onnx_routing,
                                            mtf_onnx_loops };
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        for (const MtfOnnxWriter *row = tables[i]; row->write != NULL; row++)
            if (row->kind == kind)
                return row;
    return NULL;
}

static bool write_operation(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfOnnxWriter *writer = find_writer(op->kind);
    e->steps = 0;
    return writer != NULL
               ? writer->write(e)
               : mtf_input_error(e->error, "operation \"%s\" (%s) has no form in ONNX here",
                                 op->name, mtf_operation_row(op->kind)->name);
}

/* The operation at hand; of a loop its first writes all, behind which its last is at hand. */
static bool write_next(MtfOnnxNodes *e) {
    if (mtf_operation_loop_part(e->graph, e->operation) == MTF_LOOP_BEGINS)
        return true;
    return mtf_node_operation(e)->loop != 0 ? mtf_onnx_write_loop(e, write_operation)
                                            : write_operation(e);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* What the forward pass is for: scores that labels are looked up in, or the loss; where nothing is
 * learned, results that nobody reads. */
static void find_outputs(const Export *e, GArray *outputs) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(e->nodes.graph);
    for (int i = 0; i < (int)e->nodes.graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(e->nodes.graph, i);
        if (op->phase == MTF_PHASE_FORWARD && op->kind == MTF_OP_LABEL_LOGIT)
            g_array_append_val(outputs, op->inputs[0]);
    }
    if (outputs->len == 0 && e->nodes.graph->loss >= 0)
        g_array_append_val(outputs, e->nodes.graph->loss);
    for (int i = 0; i < (int)e->nodes.graph->operations->len && e->nodes.graph->loss < 0; i++) {
        int t = mtf_graph_operation(e->nodes.graph, i)->outputs[0];
        if (consumers->starts[t] == consumers->starts[t + 1])
            g_array_append_val(outputs, t);
    }
}

static bool is_needed(const Export *e, const MtfOperation *op) {
    for (int k = 0; k < op->n_outputs; k++)
        if (e->needed[op->outputs[k]])
            return true;
    return false;
}

/* Of a loop that makes something needed, all results are. */
static void mark_loop(Export *e, int operation) {
    int begin, end;
    bool needed = false;
    mtf_onnx_loop_span(e->nodes.graph, operation, &begin, &end);
    for (int i = begin; i < end; i++)
        needed |= is_needed(e, mtf_graph_operation(e->nodes.graph, i));
    for (int i = begin; needed && i < end; i++)
        e->needed[mtf_graph_operation(e->nodes.graph, i)->outputs[0]] = true;
}

static void mark_needed(Export *e, const GArray *outputs) {
    for (guint i = 0; i < outputs->len; i++)
        e->needed[g_array_index(outputs, int, i)] = true;
    for (int i = (int)e->nodes.graph->operations->len - 1; i >= 0; i--) {
        const MtfOperation *op = mtf_graph_operation(e->nodes.graph, i);
        if (op->loop != 0)
            mark_loop(e, i);
        for (int k = 0; k < op->n_inputs && is_needed(e, op); k++)
            e->needed[op->inputs[k]] = true;
    }
}

/* What comes from outside: the inputs, and the variables with what they begin as. */
static bool put_sources(Export *e) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(e->nodes.graph);
    for (int t = 0; t < (int)e->nodes.graph->tensors->len; t++) {
        const MtfTensor *tensor = tensor_of(e, t);
        if (e->needed[t] && tensor->source == MTF_SOURCE_INPUT)
            put_info(e, INPUT, t);
        if (!e->needed[t] || tensor->source != MTF_SOURCE_VARIABLE)
            continue;
        /* Its node is in the stage of its first reader. */
        e->nodes.operation = consumers->operations[consumers->starts[t]];
        if (!put_variable(e, t))
            return false;
    }
    return true;
}

static bool write_graph(Export *e, const GArray *outputs) {
    const MtfGraph *graph = e->nodes.graph;
    mtf_wire_put_string(e->nodes.message, GRAPH_NAME, graph->name);
    if (!put_sources(e))
        return false;
    for (int o = 0; o < (int)graph->operations->len; o = e->nodes.operation + 1) {
        e->nodes.operation = o;
        if (is_needed(e, mtf_graph_operation(graph, o)) && !write_next(&e->nodes))
            return false;
    }
    for (guint i = 0; i < outputs->len; i++)
        put_info(e, OUTPUT, g_array_index(outputs, int, i));
    return true;
}

/* "rows:2", or of a pipeline "rows:2 | rows:2", and how many devices that is. */
static char *format_meshes(const MtfOnnxNodes *nodes, int *devices) {
    if (nodes->pipeline == NULL) {
        *devices = mtf_mesh_size(&nodes->plan->layout->mesh);
        return mtf_mesh_format(&nodes->plan->layout->mesh);
    }
    GString *text = g_string_new(NULL);
    for (int stage = 0; stage < (int)nodes->pipeline->stages->len; stage++) {
        const MtfPlan *plan = mtf_pipeline_stage(nodes->pipeline, stage);
        g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
        g_string_append_printf(text, "%s%s", stage > 0 ? " | " : "", mesh);
    }
    *devices = mtf_pipeline_devices(nodes->pipeline);
    return g_string_free(text, FALSE);
}

static void put_mesh(GByteArray *model, const char *text) {
    GByteArray *entry = g_byte_array_new();
    mtf_wire_put_string(entry, 1, "mesh");
    mtf_wire_put_string(entry, 2, text);
    mtf_node_put_inner(model, 14, entry);
}

static void put_configuration(GByteArray *model, int devices) {
    GByteArray *configuration = g_byte_array_new();
    mtf_wire_put_string(configuration, 1, "mesh");
    mtf_wire_put_varint(configuration, 2, (uint64_t)devices);
    mtf_node_put_inner(model, 26, configuration);
}

/* ModelProto around the graph. */
static GByteArray *wrap(const Export *e) {
    GByteArray *model = g_byte_array_new(), *opset = g_byte_array_new();
    int devices;
    g_autofree char *text = format_meshes(&e->nodes, &devices);
    mtf_wire_put_varint(model, 1, 11);
    mtf_wire_put_string(model, 2, "meshtf-plan");
    mtf_wire_put_varint(opset, 2, 17);
    mtf_node_put_inner(model, 8, opset);
    mtf_wire_put_message(model, 7, e->nodes.message);
    put_mesh(model, text);
    put_configuration(model, devices);
    return model;
}

static GByteArray *write_model(Export *e, const char *weights, GError **error) {
    g_autoptr(MtfStoredWeights) stored =
        weights != NULL ? mtf_stored_weights_open(weights, error) : NULL;
    if (weights != NULL && stored == NULL)
        return NULL;
    g_autoptr(GArray) outputs = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree bool *needed = g_new0(bool, e->nodes.graph->tensors->len + 1);
    e->nodes.message = g_byte_array_new();
    e->nodes.needed = e->needed = needed;
    e->nodes.names = g_string_chunk_new(4096);
    e->nodes.error = error;
    e->weights = stored;
    find_outputs(e, outputs);
    mark_needed(e, outputs);
    GByteArray *model = write_graph(e, outputs) ? wrap(e) : NULL;
    g_byte_array_unref(e->nodes.message);
    g_string_chunk_free(e->nodes.names);
    return model;
}

GByteArray *mtf_export_onnx(const MtfPlan *plan, const char *weights, GError **error) {
    return write_model(&(Export){ .nodes = { .plan = plan, .graph = plan->graph } }, weights,
                       error);
}

GByteArray *mtf_export_onnx_pipeline(const MtfPipelinePlan *pipeline, const char *weights,
                                     GError **error) {
    return write_model(&(Export){ .nodes = { .pipeline = pipeline, .graph = pipeline->graph } },
                       weights, error);
}
