// SPDX-License-Identifier: GPL-3.0-or-later
/* Products, reductions and what is made of their results, as ONNX nodes. */
#include "reports/exports/onnx/onnx_nodes.h"

static const MtfShape *shape_of(const MtfOnnxNodes *e, int k) {
    return &mtf_node_input(e, k)->shape;
}

static const char *x_of(const MtfOnnxNodes *e) {
    return mtf_node_input(e, 0)->name;
}

static bool write_einsum(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    g_autofree const char **names = g_new0(const char *, op->n_inputs + 1);
    g_autofree MtfShape *shapes = g_new0(MtfShape, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++) {
        names[k] = mtf_node_input(e, k)->name;
        shapes[k] = *shape_of(e, k);
    }
    mtf_node_einsum(e, op->n_inputs, names, shapes, &mtf_node_result(e)->shape, true);
    return true;
}

/* The result is that value, which of a bool is int32. */
static bool last_value(MtfOnnxNodes *e, const char *x) {
    if (mtf_node_result(e)->dtype != MTF_BOOL)
        return mtf_node_last_one(e, "Identity", x);
    GByteArray *node = mtf_node_begin("Cast", 1, &x, mtf_node_operation(e)->name);
    mtf_node_put_int(node, "to", MTF_ONNX_BOOL);
    return mtf_node_finish(e, node);
}

/* The result as a reduction of a value with the shape of input 0. Sums take their axes as an input, the
 * others as an attribute. What is left may stand in another order. */
static bool last_reduced(MtfOnnxNodes *e, const char *name, const char *x) {
    const MtfShape *own = shape_of(e, 0), *shape = &mtf_node_result(e)->shape;
    bool as_input = g_str_equal(name, "ReduceSum");
    int64_t axes[MTF_MAX_RANK];
    double list[MTF_MAX_RANK];
    MtfShape left = { 0 };
    int n = 0;
    for (int i = 0; i < own->rank; i++) {
        if (mtf_shape_find(shape, own->dims[i]) >= 0) {
            mtf_shape_append(&left, own->dims[i]);
            continue;
        }
        list[n] = i;
        axes[n++] = i;
    }
    if (n == 0) /* which ONNX takes for all axes */
        return last_value(e, mtf_node_aligned(e, x, own, shape));
    bool is_last = mtf_shape_equal(&left, shape) && mtf_node_result(e)->dtype != MTF_BOOL;
    const char *reduced = is_last ? mtf_node_operation(e)->name : mtf_node_step(e);
    const char *inputs[] = { x, as_input ? mtf_node_list(e, list, n) : NULL };
    GByteArray *node = mtf_node_begin(name, 2, inputs, reduced);
    if (!as_input)
        mtf_node_put_ints(node, "axes", axes, n);
    mtf_node_put_int(node, "keepdims", 0);
    if (is_last)
        return mtf_node_finish(e, node);
    mtf_node_put(e, node);
    return last_value(e, mtf_node_aligned(e, reduced, &left, shape));
}

static bool write_sum(MtfOnnxNodes *e) {
    return last_reduced(e, "ReduceSum", x_of(e));
}

static bool write_mean(MtfOnnxNodes *e) {
    return last_reduced(e, "ReduceMean", x_of(e));
}

/* Of bools by way of int32. */
static bool write_max(MtfOnnxNodes *e) {
    if (mtf_node_result(e)->dtype != MTF_BOOL)
        return last_reduced(e, "ReduceMax", x_of(e));
    const char *number = mtf_node_cast(e, x_of(e), MTF_ONNX_INT32);
    return last_reduced(e, "ReduceMax", number);
}

/* e^(x - max), where input 1 is the maximum. */
static const char *exponential(MtfOnnxNodes *e) {
    const char *most = mtf_node_aligned_input(e, 1, shape_of(e, 0));
    return mtf_node_one(e, "Exp", mtf_node_two(e, "Sub", x_of(e), most));
}

static bool write_sum_exp(MtfOnnxNodes *e) {
    return last_reduced(e, "ReduceSum", exponential(e));
}

static bool write_softmax(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Div", exponential(e),
                             mtf_node_aligned_input(e, 2, shape_of(e, 0)));
}

static bool write_variance(MtfOnnxNodes *e) {
    const char *mean = mtf_node_aligned_input(e, 1, shape_of(e, 0));
    const char *less = mtf_node_two(e, "Sub", x_of(e), mean);
    return last_reduced(e, "ReduceMean", mtf_node_two(e, "Mul", less, less));
}

/* (x - mean) / sqrt(variance + epsilon) scale + bias */
static bool write_normalize(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfShape *x = shape_of(e, 0);
    const char *epsilon = mtf_node_number(e, mtf_node_result_type(e), op->attributes.epsilon);
    const char *less = mtf_node_two(e, "Sub", x_of(e), mtf_node_aligned_input(e, 1, x));
    const char *more = mtf_node_two(e, "Add", mtf_node_aligned_input(e, 2, x), epsilon);
    const char *unit = mtf_node_two(e, "Div", less, mtf_node_one(e, "Sqrt", more));
    const char *scale = mtf_node_aligned_input(e, 3, x);
    if (op->n_inputs < 5)
        return mtf_node_last_two(e, "Mul", unit, scale);
    return mtf_node_last_two(e, "Add", mtf_node_two(e, "Mul", unit, scale),
                             mtf_node_aligned_input(e, 4, x));
}

static bool write_cumulative_sum(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    int axis = mtf_shape_find(shape_of(e, 0), op->attributes.dimension);
    const char *inputs[] = { x_of(e), mtf_node_number(e, MTF_ONNX_INT64, axis) };
    GByteArray *node = mtf_node_begin("CumSum", 2, inputs, op->name);
    mtf_node_put_int(node, "exclusive", op->attributes.exclusive != 0);
    mtf_node_put_int(node, "reverse", op->attributes.reverse != 0);
    return mtf_node_finish(e, node);
}

/* As many of the largest along `dim`, or of the smallest, as `kept` has, and their places, which ONNX counts in
 * int64. */
static bool write_ranked(MtfOnnxNodes *e, int dim, int kept, bool largest) {
    const MtfOperation *op = mtf_node_operation(e);
    const char *places = mtf_node_step(e);
    double k = (double)mtf_node_size(e, kept);
    const char *inputs[] = { x_of(e), mtf_node_list(e, &k, 1) };
    GByteArray *node = mtf_node_begin("TopK", 2, inputs, op->name);
    mtf_wire_put_string(node, 2, places);
    mtf_node_put_int(node, "axis", mtf_shape_find(shape_of(e, 0), dim));
    if (!largest)
        mtf_node_put_int(node, "largest", 0);
    mtf_node_finish(e, node);
    GByteArray *cast =
        mtf_node_begin("Cast", 1, &places, mtf_graph_tensor(e->graph, op->outputs[1])->name);
    mtf_node_put_int(cast, "to", MTF_ONNX_INT32);
    mtf_node_put(e, cast);
    return true;
}

static bool write_top_k(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    return write_ranked(e, a->from, a->to, true);
}

static bool write_sort(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    return write_ranked(e, a->dimension, a->dimension, a->reverse != 0);
}

const MtfOnnxWriter mtf_onnx_sums[] = {
    { MTF_OP_EINSUM, write_einsum },
    { MTF_OP_REDUCE_SUM, write_sum },
    { MTF_OP_REDUCE_MEAN, write_mean },
    { MTF_OP_REDUCE_MAX, write_max },
    { MTF_OP_SUM_EXP, write_sum_exp },
    { MTF_OP_SOFTMAX_APPLY, write_softmax },
    { MTF_OP_VARIANCE, write_variance },
    { MTF_OP_NORMALIZE, write_normalize },
    { MTF_OP_CUMULATIVE_SUM, write_cumulative_sum },
    { MTF_OP_TOP_K, write_top_k },
    { MTF_OP_SORT, write_sort },
    { 0, NULL },
};
