// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files that draw graphs share: the graph so far, the tensors that operands are drawn from, and
 * operations in one line. */
#ifndef MTF_TESTS_RANDOM_DRAW_H
#define MTF_TESTS_RANDOM_DRAW_H

#include "layouts/graph/operation_table.h"
#include "tests/support/drawn/random_graph.h"

#define MOST_RANK 4

typedef struct {
    const MtfRandomGraph *options;
    GRand *random;
    MtfGraph *graph;
    GArray *pool; /* float tensors to draw operands from (int) */
    int names;
    int loop; /* whose body is drawn; 0: none */
} MtfDraw;

static inline int below(MtfDraw *draw, int n) {
    return g_rand_int_range(draw->random, 0, n);
}

static inline const MtfShape *shape_of(const MtfDraw *draw, int tensor) {
    return &mtf_graph_tensor(draw->graph, tensor)->shape;
}

/* A fresh name; free with g_free. */
static inline char *fresh_name(MtfDraw *draw, const char *stem) {
    return g_strdup_printf("%s%d", stem, draw->names++);
}

static inline MtfShape random_shape(MtfDraw *draw, int most_rank) {
    MtfShape shape = { 0 };
    int rank = below(draw, most_rank + 1);
    for (int i = 0; i < rank; i++) {
        int dim = below(draw, (int)draw->graph->dimensions->len);
        if (mtf_shape_find(&shape, dim) < 0)
            mtf_shape_append(&shape, dim);
    }
    return shape;
}

/* Some of the shape's dimensions, in any order. */
static inline MtfShape random_subset(MtfDraw *draw, const MtfShape *shape) {
    MtfShape subset = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if (below(draw, 3) > 0)
            mtf_shape_append(&subset, shape->dims[i]);
    for (int i = subset.rank - 1; i > 0; i--) {
        int j = below(draw, i + 1), dim = subset.dims[i];
        subset.dims[i] = subset.dims[j];
        subset.dims[j] = dim;
    }
    return subset;
}

static inline MtfShape without(const MtfShape *shape, int dim) {
    MtfShape rest = { 0 };
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != dim)
            mtf_shape_append(&rest, shape->dims[i]);
    return rest;
}

static inline int union_rank(const MtfDraw *draw, int n, const int *tensors) {
    MtfShape all = { 0 };
    for (int k = 0; k < n; k++)
        for (int i = 0; i < shape_of(draw, tensors[k])->rank; i++) {
            int dim = shape_of(draw, tensors[k])->dims[i];
            if (mtf_shape_find(&all, dim) < 0)
                mtf_shape_append(&all, dim);
        }
    return all.rank;
}

static inline int add_variable(MtfDraw *draw, const MtfShape *shape) {
    g_autofree char *name = fresh_name(draw, "w");
    MtfInit init = { MTF_INIT_UNIFORM, 1 };
    return mtf_graph_add_variable(draw->graph, name, shape, draw->options->dtype, init,
                                  MTF_MEMORY_VARIABLE, NULL);
}

static inline int add_input(MtfDraw *draw, const MtfShape *shape, bool integer) {
    g_autofree char *name = fresh_name(draw, integer ? "ids" : "x");
    return mtf_graph_add_input(draw->graph, name, shape, integer ? MTF_I32 : draw->options->dtype,
                               integer ? MTF_FEED_LABELS : MTF_FEED_FEATURES, NULL);
}

static inline int emit(MtfDraw *draw, MtfNewOperation operation) {
    g_autofree char *name = fresh_name(draw, mtf_operation_row(operation.kind)->name);
    operation.name = name;
    operation.loop = draw->loop;
    if (mtf_operation_row(operation.kind)->dtype == MTF_DTYPE_GIVEN && !operation.has_dtype) {
        operation.has_dtype = true;
        operation.dtype = draw->options->dtype;
    }
    GError *error = NULL;
    int result = mtf_graph_add_operation(draw->graph, &operation, &error);
    if (result < 0)
        g_error("random graph: %s", error->message);
    return result;
}

static inline int emit_plain(MtfDraw *draw, int kind, int n, const int *inputs,
                             const MtfShape *shape) {
    return emit(draw, (MtfNewOperation){ .kind = kind,
                                         .n_inputs = n,
                                         .inputs = inputs,
                                         .shape = shape,
                                         .attributes = MTF_NO_ATTRIBUTES });
}

static inline int emit_unary(MtfDraw *draw, int kind, int x) {
    return emit_plain(draw, kind, 1, &x, NULL);
}

static inline int emit_scaled(MtfDraw *draw, int x, double factor) {
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.factor = factor;
    return emit(draw,
                (MtfNewOperation){
                    .kind = MTF_OP_SCALE, .n_inputs = 1, .inputs = &x, .attributes = attributes });
}

/* An operand: mostly a result so far, the newest often, sometimes a new variable or input. */
static inline int pick(MtfDraw *draw) {
    int choice = below(draw, 8), n = (int)draw->pool->len;
    if (n == 0 || choice < 2) {
        MtfShape shape = random_shape(draw, 3);
        return n == 0 ? add_input(draw, &shape, false) : add_variable(draw, &shape);
    }
    int low = choice < 5 ? MAX(0, n - 3) : 0;
    return g_array_index(draw->pool, int, g_rand_int_range(draw->random, low, n));
}

static inline int pick_with_dims(MtfDraw *draw) {
    for (int attempt = 0; attempt < 8; attempt++) {
        int x = pick(draw);
        if (shape_of(draw, x)->rank > 0)
            return x;
    }
    MtfShape shape = { .rank = 1 };
    return add_variable(draw, &shape);
}

static inline int random_dim(MtfDraw *draw, int tensor) {
    const MtfShape *shape = shape_of(draw, tensor);
    return shape->dims[below(draw, shape->rank)];
}

/* A dimension of the same size that the tensor lacks, or -1. */
static inline int twin_of(const MtfDraw *draw, int tensor, int dim) {
    for (int d = 0; d < (int)draw->graph->dimensions->len; d++)
        if (d != dim && mtf_graph_size(draw->graph, d) == mtf_graph_size(draw->graph, dim) &&
            mtf_shape_find(shape_of(draw, tensor), d) < 0)
            return d;
    return -1;
}

static inline int emit_with(MtfDraw *draw, int kind, int n, const int *inputs,
                            const MtfAttributes *attributes) {
    return emit(draw,
                (MtfNewOperation){
                    .kind = kind, .n_inputs = n, .inputs = inputs, .attributes = *attributes });
}

/* A dimension of `size` that no tensor has yet, small enough to be drawn again; or -1. */
static inline int new_dimension(MtfDraw *draw, int64_t size) {
    g_autofree char *name = fresh_name(draw, "n");
    return size > 12 ? -1 : mtf_graph_add_dimension(draw->graph, name, size, NULL);
}

/* Some dimension that the tensor lacks, or -1. */
static inline int other_dim(MtfDraw *draw, int tensor) {
    for (int attempt = 0; attempt < 8; attempt++) {
        int dim = below(draw, (int)draw->graph->dimensions->len);
        if (mtf_shape_find(shape_of(draw, tensor), dim) < 0)
            return dim;
    }
    return -1;
}

static inline int emit_typed(MtfDraw *draw, int kind, int n, const int *inputs,
                             const MtfShape *shape, MtfDtype dtype) {
    return emit(draw, (MtfNewOperation){ .kind = kind,
                                         .n_inputs = n,
                                         .inputs = inputs,
                                         .shape = shape,
                                         .has_dtype = true,
                                         .dtype = dtype,
                                         .attributes = MTF_NO_ATTRIBUTES });
}

/* Dimensions of a tensor that is rotated, and frequencies as they are; false where the draw does not suit. */
static inline bool draw_rotated(MtfDraw *draw, int tensor, MtfAttributes *attributes) {
    attributes->dimension = random_dim(draw, tensor);
    attributes->position = random_dim(draw, tensor);
    int64_t size = mtf_graph_size(draw->graph, attributes->dimension);
    attributes->rotated = (double)(size / 2 * 2);
    attributes->base = 10;
    attributes->angle = attributes->stretch = attributes->gain = 1;
    return size >= 2 && attributes->position != attributes->dimension;
}

/* Adds some operation of those that the options allow. The tensor it makes, or -1 where its operands did not
 * suit. */
int mtf_draw_operation(MtfDraw *draw);

#endif
