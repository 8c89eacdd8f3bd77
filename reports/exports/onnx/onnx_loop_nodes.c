// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/onnx/onnx_loop_nodes.h"

#include "layouts/base/error.h"
#include "layouts/graph/loops.h"

enum { INPUT = 11, OUTPUT = 12 };                /* fields of GraphProto */
enum { INTS = 7, GRAPH = 5, INT = 2, LIST = 8 }; /* types of AttributeProto, and its list's field */

/* A loop while it is written; lists are in the order of the node's inputs and outputs. */
typedef struct {
    MtfOnnxNodes *e;
    int loop, begin, end;                                      /* its operations */
    GByteArray *body;                                          /* GraphProto */
    GPtrArray *inputs, *outputs;                               /* names */
    GArray *slice_axes, *slice_ways, *stack_axes, *stack_ways; /* int64_t */
} LoopNode;

void mtf_onnx_loop_span(const MtfGraph *graph, int operation, int *begin, int *end) {
    int loop = mtf_graph_operation(graph, operation)->loop;
    for (*begin = operation; *begin > 0 && mtf_graph_operation(graph, *begin - 1)->loop == loop;)
        --*begin;
    *end = operation + 1;
    while (*end < (int)graph->operations->len && mtf_graph_operation(graph, *end)->loop == loop)
        ++*end;
}

GByteArray *mtf_onnx_info(const MtfGraph *graph, int tensor, const char *name) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    GByteArray *info = g_byte_array_new(), *type = g_byte_array_new(), *inner = g_byte_array_new(),
               *shape = g_byte_array_new();
    for (int i = 0; i < t->shape.rank; i++) {
        GByteArray *dim = g_byte_array_new();
        mtf_wire_put_varint(dim, 1, (uint64_t)mtf_graph_size(graph, t->shape.dims[i]));
        mtf_node_put_inner(shape, 1, dim);
    }
    mtf_wire_put_varint(inner, 1, (uint64_t)mtf_node_type_of(t->dtype));
    mtf_node_put_inner(inner, 2, shape);
    mtf_node_put_inner(type, 1, inner);
    mtf_wire_put_string(info, 1, name);
    mtf_node_put_inner(info, 2, type);
    return info;
}

static const MtfOperation *operation(const LoopNode *l, int i) {
    return mtf_graph_operation(l->e->graph, i);
}

static const char *name_of(const LoopNode *l, int tensor) {
    return mtf_graph_tensor(l->e->graph, tensor)->name;
}

static void put_info(LoopNode *l, uint32_t field, int tensor, const char *name) {
    mtf_node_put_inner(l->body, field, mtf_onnx_info(l->e->graph, tensor, name));
}

/* The body hands on a tensor as what operation `by` makes of it. */
static void hand_on(LoopNode *l, int tensor, const MtfOperation *by) {
    const char *inputs[] = { name_of(l, tensor) };
    g_autofree char *name = g_strconcat(by->name, "/handed", NULL);
    mtf_node_put_inner(l->body, MTF_ONNX_NODE, mtf_node_begin("Identity", 1, inputs, name));
    put_info(l, OUTPUT, tensor, name);
}

static void add_number(GArray *list, int64_t number) {
    g_array_append_val(list, number);
}

/* ---- The body -------------------------------------------------------------------------------- */

static int init_of(const LoopNode *l, int state) {
    return operation(l, mtf_graph_tensor(l->e->graph, state)->producer)->inputs[0];
}

static void add_states(LoopNode *l) {
    for (int i = l->begin; i < l->end; i++) {
        const MtfOperation *op = operation(l, i);
        if (op->kind != MTF_OP_LOOP_NEXT)
            continue;
        g_ptr_array_add(l->inputs, (char *)(guintptr)name_of(l, init_of(l, op->inputs[0])));
        g_ptr_array_add(l->outputs, op->name);
        put_info(l, INPUT, op->inputs[0], name_of(l, op->inputs[0]));
    }
}

static void add_slices(LoopNode *l) {
    bool reverse = mtf_graph_loop(l->e->graph, l->loop)->reverse;
    for (int i = l->begin; i < l->end; i++) {
        const MtfOperation *op = operation(l, i);
        if (op->kind != MTF_OP_LOOP_SLICE)
            continue;
        const MtfShape *whole = &mtf_graph_tensor(l->e->graph, op->inputs[0])->shape;
        g_ptr_array_add(l->inputs, (char *)(guintptr)name_of(l, op->inputs[0]));
        add_number(l->slice_axes, mtf_shape_find(whole, op->attributes.dimension));
        add_number(l->slice_ways, reverse);
        put_info(l, INPUT, op->outputs[0], op->name);
    }
}

static bool write_inside(LoopNode *l, bool (*write)(MtfOnnxNodes *e)) {
    GByteArray *outer = l->e->message;
    bool good = true;
    l->e->message = l->body;
    for (int i = l->begin; i < l->end && good; i++) {
        l->e->operation = i;
        if (mtf_operation_loop_part(l->e->graph, i) == MTF_LOOP_NOTHING)
            good = write(l->e);
    }
    l->e->message = outer;
    return good;
}

/* The states first, then what is stacked. */
static void add_results(LoopNode *l) {
    bool reverse = mtf_graph_loop(l->e->graph, l->loop)->reverse;
    for (int i = l->begin; i < l->end; i++)
        if (operation(l, i)->kind == MTF_OP_LOOP_NEXT)
            hand_on(l, operation(l, i)->inputs[1], operation(l, i));
    for (int i = l->begin; i < l->end; i++) {
        const MtfOperation *op = operation(l, i);
        if (op->kind != MTF_OP_LOOP_STACK)
            continue;
        const MtfShape *whole = &mtf_graph_tensor(l->e->graph, op->outputs[0])->shape;
        hand_on(l, op->inputs[0], op);
        g_ptr_array_add(l->outputs, op->name);
        add_number(l->stack_axes, mtf_shape_find(whole, op->attributes.dimension));
        add_number(l->stack_ways, reverse);
    }
}

/* ---- The node -------------------------------------------------------------------------------- */

static void put_ints(GByteArray *node, const char *name, const GArray *list) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    for (guint i = 0; i < list->len; i++)
        mtf_wire_put_varint(attribute, LIST, (uint64_t)g_array_index(list, int64_t, i));
    mtf_wire_put_varint(attribute, 20, INTS);
    if (list->len > 0)
        mtf_node_put_inner(node, 5, attribute);
    else
        g_byte_array_unref(attribute);
}

static void put_scan(LoopNode *l, GByteArray *node) {
    GByteArray *count = g_byte_array_new();
    mtf_wire_put_string(count, 1, "num_scan_inputs");
    mtf_wire_put_varint(count, 3, l->slice_axes->len);
    mtf_wire_put_varint(count, 20, INT);
    mtf_node_put_inner(node, 5, count);
    put_ints(node, "scan_input_axes", l->slice_axes);
    put_ints(node, "scan_input_directions", l->slice_ways);
    put_ints(node, "scan_output_axes", l->stack_axes);
    put_ints(node, "scan_output_directions", l->stack_ways);
}

static GByteArray *scan_around(LoopNode *l) {
    GByteArray *node = g_byte_array_new(), *body = g_byte_array_new();
    for (guint i = 0; i < l->inputs->len; i++)
        mtf_wire_put_string(node, 1, l->inputs->pdata[i]);
    for (guint i = 0; i < l->outputs->len; i++)
        mtf_wire_put_string(node, 2, l->outputs->pdata[i]);
    mtf_wire_put_string(node, 4, "Scan");
    mtf_wire_put_string(body, 1, "body");
    mtf_wire_put_message(body, 6, l->body);
    mtf_wire_put_varint(body, 20, GRAPH);
    mtf_node_put_inner(node, 5, body);
    return node;
}

static bool write_loop(LoopNode *l, bool (*write)(MtfOnnxNodes *e)) {
    const MtfLoop *loop = mtf_graph_loop(l->e->graph, l->loop);
    mtf_wire_put_string(l->body, 2, loop->name);
    add_states(l);
    add_slices(l);
    if (l->slice_axes->len == 0 || mtf_loop_condition(l->e->graph, l->loop) >= 0)
        return mtf_input_error(l->e->error,
                               "loop \"%s\" slices nothing, or ends by a condition, "
                               "which has no form in ONNX here",
                               loop->name);
    if (!write_inside(l, write))
        return false;
    add_results(l);
    GByteArray *node = scan_around(l);
    put_scan(l, node);
    mtf_node_put(l->e, node);
    return true;
}

bool mtf_onnx_write_loop(MtfOnnxNodes *e, bool (*write)(MtfOnnxNodes *e)) {
    LoopNode l = { .e = e,
                   .loop = mtf_node_operation(e)->loop,
                   .body = g_byte_array_new(),
                   .inputs = g_ptr_array_new(),
                   .outputs = g_ptr_array_new() };
    GArray **const lists[] = { &l.slice_axes, &l.slice_ways, &l.stack_axes, &l.stack_ways };
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        *lists[i] = g_array_new(FALSE, FALSE, sizeof(int64_t));
    mtf_onnx_loop_span(e->graph, e->operation, &l.begin, &l.end);
    bool good = write_loop(&l, write);
    e->operation = l.end - 1;
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        g_clear_pointer(lists[i], g_array_unref);
    g_ptr_array_unref(l.inputs);
    g_ptr_array_unref(l.outputs);
    g_byte_array_unref(l.body);
    return good;
}
