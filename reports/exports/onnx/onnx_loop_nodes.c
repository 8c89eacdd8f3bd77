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

static GByteArray *info_of(const MtfGraph *graph, const MtfShape *own, MtfDtype dtype,
                           const char *name) {
    GByteArray *info = g_byte_array_new(), *type = g_byte_array_new(), *inner = g_byte_array_new(),
               *shape = g_byte_array_new();
    for (int i = 0; i < own->rank; i++) {
        GByteArray *dim = g_byte_array_new();
        mtf_wire_put_varint(dim, 1, (uint64_t)mtf_graph_size(graph, own->dims[i]));
        mtf_node_put_inner(shape, 1, dim);
    }
    mtf_wire_put_varint(inner, 1, (uint64_t)mtf_node_type_of(dtype));
    mtf_node_put_inner(inner, 2, shape);
    mtf_node_put_inner(type, 1, inner);
    mtf_wire_put_string(info, 1, name);
    mtf_node_put_inner(info, 2, type);
    return info;
}

GByteArray *mtf_onnx_info(const MtfGraph *graph, int tensor, const char *name) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    return info_of(graph, &t->shape, t->dtype, name);
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

static void loop_init(LoopNode *l, MtfOnnxNodes *e) {
    *l = (LoopNode){ .e = e,
                     .loop = mtf_node_operation(e)->loop,
                     .body = g_byte_array_new(),
                     .inputs = g_ptr_array_new(),
                     .outputs = g_ptr_array_new() };
    GArray **const lists[] = { &l->slice_axes, &l->slice_ways, &l->stack_axes, &l->stack_ways };
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        *lists[i] = g_array_new(FALSE, FALSE, sizeof(int64_t));
}

static void loop_clear(LoopNode *l) {
    GArray **const lists[] = { &l->slice_axes, &l->slice_ways, &l->stack_axes, &l->stack_ways };
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        g_clear_pointer(lists[i], g_array_unref);
    g_ptr_array_unref(l->inputs);
    g_ptr_array_unref(l->outputs);
    g_byte_array_unref(l->body);
}

bool mtf_onnx_write_loop(MtfOnnxNodes *e, bool (*write)(MtfOnnxNodes *e)) {
    LoopNode l;
    loop_init(&l, e);
    mtf_onnx_loop_span(e->graph, e->operation, &l.begin, &l.end);
    bool good = write_loop(&l, write);
    e->operation = l.end - 1;
    loop_clear(&l);
    return good;
}

/* ---- Linear attention ------------------------------------------------------------------------ */

/* Selective scans have steps and rates in the place of logarithms and beta. */
enum { VALUE, QUERY, KEY, LOG, BETA, OPERANDS, RATE = BETA };

/* One place: what each input has there, and the state. */
typedef struct {
    const char *names[OPERANDS];
    MtfShape shapes[OPERANDS], state;
} Place;

static void put_place_info(LoopNode *l, uint32_t field, const MtfShape *shape, const char *name) {
    mtf_node_put_inner(l->body, field,
                       info_of(l->e->graph, shape, mtf_node_result(l->e)->dtype, name));
}

static void slice_inputs(LoopNode *l, Place *place) {
    int dimension = mtf_node_operation(l->e)->attributes.dimension;
    for (int k = 0; k < mtf_node_operation(l->e)->n_inputs; k++) {
        const MtfTensor *input = mtf_node_input(l->e, k);
        if (mtf_shape_find(&input->shape, dimension) < 0)
            continue;
        place->names[k] = mtf_node_step(l->e);
        place->shapes[k] = input->shape;
        mtf_shape_remove(&place->shapes[k], dimension);
        g_ptr_array_add(l->inputs, input->name);
        add_number(l->slice_axes, mtf_shape_find(&input->shape, dimension));
        add_number(l->slice_ways, 0);
        put_place_info(l, INPUT, &place->shapes[k], place->names[k]);
    }
}

static const char *einsum_of(MtfOnnxNodes *e, const Place *place, int k, const char *x,
                             const MtfShape *own, const MtfShape *result) {
    const char *names[] = { place->names[k], x };
    const MtfShape shapes[] = { place->shapes[k], *own };
    return mtf_node_einsum(e, 2, names, shapes, result, false);
}

/* What each element of a state keeps: e^log, of selective scans e^(step rate). */
static const char *share_kept(MtfOnnxNodes *e, const Place *place) {
    const char *log = mtf_node_aligned(e, place->names[LOG], &place->shapes[LOG], &place->state);
    if (mtf_node_operation(e)->kind == MTF_OP_SELECTIVE_SCAN)
        log = mtf_node_two(e, "Mul", log, mtf_node_aligned_input(e, RATE, &place->state));
    return mtf_node_one(e, "Exp", log);
}

/* The next state, S' + k u with S' what is kept of S and u = v or beta (v - k S'), and what is read of it, q S. */
static void write_place(MtfOnnxNodes *e, const Place *place, const char *state,
                        const char *made[2]) {
    const MtfShape *value = &place->shapes[VALUE];
    const char *share = share_kept(e, place);
    const char *lost = mtf_node_two(e, "Mul", state, share), *written = place->names[VALUE];
    if (place->names[BETA] != NULL) {
        const char *said = einsum_of(e, place, KEY, lost, &place->state, value);
        written =
            mtf_node_two(e, "Mul", mtf_node_two(e, "Sub", written, said),
                         mtf_node_aligned(e, place->names[BETA], &place->shapes[BETA], value));
    }
    made[0] = mtf_node_two(e, "Add", lost, einsum_of(e, place, KEY, written, value, &place->state));
    made[1] = einsum_of(e, place, QUERY, made[0], &place->state, value);
}

/* A state for each value, zeros before the first place. */
static const char *first_state(LoopNode *l, Place *place) {
    MtfOnnxNodes *e = l->e;
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    place->state = mtf_node_input(e, VALUE)->shape;
    mtf_shape_remove(&place->state, a->dimension);
    mtf_shape_append(&place->state, a->keys);
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < place->state.rank; i++)
        sizes[i] = (double)mtf_node_size(e, place->state.dims[i]);
    const char *state = mtf_node_step(e);
    g_ptr_array_add(l->inputs, (char *)(guintptr)mtf_node_two(
                                   e, "Expand", mtf_node_number(e, mtf_node_result_type(e), 0),
                                   mtf_node_list(e, sizes, place->state.rank)));
    put_place_info(l, INPUT, &place->state, state);
    return state;
}

static void scan_places(LoopNode *l) {
    MtfOnnxNodes *e = l->e;
    Place place = { 0 };
    GByteArray *outer = e->message;
    const char *state = first_state(l, &place), *made[2];
    mtf_wire_put_string(l->body, 2, "places");
    slice_inputs(l, &place);
    e->message = l->body;
    write_place(e, &place, state, made);
    e->message = outer;
    put_place_info(l, OUTPUT, &place.state, made[0]);
    put_place_info(l, OUTPUT, &place.shapes[VALUE], made[1]);
    g_ptr_array_add(l->outputs, (char *)(guintptr)mtf_node_step(e));
    g_ptr_array_add(l->outputs, mtf_node_operation(e)->name);
    add_number(l->stack_axes, mtf_shape_find(&mtf_node_result(e)->shape,
                                             mtf_node_operation(e)->attributes.dimension));
    add_number(l->stack_ways, 0);
}

static bool write_linear_attention(MtfOnnxNodes *e) {
    LoopNode l;
    loop_init(&l, e);
    scan_places(&l);
    GByteArray *node = scan_around(&l);
    put_scan(&l, node);
    loop_clear(&l);
    return mtf_node_finish(e, node);
}

const MtfOnnxWriter mtf_onnx_loops[] = {
    { MTF_OP_LINEAR_ATTENTION, write_linear_attention },
    { MTF_OP_SELECTIVE_SCAN, write_linear_attention },
    { 0, NULL },
};
