// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files of the reference (reference.h) share: where they stand in an operation's space, and what
 * they see from there. A file has a table of the terms of its operations; what is no sum of terms is a
 * function. */
#ifndef MTF_TESTS_REFERENCE_POINT_H
#define MTF_TESTS_REFERENCE_POINT_H

#include "tests/support/reference/reference.h"

/* One point of an operation's space, and everything a term may depend on. */
typedef struct {
    const MtfReference *reference;
    const MtfOperation *operation;
    const MtfAttributes *a;
    int output;          /* which output is computed */
    int n;               /* inputs */
    double *x;           /* the inputs at this point */
    int64_t *coordinate; /* by dimension */
    double count;        /* points that meet in one output element */
    int64_t element;     /* global index of the output element */
    double t;            /* number of this step, from 1 */
    uint64_t step;       /* the same from 0 */
} MtfReferencePoint;

typedef MtfReferencePoint Point;
typedef double (*MtfReferenceTerm)(const Point *p);

/* The terms of a file's operations, NULL for others. */
extern const MtfReferenceTerm mtf_reference_updates[MTF_OPERATIONS];
extern const MtfReferenceTerm mtf_reference_moves[MTF_OPERATIONS];
extern const MtfReferenceTerm mtf_reference_routing[MTF_OPERATIONS];
extern const MtfReferenceTerm mtf_reference_windows[MTF_OPERATIONS];

/* Whole operations: attention, cached or not, its gradient, and what follows caches. */
void mtf_reference_attention(Point *p);
void mtf_reference_attention_further(Point *p);
void mtf_reference_attention_grad(Point *p);
void mtf_reference_cache_update(Point *p);
void mtf_reference_linear_attention(Point *p);
void mtf_reference_linear_attention_grad(Point *p);

static inline const MtfTensor *input(const Point *p, int k) {
    return mtf_graph_tensor(p->reference->graph, p->operation->inputs[k]);
}

static inline const MtfTensor *output(const Point *p) {
    return mtf_graph_tensor(p->reference->graph, p->operation->outputs[p->output]);
}

/* The dimension that `whole` has and `part` lacks. */
static inline int missing(const MtfShape *whole, const MtfShape *part) {
    for (int i = 0; i < whole->rank; i++)
        if (mtf_shape_find(part, whole->dims[i]) < 0)
            return whole->dims[i];
    g_return_val_if_reached(0);
}

static inline int64_t size_of(const Point *p, int dim) {
    return mtf_graph_size(p->reference->graph, dim);
}

/* The input's value at this point, but at `place` along `dim`. */
static inline double at(const Point *p, int k, int dim, int64_t place) {
    const MtfTensor *tensor = input(p, k);
    int64_t offset = 0;
    for (int i = 0; i < tensor->shape.rank; i++) {
        int d = tensor->shape.dims[i];
        offset =
            offset * mtf_graph_size(p->reference->graph, d) + (d == dim ? place : p->coordinate[d]);
    }
    return p->reference->values[p->operation->inputs[k]][offset];
}

/* Which element of a tensor of that shape we stand at. */
static inline int64_t offset_of(const Point *p, const MtfShape *shape) {
    int64_t offset = 0;
    for (int i = 0; i < shape->rank; i++)
        offset = offset * size_of(p, shape->dims[i]) + p->coordinate[shape->dims[i]];
    return offset;
}

/* Moves to element `number` of a tensor of that shape. */
static inline void stand_at(Point *p, const MtfShape *shape, int64_t number) {
    for (int i = shape->rank - 1; i >= 0; i--) {
        p->coordinate[shape->dims[i]] = number % size_of(p, shape->dims[i]);
        number /= size_of(p, shape->dims[i]);
    }
}

/* The tensor's element where we stand. */
static inline double value_at(const Point *p, int tensor) {
    return p->reference
        ->values[tensor][offset_of(p, &mtf_graph_tensor(p->reference->graph, tensor)->shape)];
}

/* One-line terms; x is the first input, y the second, z the third and so on. */
#define TERM(name, expression)              \
    static double name(const Point *p) {    \
        double x = p->n > 0 ? p->x[0] : 0;  \
        double y = p->n > 1 ? p->x[1] : 0;  \
        double z = p->n > 2 ? p->x[2] : 0;  \
        double u = p->n > 3 ? p->x[3] : 0;  \
        double v = p->n > 4 ? p->x[4] : 0;  \
        (void)x, (void)y, (void)z, (void)u; \
        (void)v;                            \
        return (expression);                \
    }

#endif
