// SPDX-License-Identifier: GPL-3.0-or-later
/* A shape is an ordered list of distinct dimensions. Dimensions are ids into the graph's table of
 * names and sizes: one size per name in a graph. The order only says how elements lie in memory
 * (row-major, last dimension fastest); meaning goes by name. */
#ifndef MTF_SHAPE_H
#define MTF_SHAPE_H

#include <stdbool.h>

#define MTF_MAX_RANK 12

typedef struct {
    int rank;
    int dims[MTF_MAX_RANK];
} MtfShape;

/* The position of `dim`, or -1. */
int mtf_shape_find(const MtfShape *shape, int dim);

/* Adds a dimension that is not there yet; false when the shape is full. */
bool mtf_shape_append(MtfShape *shape, int dim);

/* Takes a dimension away, if it is there. */
void mtf_shape_remove(MtfShape *shape, int dim);

/* Same dimensions in the same order. */
bool mtf_shape_equal(const MtfShape *a, const MtfShape *b);

/* Every dimension of `part` is in `whole`. */
bool mtf_shape_contains(const MtfShape *whole, const MtfShape *part);

#endif
