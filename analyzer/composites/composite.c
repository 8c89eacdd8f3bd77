// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/composites/composite.h"

#include <string.h>

const MtfShape *mtf_composite_shape(const MtfComposite *c, int tensor) {
    return &mtf_graph_tensor(c->b->graph, tensor)->shape;
}

MtfShape mtf_composite_divided(const MtfShape *shape, int dim, int outer, int inner) {
    MtfShape result = { 0 };
    for (int i = 0; i < shape->rank; i++) {
        mtf_shape_append(&result, shape->dims[i] == dim ? outer : shape->dims[i]);
        if (shape->dims[i] == dim)
            mtf_shape_append(&result, inner);
    }
    return result;
}

int mtf_composite_part(MtfComposite *c, int kind, const char *suffix, const MtfShape *shape, int x,
                       int y) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    return mtf_build(c->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

int mtf_composite_mapped(MtfComposite *c, int kind, const char *suffix, int x, int y) {
    return mtf_composite_part(c, kind, suffix, NULL, x, y);
}

MtfDtype mtf_composite_dtype(const MtfComposite *c, int tensor) {
    return mtf_graph_tensor(c->b->graph, tensor)->dtype;
}

int mtf_composite_number(MtfComposite *c, const char *suffix, MtfDtype dtype, double value) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    return mtf_build_constant(c->b, name, dtype, value);
}

int mtf_composite_converted(MtfComposite *c, const char *suffix, MtfDtype dtype, int x) {
    if (x < 0 || mtf_composite_dtype(c, x) == dtype)
        return x;
    c->b->has_dtype = true;
    c->b->dtype = dtype;
    return mtf_composite_mapped(c, MTF_OP_CAST, suffix, x, -1);
}

int mtf_composite_positions(MtfComposite *c, const char *suffix, int dim, MtfDtype dtype) {
    MtfShape along = { .rank = 1, .dims = { dim } };
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    c->b->has_dtype = true;
    c->b->dtype = dtype;
    return mtf_build(c->b, MTF_OP_RANGE, name, &along, 0, NULL);
}

int mtf_composite_dimension(MtfComposite *c, const char *what, int64_t size) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, what);
    MtfBuilder *b = c->b;
    for (char *at = name; *at != '\0'; at++)
        if (strchr(" ,.;:", *at) != NULL) /* legal in names of operations alone */
            *at = '_';
    return b->error != NULL ? -1 : mtf_graph_add_dimension(b->graph, name, size, &b->error);
}

void mtf_composite_aim(MtfComposite *c, int from, int to, double start, double stride) {
    MtfAttributes *a = &c->b->attributes;
    a->from = from;
    a->to = to;
    a->start = start;
    a->stride = stride;
    a->dilation = 1;
}

int mtf_composite_shifted(MtfComposite *c, const char *suffix, int x, int to, double start) {
    mtf_composite_aim(c, c->op->attributes.dimension, to, start, 1);
    return mtf_composite_mapped(c, MTF_OP_RESAMPLE, suffix, x, -1);
}

int mtf_composite_copy(MtfComposite *c) {
    c->b->attributes = c->op->attributes;
    c->b->has_dtype = mtf_operation_row_chooses_dtype(mtf_operation_row(c->op->kind));
    c->b->dtype = mtf_graph_tensor(c->from, c->op->outputs[0])->dtype;
    return mtf_build(c->b, c->op->kind, c->op->name, c->shape, c->op->n_inputs, c->x);
}
