// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/export_onnx.h"

#include "layouts/base/error.h"
#include "layouts/onnx/onnx_tensor.h"
#include "reports/exports/onnx_sharding.h"
#include "reports/exports/stored_weights.h"

#include <inttypes.h>
#include <string.h>

/* Fields of GraphProto. */
enum { NODE = 1, GRAPH_NAME = 2, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 };

typedef struct {
    const MtfPlan *plan;
    const MtfGraph *graph;
    MtfStoredWeights *weights; /* or NULL */
    GByteArray *model;         /* GraphProto */
    bool *needed;              /* tensors */
    int operation;             /* being written */
    int steps;                 /* nodes written for it */
    GError **error;
} Export;

static void put_inner(GByteArray *message, uint32_t field, GByteArray *inner) {
    mtf_wire_put_message(message, field, inner);
    g_byte_array_unref(inner);
}

static const MtfTensor *tensor_of(const Export *e, int tensor) {
    return mtf_graph_tensor(e->graph, tensor);
}

static const MtfOperation *operation_of(const Export *e) {
    return mtf_graph_operation(e->graph, e->operation);
}

static int type_of(MtfDtype dtype) {
    return dtype == MTF_F64 ? MTF_ONNX_DOUBLE : dtype == MTF_I32 ? MTF_ONNX_INT32 : MTF_ONNX_FLOAT;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void put_info(Export *e, uint32_t field, int tensor) {
    const MtfTensor *t = tensor_of(e, tensor);
    GByteArray *info = g_byte_array_new(), *type = g_byte_array_new(), *inner = g_byte_array_new(),
               *shape = g_byte_array_new();
    for (int i = 0; i < t->shape.rank; i++) {
        GByteArray *dim = g_byte_array_new();
        mtf_wire_put_varint(dim, 1, (uint64_t)mtf_graph_size(e->graph, t->shape.dims[i]));
        put_inner(shape, 1, dim);
    }
    mtf_wire_put_varint(inner, 1, (uint64_t)type_of(t->dtype));
    put_inner(inner, 2, shape);
    put_inner(type, 1, inner);
    mtf_wire_put_string(info, 1, t->name);
    put_inner(info, 2, type);
    put_inner(e->model, field, info);
}

/* A tensor of numbers: a list, or a single one (n -1). */
static GByteArray *numbers(int type, const double *values, int64_t n) {
    GByteArray *tensor = g_byte_array_new(), *raw = g_byte_array_new();
    if (n >= 0)
        mtf_wire_put_varint(tensor, 1, (uint64_t)n);
    for (int64_t i = 0; i < (n < 0 ? 1 : n); i++) {
        float single = (float)values[i];
        int64_t whole = (int64_t)values[i];
        if (type == MTF_ONNX_FLOAT)
            g_byte_array_append(raw, (const guint8 *)&single, sizeof single);
        else if (type == MTF_ONNX_DOUBLE)
            g_byte_array_append(raw, (const guint8 *)&values[i], sizeof values[i]);
        else
            g_byte_array_append(raw, (const guint8 *)&whole, (guint)mtf_onnx_type_bytes(type));
    }
    mtf_wire_put_varint(tensor, 2, (uint64_t)type);
    put_inner(tensor, 9, raw);
    return tensor;
}

/* Adds an initial value for the operation at hand; returns its name, free with g_free. */
static char *constant(Export *e, int type, const double *values, int64_t n) {
    char *name = g_strdup_printf("%s/c%d", operation_of(e)->name, ++e->steps);
    GByteArray *tensor = numbers(type, values, n);
    mtf_wire_put_string(tensor, 8, name);
    put_inner(e->model, INITIALIZER, tensor);
    return name;
}

static char *number(Export *e, int type, double value) {
    return constant(e, type, &value, -1);
}

/* {"location": FILE, "offset": N, "length": N}: the elements are in the checkpoint. */
static bool put_stored(Export *e, int t) {
    const MtfTensor *variable = tensor_of(e, t);
    MtfStoredWeight weight;
    if (mtf_graph_unpadded_elements(e->graph, &variable->shape) !=
        mtf_graph_elements(e->graph, &variable->shape))
        return mtf_input_error(e->error,
                               "\"%s\" is padded and the weights in the checkpoint are not: export "
                               "them with a plan without --pad",
                               variable->name);
    if (!mtf_stored_weights_find(e->weights, variable->name, &weight, e->error))
        return false;
    g_autofree char *offset = g_strdup_printf("%" PRId64, weight.offset);
    g_autofree char *length = g_strdup_printf("%" PRId64, weight.length);
    const char *pairs[][2] = { { "location", mtf_stored_weights_location(e->weights) },
                               { "offset", offset },
                               { "length", length } };
    GByteArray *tensor = g_byte_array_new();
    for (int i = 0; i < variable->shape.rank; i++)
        mtf_wire_put_varint(tensor, 1, (uint64_t)mtf_graph_size(e->graph, variable->shape.dims[i]));
    mtf_wire_put_varint(tensor, 2, (uint64_t)weight.type);
    mtf_wire_put_string(tensor, 8, variable->name);
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        GByteArray *entry = g_byte_array_new();
        mtf_wire_put_string(entry, 1, pairs[i][0]);
        mtf_wire_put_string(entry, 2, pairs[i][1]);
        put_inner(tensor, 13, entry);
    }
    mtf_wire_put_varint(tensor, 14, 1);
    put_inner(e->model, INITIALIZER, tensor);
    return true;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static void put_int(GByteArray *node, const char *name, int64_t value) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    mtf_wire_put_varint(attribute, 3, (uint64_t)value);
    mtf_wire_put_varint(attribute, 20, 2);
    put_inner(node, 5, attribute);
}

static void put_ints(GByteArray *node, const char *name, const int *values, int n) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    for (int i = 0; i < n; i++)
        mtf_wire_put_varint(attribute, 8, (uint64_t)values[i]);
    mtf_wire_put_varint(attribute, 20, 7);
    put_inner(node, 5, attribute);
}

static void put_text(GByteArray *node, const char *name, const char *text) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    mtf_wire_put_string(attribute, 4, text);
    mtf_wire_put_varint(attribute, 20, 3);
    put_inner(node, 5, attribute);
}

static void put_real(GByteArray *node, const char *name, double value) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, name);
    mtf_wire_put_float(attribute, 2, (float)value);
    mtf_wire_put_varint(attribute, 20, 1);
    put_inner(node, 5, attribute);
}

static GByteArray *begin(const char *op, int n, const char *const *inputs, const char *output) {
    GByteArray *node = g_byte_array_new();
    for (int i = 0; i < n; i++)
        mtf_wire_put_string(node, 1, inputs[i]);
    mtf_wire_put_string(node, 2, output);
    mtf_wire_put_string(node, 3, output);
    mtf_wire_put_string(node, 4, op);
    return node;
}

static char *step_name(Export *e) {
    return g_strdup_printf("%s/s%d", operation_of(e)->name, ++e->steps);
}

/* A node between, whose result's name it returns; free with g_free. */
static char *between(Export *e, const char *op, int n, const char *const *inputs) {
    char *name = step_name(e);
    put_inner(e->model, NODE, begin(op, n, inputs, name));
    return name;
}

static char *two(Export *e, const char *op, const char *a, const char *b) {
    const char *inputs[] = { a, b };
    return between(e, op, 2, inputs);
}

/* Where the operation's inputs and result lie. */
static void put_shardings(Export *e, GByteArray *node) {
    const MtfOperation *op = operation_of(e);
    GByteArray *configuration = g_byte_array_new();
    mtf_wire_put_string(configuration, 1, "mesh");
    for (int k = -1; k < op->n_inputs; k++) {
        int t = k < 0 ? op->outputs[0] : op->inputs[k];
        GByteArray *spec = mtf_onnx_sharding(e->plan, t, tensor_of(e, t)->name);
        if (spec != NULL)
            put_inner(configuration, 2, spec);
    }
    put_inner(node, 10, configuration);
}

/* The node that makes the operation's own result. */
static void finish(Export *e, GByteArray *node) {
    put_shardings(e, node);
    put_inner(e->model, NODE, node);
}

static void last(Export *e, const char *op, int n, const char *const *inputs) {
    finish(e, begin(op, n, inputs, operation_of(e)->name));
}

static void last_two(Export *e, const char *op, const char *a, const char *b) {
    const char *inputs[] = { a, b };
    last(e, op, 2, inputs);
}

static const char *input_name(const Export *e, int k) {
    return tensor_of(e, operation_of(e)->inputs[k])->name;
}

/* Input k with its dimensions in the order of `shape` and axes of one element for those it lacks. Free
 * with g_free. */
static char *aligned(Export *e, int k, const MtfShape *shape) {
    const MtfShape *own = &tensor_of(e, operation_of(e)->inputs[k])->shape;
    int order[MTF_MAX_RANK], n = 0, missing = 0;
    double axes[MTF_MAX_RANK];
    bool sorted = true;
    for (int i = 0; i < shape->rank; i++) {
        int at = mtf_shape_find(own, shape->dims[i]);
        if (at < 0) {
            axes[missing++] = i;
            continue;
        }
        sorted = sorted && at == n;
        order[n++] = at;
    }
    g_autofree char *name = g_strdup(input_name(e, k));
    if (!sorted) {
        const char *inputs[] = { name };
        char *turned = step_name(e);
        GByteArray *node = begin("Transpose", 1, inputs, turned);
        put_ints(node, "perm", order, n);
        put_inner(e->model, NODE, node);
        g_free(name);
        name = turned;
    }
    if (missing == 0 || n == 0)
        return g_steal_pointer(&name);
    g_autofree char *list = constant(e, MTF_ONNX_INT64, axes, missing);
    return two(e, "Unsqueeze", name, list);
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* Those that are one node, element by element. */
static const char *simple_name(int kind) {
    static const struct {
        int kind;
        const char *name;
    } names[] = {
        { MTF_OP_ADD, "Sum" },          { MTF_OP_SUBTRACT, "Sub" },
        { MTF_OP_MULTIPLY, "Mul" },     { MTF_OP_DIVIDE, "Div" },
        { MTF_OP_MAXIMUM, "Max" },      { MTF_OP_MINIMUM, "Min" },
        { MTF_OP_POWER, "Pow" },        { MTF_OP_MODULO, "Mod" },
        { MTF_OP_RELU, "Relu" },        { MTF_OP_TANH, "Tanh" },
        { MTF_OP_SIGMOID, "Sigmoid" },  { MTF_OP_EXP, "Exp" },
        { MTF_OP_LOG, "Log" },          { MTF_OP_SQRT, "Sqrt" },
        { MTF_OP_ERF, "Erf" },          { MTF_OP_SIN, "Sin" },
        { MTF_OP_COS, "Cos" },          { MTF_OP_FLOOR, "Floor" },
        { MTF_OP_NEGATE, "Neg" },       { MTF_OP_ABS, "Abs" },
        { MTF_OP_SIGN, "Sign" },        { MTF_OP_SOFTPLUS, "Softplus" },
        { MTF_OP_RENAME, "Identity" },  { MTF_OP_STOP_GRADIENT, "Identity" },
        { MTF_OP_DROPOUT, "Identity" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i].kind == kind)
            return names[i].name;
    return NULL;
}

static const MtfShape *result_shape(const Export *e) {
    return &tensor_of(e, operation_of(e)->outputs[0])->shape;
}

static void write_simple(Export *e, const char *name) {
    const MtfOperation *op = operation_of(e);
    bool same = op->kind == MTF_OP_RENAME;
    g_auto(GStrv) inputs = g_new0(char *, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++)
        inputs[k] = same ? g_strdup(input_name(e, k)) : aligned(e, k, result_shape(e));
    last(e, name, op->n_inputs, (const char *const *)inputs);
}

/* "ab,bc->ac" by the operands' dimensions. */
static void write_einsum(Export *e) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const MtfOperation *op = operation_of(e);
    g_autoptr(GString) equation = g_string_new(NULL);
    int seen[sizeof letters], n = 0;
    for (int k = 0; k <= op->n_inputs; k++) {
        const MtfShape *shape =
            k < op->n_inputs ? &tensor_of(e, op->inputs[k])->shape : result_shape(e);
        g_string_append(equation, k == 0 ? "" : k < op->n_inputs ? "," : "->");
        for (int i = 0; i < shape->rank; i++) {
            int at = 0;
            while (at < n && seen[at] != shape->dims[i])
                at++;
            if (at == n && n < (int)sizeof letters - 1)
                seen[n++] = shape->dims[i];
            g_string_append_c(equation, letters[MIN(at, (int)sizeof letters - 2)]);
        }
    }
    g_autofree const char **inputs = g_new0(const char *, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++)
        inputs[k] = input_name(e, k);
    GByteArray *node = begin("Einsum", op->n_inputs, inputs, op->name);
    put_text(node, "equation", equation->str);
    finish(e, node);
}

/* The axes of input 0 that the result lacks; sums take them as an input, the others as an attribute. */
static void write_reduction(Export *e, const char *name, const char *x, bool as_input) {
    const MtfShape *own = &tensor_of(e, operation_of(e)->inputs[0])->shape;
    int axes[MTF_MAX_RANK], n = 0;
    double list[MTF_MAX_RANK];
    for (int i = 0; i < own->rank; i++) {
        if (mtf_shape_find(result_shape(e), own->dims[i]) >= 0)
            continue;
        list[n] = i;
        axes[n++] = i;
    }
    g_autofree char *given = as_input ? constant(e, MTF_ONNX_INT64, list, n) : NULL;
    const char *inputs[] = { x, given };
    GByteArray *node = begin(name, as_input ? 2 : 1, inputs, operation_of(e)->name);
    if (!as_input)
        put_ints(node, "axes", axes, n);
    put_int(node, "keepdims", 0);
    finish(e, node);
}

static void write_reshape(Export *e) {
    const MtfShape *shape = result_shape(e);
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = (double)mtf_graph_size(e->graph, shape->dims[i]);
    g_autofree char *list = constant(e, MTF_ONNX_INT64, sizes, shape->rank);
    bool repeats = operation_of(e)->kind == MTF_OP_BROADCAST;
    g_autofree char *x = repeats ? aligned(e, 0, shape) : g_strdup(input_name(e, 0));
    last_two(e, repeats ? "Expand" : "Reshape", x, list);
}

static void write_transpose(Export *e) {
    const MtfShape *own = &tensor_of(e, operation_of(e)->inputs[0])->shape;
    const char *inputs[] = { input_name(e, 0) };
    int order[MTF_MAX_RANK];
    GByteArray *node = begin("Transpose", 1, inputs, operation_of(e)->name);
    for (int i = 0; i < own->rank; i++)
        order[i] = mtf_shape_find(own, result_shape(e)->dims[i]);
    put_ints(node, "perm", order, own->rank);
    finish(e, node);
}

/* e^(x - max), and so on: inputs 1 and 2 are statistics. */
static void write_softmax(Export *e) {
    const MtfOperation *op = operation_of(e);
    const MtfShape *x = &tensor_of(e, op->inputs[0])->shape;
    g_autofree char *most = aligned(e, 1, x);
    g_autofree char *less = two(e, "Sub", input_name(e, 0), most);
    const char *inputs[] = { less };
    g_autofree char *power = between(e, "Exp", 1, inputs);
    if (op->kind == MTF_OP_SUM_EXP) {
        write_reduction(e, "ReduceSum", power, true);
        return;
    }
    g_autofree char *sum = aligned(e, 2, x);
    last_two(e, "Div", power, sum);
}

static void write_variance(Export *e) {
    const MtfShape *x = &tensor_of(e, operation_of(e)->inputs[0])->shape;
    g_autofree char *mean = aligned(e, 1, x);
    g_autofree char *less = two(e, "Sub", input_name(e, 0), mean);
    g_autofree char *square = two(e, "Mul", less, less);
    write_reduction(e, "ReduceMean", square, false);
}

/* (x - mean) / sqrt(variance + epsilon) scale + bias */
static void write_normalize(Export *e) {
    const MtfOperation *op = operation_of(e);
    const MtfShape *x = &tensor_of(e, op->inputs[0])->shape;
    int type = type_of(tensor_of(e, op->outputs[0])->dtype);
    g_autofree char *mean = aligned(e, 1, x);
    g_autofree char *variance = aligned(e, 2, x);
    g_autofree char *scale = aligned(e, 3, x);
    g_autofree char *epsilon = number(e, type, op->attributes.epsilon);
    g_autofree char *less = two(e, "Sub", input_name(e, 0), mean);
    g_autofree char *more = two(e, "Add", variance, epsilon);
    const char *inputs[] = { more };
    g_autofree char *root = between(e, "Sqrt", 1, inputs);
    g_autofree char *unit = two(e, "Div", less, root);
    if (op->n_inputs < 5) {
        last_two(e, "Mul", unit, scale);
        return;
    }
    g_autofree char *scaled = two(e, "Mul", unit, scale);
    g_autofree char *bias = aligned(e, 4, x);
    last_two(e, "Add", scaled, bias);
}

/* x Phi(x) = x (1 + erf(x / sqrt 2)) / 2; or 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in its place. */
static void write_gelu(Export *e) {
    const MtfOperation *op = operation_of(e);
    int type = type_of(tensor_of(e, op->outputs[0])->dtype);
    bool exact = op->kind == MTF_OP_GELU_EXACT;
    const char *x = input_name(e, 0);
    g_autofree char *factor = number(e, type, exact ? 0.70710678118654752 : 0.79788456080286536);
    g_autofree char *half = number(e, type, 0.5), *one = number(e, type, 1);
    g_autofree char *third = number(e, type, exact ? 0 : 0.044715);
    g_autofree char *square = two(e, "Mul", x, x), *cube = two(e, "Mul", square, x);
    g_autofree char *bent = two(e, "Mul", cube, third), *sum = two(e, "Add", x, bent);
    g_autofree char *inner = two(e, "Mul", sum, factor);
    const char *inputs[] = { inner };
    g_autofree char *curve = between(e, exact ? "Erf" : "Tanh", 1, inputs);
    g_autofree char *up = two(e, "Add", curve, one), *share = two(e, "Mul", up, half);
    last_two(e, "Mul", x, share);
}

/* The rows of a table: the vocabulary's axis of the table goes, the ids' come first. */
static bool write_lookup(Export *e) {
    const MtfOperation *op = operation_of(e);
    const MtfShape *table = &tensor_of(e, op->inputs[0])->shape,
                   *ids = &tensor_of(e, op->inputs[1])->shape, *result = result_shape(e);
    int axis = -1;
    for (int i = 0; i < table->rank; i++)
        if (mtf_shape_find(result, table->dims[i]) < 0)
            axis = i;
    MtfShape made = { 0 };
    for (int i = 0; i < axis; i++)
        mtf_shape_append(&made, table->dims[i]);
    for (int i = 0; i < ids->rank; i++)
        mtf_shape_append(&made, ids->dims[i]);
    for (int i = axis + 1; i < table->rank; i++)
        mtf_shape_append(&made, table->dims[i]);
    if (!mtf_shape_equal(&made, result))
        return mtf_input_error(e->error,
                               "operation \"%s\" (%s) cannot be said in ONNX: its result "
                               "is laid out in another order",
                               op->name, mtf_operation_row(op->kind)->name);
    const char *inputs[] = { input_name(e, 0), input_name(e, 1) };
    GByteArray *node = begin("Gather", 2, inputs, op->name);
    put_int(node, "axis", axis);
    finish(e, node);
    return true;
}

/* x with one number: a factor, an exponent. */
static void write_with_number(Export *e, const char *name, double value) {
    const MtfOperation *op = operation_of(e);
    g_autofree char *c = number(e, type_of(tensor_of(e, op->outputs[0])->dtype), value);
    last_two(e, name, input_name(e, 0), c);
}

static void write_cast(Export *e) {
    const char *inputs[] = { input_name(e, 0) };
    GByteArray *node = begin("Cast", 1, inputs, operation_of(e)->name);
    put_int(node, "to", type_of(tensor_of(e, operation_of(e)->outputs[0])->dtype));
    finish(e, node);
}

static void write_slope(Export *e, const char *name) {
    const char *inputs[] = { input_name(e, 0) };
    GByteArray *node = begin(name, 1, inputs, operation_of(e)->name);
    put_real(node, "alpha", operation_of(e)->attributes.slope);
    finish(e, node);
}

/* Two nodes one behind the other. */
static void write_then(Export *e, const char *first, const char *second) {
    const char *inputs[] = { input_name(e, 0) };
    g_autofree char *inner = between(e, first, 1, inputs);
    const char *next[] = { inner };
    last(e, second, 1, next);
}

static void write_silu(Export *e) {
    const char *inputs[] = { input_name(e, 0) };
    g_autofree char *gate = between(e, "Sigmoid", 1, inputs);
    last_two(e, "Mul", input_name(e, 0), gate);
}

/* A number everywhere: ConstantOfShape. */
static void put_filled(Export *e, GByteArray *node, MtfDtype dtype, double value) {
    GByteArray *attribute = g_byte_array_new();
    mtf_wire_put_string(attribute, 1, "value");
    put_inner(attribute, 5, numbers(type_of(dtype), &value, 1));
    mtf_wire_put_varint(attribute, 20, 4);
    put_inner(node, 5, attribute);
    put_inner(e->model, NODE, node);
}

static char *shape_list(Export *e, const char *name, const MtfShape *shape) {
    double sizes[MTF_MAX_RANK];
    char *list = g_strconcat(name, "/shape", NULL);
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = (double)mtf_graph_size(e->graph, shape->dims[i]);
    GByteArray *tensor = numbers(MTF_ONNX_INT64, sizes, shape->rank);
    mtf_wire_put_string(tensor, 8, list);
    put_inner(e->model, INITIALIZER, tensor);
    return list;
}

static void write_filled(Export *e, int tensor, double value) {
    const MtfTensor *t = tensor_of(e, tensor);
    g_autofree char *list = shape_list(e, t->name, &t->shape);
    const char *inputs[] = { list };
    put_filled(e, begin("ConstantOfShape", 1, inputs, t->name), t->dtype, value);
}

typedef struct {
    int kind;
    void (*write)(Export *e);
} Writer;

static void write_sum(Export *e) {
    write_reduction(e, "ReduceSum", input_name(e, 0), true);
}

static void write_mean(Export *e) {
    write_reduction(e, "ReduceMean", input_name(e, 0), false);
}

static void write_max(Export *e) {
    write_reduction(e, "ReduceMax", input_name(e, 0), false);
}

static void write_scale(Export *e) {
    write_with_number(e, "Mul", operation_of(e)->attributes.factor);
}

/* Exported models are not trained: y. */
static void write_untrained(Export *e) {
    last(e, "Identity", 1, (const char *[]){ input_name(e, 1) });
}

static void write_power(Export *e) {
    write_with_number(e, "Pow", operation_of(e)->attributes.exponent);
}

static void write_square(Export *e) {
    last_two(e, "Mul", input_name(e, 0), input_name(e, 0));
}

static void write_inverse_root(Export *e) {
    write_then(e, "Sqrt", "Reciprocal");
}

static void write_leaky(Export *e) {
    write_slope(e, "LeakyRelu");
}

static void write_elu(Export *e) {
    write_slope(e, "Elu");
}

static void write_number(Export *e) {
    write_filled(e, operation_of(e)->outputs[0], operation_of(e)->attributes.value);
}

static const Writer writers[] = {
    { MTF_OP_EINSUM, write_einsum },
    { MTF_OP_REDUCE_SUM, write_sum },
    { MTF_OP_REDUCE_MEAN, write_mean },
    { MTF_OP_REDUCE_MAX, write_max },
    { MTF_OP_RESHAPE, write_reshape },
    { MTF_OP_BROADCAST, write_reshape },
    { MTF_OP_TRANSPOSE, write_transpose },
    { MTF_OP_SUM_EXP, write_softmax },
    { MTF_OP_SOFTMAX_APPLY, write_softmax },
    { MTF_OP_VARIANCE, write_variance },
    { MTF_OP_NORMALIZE, write_normalize },
    { MTF_OP_GELU, write_gelu },
    { MTF_OP_GELU_EXACT, write_gelu },
    { MTF_OP_SCALE, write_scale },
    { MTF_OP_IN_TRAIN_PHASE, write_untrained },
    { MTF_OP_RAISE, write_power },
    { MTF_OP_SQUARE, write_square },
    { MTF_OP_RSQRT, write_inverse_root },
    { MTF_OP_LEAKY_RELU, write_leaky },
    { MTF_OP_ELU, write_elu },
    { MTF_OP_CAST, write_cast },
    { MTF_OP_SILU, write_silu },
    { MTF_OP_CONSTANT, write_number },
};

static bool write_operation(Export *e) {
    int kind = operation_of(e)->kind;
    e->steps = 0;
    if (simple_name(kind) != NULL) {
        write_simple(e, simple_name(kind));
        return true;
    }
    for (guint i = 0; i < G_N_ELEMENTS(writers); i++) {
        if (writers[i].kind != kind)
            continue;
        writers[i].write(e);
        return true;
    }
    if (kind == MTF_OP_EMBEDDING)
        return write_lookup(e);
    return mtf_input_error(e->error, "operation \"%s\" (%s) has no form in ONNX here",
                           operation_of(e)->name, mtf_operation_row(kind)->name);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* What the forward pass is for: scores that labels are looked up in, or the loss; where nothing is
 * learned, results that nobody reads. */
static void find_outputs(const Export *e, GArray *outputs) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(e->graph);
    for (int i = 0; i < (int)e->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(e->graph, i);
        if (op->phase == MTF_PHASE_FORWARD && op->kind == MTF_OP_LABEL_LOGIT)
            g_array_append_val(outputs, op->inputs[0]);
    }
    if (outputs->len == 0 && e->graph->loss >= 0)
        g_array_append_val(outputs, e->graph->loss);
    for (int i = 0; i < (int)e->graph->operations->len && e->graph->loss < 0; i++) {
        int t = mtf_graph_operation(e->graph, i)->outputs[0];
        if (consumers->starts[t] == consumers->starts[t + 1])
            g_array_append_val(outputs, t);
    }
}

static void mark_needed(Export *e, const GArray *outputs) {
    for (guint i = 0; i < outputs->len; i++)
        e->needed[g_array_index(outputs, int, i)] = true;
    for (int i = (int)e->graph->operations->len - 1; i >= 0; i--) {
        const MtfOperation *op = mtf_graph_operation(e->graph, i);
        for (int k = 0; e->needed[op->outputs[0]] && k < op->n_inputs; k++)
            e->needed[op->inputs[k]] = true;
    }
}

static bool write_graph(Export *e, const GArray *outputs) {
    mtf_wire_put_string(e->model, GRAPH_NAME, e->graph->name);
    for (int t = 0; t < (int)e->graph->tensors->len; t++) {
        const MtfTensor *tensor = tensor_of(e, t);
        if (e->needed[t] && tensor->source == MTF_SOURCE_INPUT)
            put_info(e, INPUT, t);
        if (!e->needed[t] || tensor->source != MTF_SOURCE_VARIABLE)
            continue;
        if (e->weights == NULL)
            write_filled(e, t, tensor->init.kind == MTF_INIT_CONSTANT ? tensor->init.value : 0);
        else if (!put_stored(e, t))
            return false;
    }
    for (e->operation = 0; e->operation < (int)e->graph->operations->len; e->operation++)
        if (e->needed[operation_of(e)->outputs[0]] && !write_operation(e))
            return false;
    for (guint i = 0; i < outputs->len; i++)
        put_info(e, OUTPUT, g_array_index(outputs, int, i));
    return true;
}

/* ModelProto around the graph. */
static GByteArray *wrap(const Export *e) {
    GByteArray *model = g_byte_array_new(), *opset = g_byte_array_new(),
               *configuration = g_byte_array_new();
    const MtfMesh *mesh = &e->plan->layout->mesh;
    g_autofree char *text = mtf_mesh_format(mesh);
    mtf_wire_put_varint(model, 1, 11);
    mtf_wire_put_string(model, 2, "meshtf-plan");
    mtf_wire_put_varint(opset, 2, 17);
    put_inner(model, 8, opset);
    mtf_wire_put_message(model, 7, e->model);
    GByteArray *entry = g_byte_array_new();
    mtf_wire_put_string(entry, 1, "mesh");
    mtf_wire_put_string(entry, 2, text);
    put_inner(model, 14, entry);
    mtf_wire_put_string(configuration, 1, "mesh");
    mtf_wire_put_varint(configuration, 2, (uint64_t)mtf_mesh_size(mesh));
    put_inner(model, 26, configuration);
    return model;
}

GByteArray *mtf_export_onnx(const MtfPlan *plan, const char *weights, GError **error) {
    Export e = { .plan = plan, .graph = plan->graph, .error = error };
    g_autoptr(MtfStoredWeights) stored =
        weights != NULL ? mtf_stored_weights_open(weights, error) : NULL;
    if (weights != NULL && stored == NULL)
        return NULL;
    g_autoptr(GArray) outputs = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree bool *needed = g_new0(bool, plan->graph->tensors->len + 1);
    e.weights = stored;
    e.needed = needed;
    e.model = g_byte_array_new();
    find_outputs(&e, outputs);
    mark_needed(&e, outputs);
    GByteArray *model = write_graph(&e, outputs) ? wrap(&e) : NULL;
    g_byte_array_unref(e.model);
    return model;
}
