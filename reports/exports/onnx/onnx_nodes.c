// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/onnx/onnx_nodes.h"

#include "reports/exports/onnx/onnx_sharding.h"

#include <string.h>

const MtfOperation *mtf_node_operation(const MtfOnnxNodes *e) {
    return mtf_graph_operation(e->graph, e->operation);
}

const MtfTensor *mtf_node_input(const MtfOnnxNodes *e, int k) {
    return mtf_graph_tensor(e->graph, mtf_node_operation(e)->inputs[k]);
}

const MtfTensor *mtf_node_result(const MtfOnnxNodes *e) {
    return mtf_graph_tensor(e->graph, mtf_node_operation(e)->outputs[0]);
}

int64_t mtf_node_size(const MtfOnnxNodes *e, int dim) {
    return mtf_graph_size(e->graph, dim);
}

int mtf_node_type_of(MtfDtype dtype) {
    static const int types[MTF_DTYPES] = {
        [MTF_F32] = MTF_ONNX_FLOAT,  [MTF_F64] = MTF_ONNX_DOUBLE, [MTF_I32] = MTF_ONNX_INT32,
        [MTF_BF16] = MTF_ONNX_FLOAT, [MTF_I8] = MTF_ONNX_FLOAT,   [MTF_I64] = MTF_ONNX_INT64,
        [MTF_BOOL] = MTF_ONNX_BOOL
    };
    return types[dtype];
}

int mtf_node_result_type(const MtfOnnxNodes *e) {
    return mtf_node_type_of(mtf_node_result(e)->dtype);
}

/* ---- Constants ------------------------------------------------------------------------------- */

void mtf_node_put_inner(GByteArray *message, uint32_t field, GByteArray *inner) {
    mtf_wire_put_message(message, field, inner);
    g_byte_array_unref(inner);
}

static void append_number(GByteArray *raw, int type, double value) {
    float single = (float)value;
    if (type == MTF_ONNX_FLOAT)
        g_byte_array_append(raw, (const guint8 *)&single, sizeof single);
    else if (type == MTF_ONNX_DOUBLE)
        g_byte_array_append(raw, (const guint8 *)&value, sizeof value);
    else {
        int64_t whole = (int64_t)value;
        g_byte_array_append(raw, (const guint8 *)&whole, (guint)mtf_onnx_type_bytes(type));
    }
}

GByteArray *mtf_node_numbers(int type, const double *values, int rank, const int64_t *sizes) {
    GByteArray *tensor = g_byte_array_new(), *raw = g_byte_array_new();
    int64_t n = 1;
    for (int i = 0; i < rank; i++) {
        mtf_wire_put_varint(tensor, 1, (uint64_t)sizes[i]);
        n *= sizes[i];
    }
    for (int64_t i = 0; i < n; i++)
        append_number(raw, type, values[i]);
    mtf_wire_put_varint(tensor, 2, (uint64_t)type);
    mtf_node_put_inner(tensor, 9, raw);
    return tensor;
}

static const char *new_name(MtfOnnxNodes *e, const char *mark) {
    g_autofree char *name =
        g_strdup_printf("%s/%s%d", mtf_node_operation(e)->name, mark, ++e->steps);
    return g_string_chunk_insert(e->names, name);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

GByteArray *mtf_node_begin(const char *op, int n, const char *const *inputs, const char *output) {
    GByteArray *node = g_byte_array_new();
    for (int i = 0; i < n; i++)
        if (inputs[i] != NULL)
            mtf_wire_put_string(node, 1, inputs[i]);
    mtf_wire_put_string(node, 2, output);
    mtf_wire_put_string(node, 3, output);
    mtf_wire_put_string(node, 4, op);
    return node;
}

/* AttributeProto: its name, then what the caller appends, then its type. */
static GByteArray *begin_attribute(const char *name) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    return attribute;
}

static void end_attribute(GByteArray *node, GByteArray *attribute, int type) {
    mtf_wire_put_varint(attribute, 20, (uint64_t)type);
    mtf_node_put_inner(node, 5, attribute);
}

void mtf_node_put_int(GByteArray *node, const char *name, int64_t value) {
    GByteArray *attribute = begin_attribute(name);
    mtf_wire_put_varint(attribute, 3, (uint64_t)value);
    end_attribute(node, attribute, 2);
}

void mtf_node_put_ints(GByteArray *node, const char *name, const int64_t *values, int n) {
    GByteArray *attribute = begin_attribute(name);
    for (int i = 0; i < n; i++)
        mtf_wire_put_varint(attribute, 8, (uint64_t)values[i]);
    end_attribute(node, attribute, 7);
}

void mtf_node_put_text(GByteArray *node, const char *name, const char *text) {
    GByteArray *attribute = begin_attribute(name);
    mtf_wire_put_string(attribute, 4, text);
    end_attribute(node, attribute, 3);
}

void mtf_node_put_real(GByteArray *node, const char *name, double value) {
    GByteArray *attribute = begin_attribute(name);
    mtf_wire_put_float(attribute, 2, (float)value);
    end_attribute(node, attribute, 1);
}

const char *mtf_node_step(MtfOnnxNodes *e) {
    return new_name(e, "s");
}

/* The message that a node's stage, and shardings, are told in. */
static GByteArray *begin_configuration(const MtfOnnxNodes *e) {
    GByteArray *configuration = g_byte_array_new();
    mtf_wire_put_string(configuration, 1, "mesh");
    if (e->pipeline != NULL)
        mtf_wire_put_varint(configuration, 3, (uint64_t)(mtf_node_operation(e)->stage - 1));
    return configuration;
}

void mtf_node_put(MtfOnnxNodes *e, GByteArray *node) {
    if (e->pipeline != NULL)
        mtf_node_put_inner(node, 10, begin_configuration(e));
    mtf_node_put_inner(e->message, MTF_ONNX_NODE, node);
}

/* A node, as initial values are what may be trained. */
const char *mtf_node_array(MtfOnnxNodes *e, int type, const double *values, int rank,
                           const int64_t *sizes) {
    const char *name = new_name(e, "c");
    GByteArray *node = mtf_node_begin("Constant", 0, NULL, name);
    GByteArray *attribute = begin_attribute("value");
    mtf_node_put_inner(attribute, 5, mtf_node_numbers(type, values, rank, sizes));
    end_attribute(node, attribute, 4);
    mtf_node_put(e, node);
    return name;
}

const char *mtf_node_list(MtfOnnxNodes *e, const double *values, int n) {
    return mtf_node_array(e, MTF_ONNX_INT64, values, 1, (const int64_t[]){ n });
}

const char *mtf_node_number(MtfOnnxNodes *e, int type, double value) {
    return mtf_node_array(e, type, &value, 0, NULL);
}

/* Where a tensor lies in the plan, or in the operation's stage of the pipeline. */
static GByteArray *sharding_of(const MtfOnnxNodes *e, int tensor) {
    const char *name = mtf_graph_tensor(e->graph, tensor)->name;
    if (e->pipeline == NULL)
        return mtf_onnx_sharding(e->plan, tensor, name, 0);
    int stage = mtf_node_operation(e)->stage - 1;
    const MtfPlan *plan = mtf_pipeline_stage(e->pipeline, stage);
    int domain = e->pipeline->order->rank_of_stage[stage];
    int own = mtf_graph_find_tensor(plan->graph, name);
    return own < 0
               ? NULL
               : mtf_onnx_sharding(plan, own, name, mtf_pipeline_first_device(e->pipeline, domain));
}

/* Where the operation's inputs and result lie, and the stage that runs it. */
static void put_shardings(const MtfOnnxNodes *e, GByteArray *node) {
    const MtfOperation *op = mtf_node_operation(e);
    GByteArray *configuration = begin_configuration(e);
    for (int k = -1; k < op->n_inputs; k++) {
        GByteArray *spec = sharding_of(e, k < 0 ? op->outputs[0] : op->inputs[k]);
        if (spec != NULL)
            mtf_node_put_inner(configuration, 2, spec);
    }
    mtf_node_put_inner(node, 10, configuration);
}

bool mtf_node_finish(MtfOnnxNodes *e, GByteArray *node) {
    put_shardings(e, node);
    mtf_node_put_inner(e->message, MTF_ONNX_NODE, node);
    return true;
}

static const char *between(MtfOnnxNodes *e, const char *op, int n, const char *const *inputs) {
    const char *name = mtf_node_step(e);
    mtf_node_put(e, mtf_node_begin(op, n, inputs, name));
    return name;
}

static bool last(MtfOnnxNodes *e, const char *op, int n, const char *const *inputs) {
    return mtf_node_finish(e, mtf_node_begin(op, n, inputs, mtf_node_operation(e)->name));
}

const char *mtf_node_one(MtfOnnxNodes *e, const char *op, const char *x) {
    return between(e, op, 1, &x);
}

const char *mtf_node_two(MtfOnnxNodes *e, const char *op, const char *a, const char *b) {
    return between(e, op, 2, (const char *const[]){ a, b });
}

const char *mtf_node_three(MtfOnnxNodes *e, const char *op, const char *a, const char *b,
                           const char *c) {
    return between(e, op, 3, (const char *const[]){ a, b, c });
}

bool mtf_node_last_one(MtfOnnxNodes *e, const char *op, const char *x) {
    return last(e, op, 1, &x);
}

bool mtf_node_last_two(MtfOnnxNodes *e, const char *op, const char *a, const char *b) {
    return last(e, op, 2, (const char *const[]){ a, b });
}

bool mtf_node_last_three(MtfOnnxNodes *e, const char *op, const char *a, const char *b,
                         const char *c) {
    return last(e, op, 3, (const char *const[]){ a, b, c });
}

const char *mtf_node_cast(MtfOnnxNodes *e, const char *x, int type) {
    const char *name = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("Cast", 1, &x, name);
    mtf_node_put_int(node, "to", type);
    mtf_node_put(e, node);
    return name;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

/* A value with its axes in another order; itself where that is the order it has. */
static const char *transposed(MtfOnnxNodes *e, const char *x, const int64_t *order, int n) {
    bool sorted = true;
    for (int i = 0; i < n; i++)
        sorted &= order[i] == i;
    if (sorted)
        return x;
    const char *name = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("Transpose", 1, &x, name);
    mtf_node_put_ints(node, "perm", order, n);
    mtf_node_put(e, node);
    return name;
}

const char *mtf_node_aligned(MtfOnnxNodes *e, const char *x, const MtfShape *own,
                             const MtfShape *shape) {
    int64_t order[MTF_MAX_RANK] = { 0 };
    double axes[MTF_MAX_RANK];
    int n = 0, missing = 0;
    for (int i = 0; i < shape->rank; i++) {
        int at = mtf_shape_find(own, shape->dims[i]);
        if (at < 0)
            axes[missing++] = i;
        else
            order[n++] = at;
    }
    const char *turned = transposed(e, x, order, n);
    return missing == 0 || n == 0
               ? turned
               : mtf_node_two(e, "Unsqueeze", turned, mtf_node_list(e, axes, missing));
}

const char *mtf_node_aligned_input(MtfOnnxNodes *e, int k, const MtfShape *shape) {
    const MtfTensor *input = mtf_node_input(e, k);
    return mtf_node_aligned(e, input->name, &input->shape, shape);
}

const char *mtf_node_merged(MtfOnnxNodes *e, const char *x, const MtfShape *own,
                            const MtfShape *groups, int n_groups) {
    int64_t order[MTF_MAX_RANK] = { 0 };
    double sizes[MTF_MAX_RANK];
    int n = 0;
    for (int g = 0; g < n_groups; g++) {
        sizes[g] = (double)mtf_graph_elements(e->graph, &groups[g]);
        for (int i = 0; i < groups[g].rank; i++)
            order[n++] = mtf_shape_find(own, groups[g].dims[i]);
    }
    return mtf_node_two(e, "Reshape", transposed(e, x, order, n),
                        mtf_node_list(e, sizes, n_groups));
}

bool mtf_node_last_unmerged(MtfOnnxNodes *e, const char *x, const MtfShape *groups, int n_groups) {
    const MtfShape *shape = &mtf_node_result(e)->shape;
    int64_t order[MTF_MAX_RANK] = { 0 };
    double sizes[MTF_MAX_RANK];
    int n = 0;
    for (int g = 0; g < n_groups; g++)
        for (int i = 0; i < groups[g].rank; i++) {
            order[mtf_shape_find(shape, groups[g].dims[i])] = n;
            sizes[n++] = (double)mtf_node_size(e, groups[g].dims[i]);
        }
    const char *apart = mtf_node_two(e, "Reshape", x, mtf_node_list(e, sizes, n));
    GByteArray *node = mtf_node_begin("Transpose", 1, &apart, mtf_node_operation(e)->name);
    mtf_node_put_ints(node, "perm", order, n);
    return mtf_node_finish(e, node);
}

const char *mtf_node_range(MtfOnnxNodes *e, int dim, int type) {
    return mtf_node_three(e, "Range", mtf_node_number(e, type, 0),
                          mtf_node_number(e, type, (double)mtf_node_size(e, dim)),
                          mtf_node_number(e, type, 1));
}

/* "ab,bc->ac" by the operands' dimensions. */
static char *equation_of(int n, const MtfShape *shapes, const MtfShape *result) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    GString *equation = g_string_new(NULL);
    int seen[sizeof letters], known = 0;
    for (int k = 0; k <= n; k++) {
        const MtfShape *shape = k < n ? &shapes[k] : result;
        g_string_append(equation, k == 0 ? "" : k < n ? "," : "->");
        for (int i = 0; i < shape->rank; i++) {
            int at = 0;
            while (at < known && seen[at] != shape->dims[i])
                at++;
            if (at == known && known < (int)sizeof letters - 1)
                seen[known++] = shape->dims[i];
            g_string_append_c(equation, letters[MIN(at, (int)sizeof letters - 2)]);
        }
    }
    return g_string_free(equation, FALSE);
}

/* Of single numbers, for which equations have no letters. */
static const char *product(MtfOnnxNodes *e, int n, const char *const *names, bool ends) {
    const char *all = names[0];
    for (int k = 1; k < n; k++)
        all = mtf_node_two(e, "Mul", all, names[k]);
    if (ends)
        mtf_node_last_one(e, "Identity", all);
    return ends ? mtf_node_operation(e)->name : all;
}

const char *mtf_node_einsum(MtfOnnxNodes *e, int n, const char *const *names,
                            const MtfShape *shapes, const MtfShape *result, bool ends) {
    g_autofree char *equation = equation_of(n, shapes, result);
    if (strpbrk(equation, "abcdefghijklmnopqrstuvwxyz") == NULL)
        return product(e, n, names, ends);
    const char *name = ends ? mtf_node_operation(e)->name : mtf_node_step(e);
    GByteArray *node = mtf_node_begin("Einsum", n, names, name);
    mtf_node_put_text(node, "equation", equation);
    if (ends)
        mtf_node_finish(e, node);
    else
        mtf_node_put(e, node);
    return name;
}
