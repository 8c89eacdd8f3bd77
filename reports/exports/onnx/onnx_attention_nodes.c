// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention and rotary positions, as ONNX nodes. */
#include "layouts/base/error.h"
#include "layouts/kernel_work/rotary_angles.h"
#include "reports/exports/onnx/onnx_nodes.h"

#define NOBODY (-1e30)

static const MtfShape *shape_of(const MtfOnnxNodes *e, int k) {
    return &mtf_node_input(e, k)->shape;
}

static const char *name_of(const MtfOnnxNodes *e, int k) {
    return mtf_node_input(e, k)->name;
}

/* ---- Attention -------------------------------------------------------------------------------- */

/* The scores where a query looks at a position of memory: not behind it, and within the window. */
static const char *masked(MtfOnnxNodes *e, const char *s, const MtfShape *scores) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    const MtfShape query = { .rank = 1, .dims = { a->query } },
                   memory = { .rank = 1, .dims = { a->memory } };
    const char *nobody = mtf_node_number(e, mtf_node_result_type(e), NOBODY);
    const char *q =
        mtf_node_aligned(e, mtf_node_range(e, a->query, MTF_ONNX_INT64), &query, scores);
    const char *m =
        mtf_node_aligned(e, mtf_node_range(e, a->memory, MTF_ONNX_INT64), &memory, scores);
    s = mtf_node_three(e, "Where", mtf_node_two(e, "LessOrEqual", m, q), s, nobody);
    if (a->window == 0)
        return s;
    const char *apart = mtf_node_two(e, "Sub", q, m);
    const char *window = mtf_node_number(e, MTF_ONNX_INT64, a->window);
    return mtf_node_three(e, "Where", mtf_node_two(e, "Less", apart, window), s, nobody);
}

/* softcap tanh(factor q k / softcap) + bias, masked. */
static const char *scores_of(MtfOnnxNodes *e, const MtfShape *scores) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfAttributes *a = &op->attributes;
    int type = mtf_node_result_type(e);
    const char *names[] = { name_of(e, 0), name_of(e, 1) };
    const MtfShape shapes[] = { *shape_of(e, 0), *shape_of(e, 1) };
    const char *s = mtf_node_einsum(e, 2, names, shapes, scores, false);
    s = mtf_node_two(e, "Mul", s, mtf_node_number(e, type, a->factor));
    if (a->softcap > 0) {
        const char *cap = mtf_node_number(e, type, a->softcap);
        s = mtf_node_two(e, "Mul", mtf_node_one(e, "Tanh", mtf_node_two(e, "Div", s, cap)), cap);
    }
    for (int k = 3; k < op->n_inputs; k++)
        s = mtf_node_two(e, "Add", s, mtf_node_aligned_input(e, k, scores));
    return a->causal != 0 ? masked(e, s, scores) : s;
}

static const char *softmax(MtfOnnxNodes *e, const char *s) {
    const char *name = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("Softmax", 1, &s, name);
    mtf_node_put_int(node, "axis", -1);
    mtf_node_put(e, node);
    return name;
}

/* Nothing where the scores say that nobody is looked at: the share of a query that looks at none is 0. */
static const char *without_masked(MtfOnnxNodes *e, const char *shares, const char *s) {
    int type = mtf_node_result_type(e);
    const char *seen = mtf_node_two(e, "Greater", s, mtf_node_number(e, type, MTF_MASKED_SCORE));
    return mtf_node_three(e, "Where", seen, shares, mtf_node_number(e, type, 0));
}

static bool refuse(MtfOnnxNodes *e, const char *why) {
    return mtf_input_error(e->error, "operation \"%s\" cannot be said in ONNX: %s",
                           mtf_node_operation(e)->name, why);
}

static bool write_attention(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    MtfShape scores = *shape_of(e, 0);
    mtf_shape_remove(&scores, op->attributes.dimension);
    if (e->needed[op->outputs[1]])
        return refuse(e, "its \"lse\" is read");
    if (!mtf_shape_append(&scores, op->attributes.memory))
        return refuse(e, "its scores have too many dimensions");
    const char *s = scores_of(e, &scores), *shares = softmax(e, s);
    if (op->n_inputs > 3)
        shares = without_masked(e, shares, s);
    const char *names[] = { shares, name_of(e, 2) };
    const MtfShape shapes[] = { scores, *shape_of(e, 2) };
    mtf_node_einsum(e, 2, names, shapes, &mtf_node_result(e)->shape, true);
    return true;
}

/* ---- Rotary positions -------------------------------------------------------------------------- */

/* x[begin, begin + stride, …] below `end` along the axis. */
static const char *slice(MtfOnnxNodes *e, const char *x, int axis, const double places[3]) {
    const char *name = mtf_node_step(e);
    const char *inputs[] = { x, mtf_node_list(e, &places[0], 1), mtf_node_list(e, &places[1], 1),
                             mtf_node_list(e, (const double[]){ axis }, 1),
                             mtf_node_list(e, &places[2], 1) };
    mtf_node_put(e, mtf_node_begin("Slice", 5, inputs, name));
    return name;
}

static const char *concat(MtfOnnxNodes *e, const char *a, const char *b, int axis) {
    const char *name = mtf_node_step(e), *inputs[] = { a, b };
    GByteArray *node = mtf_node_begin("Concat", 2, inputs, name);
    mtf_node_put_int(node, "axis", axis);
    mtf_node_put(e, node);
    return name;
}

/* The angles of all positions and pairs, in double: `begin` (input 1) counts from where positions do. */
static const char *angles(MtfOnnxNodes *e, int axis, int64_t rotated) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfAttributes *a = &op->attributes;
    const MtfShape *x = shape_of(e, 0), position = { .rank = 1, .dims = { a->position } };
    int64_t sizes[MTF_MAX_RANK], pairs = rotated / 2;
    g_autofree double *frequency = g_new(double, pairs);
    mtf_rotary_frequencies(a, rotated, mtf_node_size(e, a->position), 0, pairs, frequency);
    for (int64_t i = 0; i < pairs; i++)
        frequency[i] *= a->angle;
    for (int i = axis; i < x->rank; i++)
        sizes[i - axis] = i == axis ? pairs : 1;
    const char *places =
        mtf_node_aligned(e, mtf_node_range(e, a->position, MTF_ONNX_DOUBLE), &position, x);
    if (op->n_inputs > 1) {
        const char *begin = mtf_node_cast(e, name_of(e, 1), MTF_ONNX_DOUBLE);
        places = mtf_node_two(e, "Add", places, mtf_node_aligned(e, begin, shape_of(e, 1), x));
    }
    return mtf_node_two(e, "Mul", places,
                        mtf_node_array(e, MTF_ONNX_DOUBLE, frequency, x->rank - axis, sizes));
}

/* cos or sin of the angles, times the gain, in the result's type. */
static const char *wave(MtfOnnxNodes *e, const char *op, const char *u) {
    const char *gain = mtf_node_number(e, MTF_ONNX_DOUBLE, mtf_node_operation(e)->attributes.gain);
    return mtf_node_cast(e, mtf_node_two(e, "Mul", mtf_node_one(e, op, u), gain),
                         mtf_node_result_type(e));
}

/* Pairs next to each other come back between each other: both get an axis of one behind `axis`. */
static const char *interleaved(MtfOnnxNodes *e, const char *a, const char *b, int axis,
                               int64_t rotated) {
    const MtfShape *x = shape_of(e, 0);
    const double behind = axis + 1;
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        sizes[i] = i == axis ? (double)rotated : (double)mtf_node_size(e, x->dims[i]);
    const char *list = mtf_node_list(e, &behind, 1);
    const char *both = concat(e, mtf_node_two(e, "Unsqueeze", a, list),
                              mtf_node_two(e, "Unsqueeze", b, list), axis + 1);
    return mtf_node_two(e, "Reshape", both, mtf_node_list(e, sizes, x->rank));
}

/* (a, b) ─► (a cos u - b sin u, b cos u + a sin u) for every pair; the rest stays. */
static bool write_rotary(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    int axis = mtf_shape_find(shape_of(e, 0), a->dimension);
    double features = (double)mtf_node_size(e, a->dimension);
    double n = a->rotated > 0 ? a->rotated : features;
    bool adjacent = a->adjacent == 1;
    if (mtf_rotary_follows_length(a) && mtf_node_operation(e)->n_inputs > 1)
        return mtf_input_error(
            e->error,
            "operation \"%s\" cannot be said in ONNX: its frequencies follow the "
            "length of the text that a cache holds",
            mtf_node_operation(e)->name);
    const char *x = name_of(e, 0);
    const char *left =
        slice(e, x, axis, adjacent ? (double[]){ 0, n, 2 } : (double[]){ 0, n / 2, 1 });
    const char *right =
        slice(e, x, axis, adjacent ? (double[]){ 1, n, 2 } : (double[]){ n / 2, n, 1 });
    const char *u = angles(e, axis, (int64_t)n);
    const char *c = wave(e, "Cos", u), *s = wave(e, "Sin", u);
    const char *first =
        mtf_node_two(e, "Sub", mtf_node_two(e, "Mul", left, c), mtf_node_two(e, "Mul", right, s));
    const char *second =
        mtf_node_two(e, "Add", mtf_node_two(e, "Mul", right, c), mtf_node_two(e, "Mul", left, s));
    const char *turned =
        adjacent ? interleaved(e, first, second, axis, (int64_t)n) : concat(e, first, second, axis);
    if (n < features)
        turned = concat(e, turned, slice(e, x, axis, (double[]){ n, features, 1 }), axis);
    return mtf_node_last_one(e, "Identity", turned);
}

const MtfOnnxWriter mtf_onnx_attention[] = {
    { MTF_OP_ATTENTION, write_attention },
    { MTF_OP_ROTARY, write_rotary },
    { 0, NULL },
};
