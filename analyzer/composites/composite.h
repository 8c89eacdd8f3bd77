// SPDX-License-Identifier: GPL-3.0-or-later
/* What rewritings of composite operations are made of (expand.c, composite_scans.c): each builds, with
 * the parts below, operations called NAME/SUFFIX and a last one that is called as the composite is. Where
 * the builder has failed they build nothing and return -1. */
#ifndef MTF_COMPOSITE_H
#define MTF_COMPOSITE_H

#include "layouts/building/builder.h"

/* One operation that is being rewritten. */
typedef struct {
    MtfBuilder *b;        /* of the new graph */
    const MtfGraph *from; /* the graph that has the operation */
    const MtfOperation *op;
    const int *x;          /* its inputs in the new graph; -1 where it could have some more */
    const MtfShape *shape; /* of its output */
    int index; /* its second output, where another operation makes it than the first; or -1 */
} MtfComposite;

/* Of a tensor of the new graph. */
const MtfShape *mtf_composite_shape(const MtfComposite *c, int tensor);
MtfDtype mtf_composite_dtype(const MtfComposite *c, int tensor);

/* `shape` with `outer` and `inner` in the place of `dim`. */
MtfShape mtf_composite_divided(const MtfShape *shape, int dim, int outer, int inner);

/* An operation NAME/SUFFIX over x and, where it is not negative, y; in the shape that its kind gives it
 * (mapped), or in `shape`. */
int mtf_composite_part(MtfComposite *c, int kind, const char *suffix, const MtfShape *shape, int x,
                       int y);
int mtf_composite_mapped(MtfComposite *c, int kind, const char *suffix, int x, int y);

/* A constant NAME/SUFFIX of no dimensions. */
int mtf_composite_number(MtfComposite *c, const char *suffix, MtfDtype dtype, double value);

/* `x` in another type, if it has not that type. */
int mtf_composite_converted(MtfComposite *c, const char *suffix, MtfDtype dtype, int x);

/* 0, 1, 2, … along `dim`. */
int mtf_composite_positions(MtfComposite *c, const char *suffix, int dim, MtfDtype dtype);

/* A dimension NAME/WHAT that the graph has not, of `size`. */
int mtf_composite_dimension(MtfComposite *c, const char *what, int64_t size);

/* Sets the attributes of a resample to be built next. */
void mtf_composite_aim(MtfComposite *c, int from, int to, double start, double stride);

/* x[t + start] along the composite's dimension, called `to`, and 0 where that is no element. */
int mtf_composite_shifted(MtfComposite *c, const char *suffix, int x, int to, double start);

/* The operation itself, as it is. */
int mtf_composite_copy(MtfComposite *c);

#endif
