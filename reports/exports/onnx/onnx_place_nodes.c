// SPDX-License-Identifier: GPL-3.0-or-later
/* The same elements in other places, and elements made from nothing, as ONNX nodes. */
#include "reports/exports/onnx/onnx_nodes.h"

#include <math.h>

static const MtfShape *shape_of(const MtfOnnxNodes *e, int k) {
    return &mtf_node_input(e, k)->shape;
}

static const char *x_of(const MtfOnnxNodes *e) {
    return mtf_node_input(e, 0)->name;
}

static const char *sizes_of(MtfOnnxNodes *e, const MtfShape *shape) {
    double sizes[MTF_MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        sizes[i] = (double)mtf_node_size(e, shape->dims[i]);
    return mtf_node_list(e, sizes, shape->rank);
}

static bool write_same(MtfOnnxNodes *e) {
    return mtf_node_last_one(e, "Identity", x_of(e));
}

static bool write_reshape(MtfOnnxNodes *e) {
    return mtf_node_last_two(e, "Reshape", x_of(e), sizes_of(e, &mtf_node_result(e)->shape));
}

static bool write_broadcast(MtfOnnxNodes *e) {
    const MtfShape *shape = &mtf_node_result(e)->shape;
    return mtf_node_last_two(e, "Expand", mtf_node_aligned_input(e, 0, shape), sizes_of(e, shape));
}

static bool write_transpose(MtfOnnxNodes *e) {
    const MtfShape *own = shape_of(e, 0), *shape = &mtf_node_result(e)->shape;
    const char *x = x_of(e);
    int64_t order[MTF_MAX_RANK];
    for (int i = 0; i < own->rank; i++)
        order[i] = mtf_shape_find(own, shape->dims[i]);
    GByteArray *node = mtf_node_begin("Transpose", 1, &x, mtf_node_operation(e)->name);
    mtf_node_put_ints(node, "perm", order, own->rank);
    return mtf_node_finish(e, node);
}

static const char *gather(MtfOnnxNodes *e, const char *x, const char *ids, int axis) {
    const char *name = mtf_node_step(e), *inputs[] = { x, ids };
    GByteArray *node = mtf_node_begin("Gather", 2, inputs, name);
    mtf_node_put_int(node, "axis", axis);
    mtf_node_put(e, node);
    return name;
}

/* Element t of the result is x[(start + stride t) / dilation], where there is one; else 0. */
static bool write_resample(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    int64_t n = mtf_node_size(e, a->to), size = mtf_node_size(e, a->from);
    g_autofree double *place = g_new(double, n), *there = g_new(double, n);
    bool all = true;
    for (int64_t t = 0; t < n; t++) {
        double at = (a->start + a->stride * (double)t) / a->dilation;
        at -= a->wrap == 1 ? (double)size * floor(at / (double)size) : 0;
        bool is = at == floor(at) && at >= 0 && at < (double)size;
        place[t] = is ? at : 0;
        there[t] = is;
        all &= is;
    }
    const char *ids = mtf_node_array(e, MTF_ONNX_INT64, place, 1, &n);
    const char *taken = gather(e, x_of(e), ids, mtf_shape_find(shape_of(e, 0), a->from));
    if (all)
        return mtf_node_last_one(e, "Identity", taken);
    const char *mask = mtf_node_array(e, MTF_ONNX_BOOL, there, 1, &n);
    MtfShape along = { .rank = 1, .dims = { a->to } };
    return mtf_node_last_three(e, "Where",
                               mtf_node_aligned(e, mask, &along, &mtf_node_result(e)->shape), taken,
                               mtf_node_number(e, mtf_node_result_type(e), 0));
}

/* The result's dimension that no input has. */
static int joined(const MtfOnnxNodes *e) {
    const MtfShape *shape = &mtf_node_result(e)->shape;
    for (int i = 0; i < shape->rank; i++) {
        bool has = false;
        for (int k = 0; k < mtf_node_operation(e)->n_inputs; k++)
            has |= mtf_shape_find(shape_of(e, k), shape->dims[i]) >= 0;
        if (!has)
            return i;
    }
    return 0;
}

/* Inputs with nothing in the place of the joined dimension are one element of it. */
static bool write_concat(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    int axis = joined(e), rank = mtf_node_result(e)->shape.rank;
    g_autofree const char **names = g_new0(const char *, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++) {
        names[k] = mtf_node_input(e, k)->name;
        if (shape_of(e, k)->rank < rank)
            names[k] = mtf_node_two(e, "Unsqueeze", names[k],
                                    mtf_node_list(e, (const double[]){ axis }, 1));
    }
    GByteArray *node = mtf_node_begin("Concat", op->n_inputs, names, op->name);
    mtf_node_put_int(node, "axis", axis);
    return mtf_node_finish(e, node);
}

/* The dimensions of `of` that `other` has, or has not, in order. */
static MtfShape shared(const MtfShape *of, const MtfShape *other, bool has) {
    MtfShape found = { 0 };
    for (int i = 0; i < of->rank; i++)
        if ((mtf_shape_find(other, of->dims[i]) >= 0) == has)
            mtf_shape_append(&found, of->dims[i]);
    return found;
}

static MtfShape joint(const MtfShape *a, const MtfShape *b) {
    MtfShape all = *a;
    for (int i = 0; i < b->rank; i++)
        mtf_shape_append(&all, b->dims[i]);
    return all;
}

/* Rows of tables of their own: ids are repeated along the tables' other axes, so that each element has
 * its id. */
static const char *lookup_each(MtfOnnxNodes *e, const MtfShape *tables, const MtfShape *more,
                               const MtfShape *rest, const char *x) {
    MtfShape groups[MTF_MAX_RANK + 1], places = joint(tables, more), made = joint(&places, rest);
    double sizes[2 * MTF_MAX_RANK], behind[MTF_MAX_RANK];
    int n = 0;
    for (; n < tables->rank; n++) {
        groups[n] = (MtfShape){ .rank = 1, .dims = { tables->dims[n] } };
        sizes[n] = (double)mtf_node_size(e, tables->dims[n]);
    }
    groups[n] = *more;
    sizes[n++] = (double)mtf_graph_elements(e->graph, more);
    const char *ids = mtf_node_merged(e, mtf_node_input(e, 1)->name, shape_of(e, 1), groups, n);
    for (int i = 0; i < rest->rank; i++) {
        behind[i] = n;
        sizes[n++] = (double)mtf_node_size(e, rest->dims[i]);
    }
    if (rest->rank > 0)
        ids = mtf_node_two(e, "Unsqueeze", ids, mtf_node_list(e, behind, rest->rank));
    const char *inputs[] = { x, mtf_node_two(e, "Expand", ids, mtf_node_list(e, sizes, n)) };
    const char *rows = mtf_node_step(e);
    GByteArray *node = mtf_node_begin("GatherElements", 2, inputs, rows);
    mtf_node_put_int(node, "axis", tables->rank);
    mtf_node_put(e, node);
    return mtf_node_two(e, "Reshape", rows, sizes_of(e, &made));
}

/* The rows of tables: the axis that is chosen from goes, those of the ids come in its place. Dimensions
 * that both have count tables, each with ids of its own. */
static bool write_lookup(MtfOnnxNodes *e) {
    const MtfShape *table = shape_of(e, 0), *ids = shape_of(e, 1),
                   *shape = &mtf_node_result(e)->shape;
    MtfShape tables = shared(table, ids, true), chosen = shared(table, shape, false),
             rest = shared(table, ids, false), more = shared(ids, table, false);
    mtf_shape_remove(&rest, chosen.dims[0]);
    MtfShape choices = joint(&tables, &chosen), places = joint(&tables, &more);
    MtfShape from = joint(&choices, &rest), made = joint(&places, &rest);
    const char *x = mtf_node_aligned_input(e, 0, &from);
    const char *rows = tables.rank > 0 ? lookup_each(e, &tables, &more, &rest, x)
                                       : gather(e, x, mtf_node_input(e, 1)->name, 0);
    return mtf_node_last_one(e, "Identity", mtf_node_aligned(e, rows, &made, shape));
}

/* x where memory is not behind the query, else a number. */
static bool write_causal(MtfOnnxNodes *e) {
    const MtfAttributes *a = &mtf_node_operation(e)->attributes;
    const MtfShape *shape = shape_of(e, 0), query = { .rank = 1, .dims = { a->query } },
                   memory = { .rank = 1, .dims = { a->memory } };
    const char *looks = mtf_node_two(
        e, "LessOrEqual",
        mtf_node_aligned(e, mtf_node_range(e, a->memory, MTF_ONNX_INT64), &memory, shape),
        mtf_node_aligned(e, mtf_node_range(e, a->query, MTF_ONNX_INT64), &query, shape));
    return mtf_node_last_three(e, "Where", looks, x_of(e),
                               mtf_node_number(e, mtf_node_result_type(e), -1e30));
}

static bool write_range(MtfOnnxNodes *e) {
    const MtfTensor *t = mtf_node_result(e);
    return mtf_node_last_one(e, "Identity",
                             mtf_node_range(e, t->shape.dims[0], mtf_node_type_of(t->dtype)));
}

static bool write_number(MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    return mtf_node_last_two(e, "Expand",
                             mtf_node_number(e, mtf_node_result_type(e), op->attributes.value),
                             sizes_of(e, &mtf_node_result(e)->shape));
}

const MtfOnnxWriter mtf_onnx_places[] = {
    { MTF_OP_RENAME, write_same },
    { MTF_OP_RESHAPE, write_reshape },
    { MTF_OP_BROADCAST, write_broadcast },
    { MTF_OP_TRANSPOSE, write_transpose },
    { MTF_OP_RESAMPLE, write_resample },
    { MTF_OP_CONCAT, write_concat },
    { MTF_OP_EMBEDDING, write_lookup },
    { MTF_OP_CAUSAL_MASK, write_causal },
    { MTF_OP_RANGE, write_range },
    { MTF_OP_CONSTANT, write_number },
    { 0, NULL },
};
