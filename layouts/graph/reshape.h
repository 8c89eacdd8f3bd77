// SPDX-License-Identifier: GPL-3.0-or-later
/* Which dimensions of a reshaped tensor hold the elements of which dimensions of the other: both
 * shapes fall into groups of neighbouring dimensions with the same number of elements each.
 *
 *     x[batch, length, model]          groups   {batch | batch}  {length | length}
 *     y[batch, length, heads, value]            {model | heads value}
 *
 * Row-major order makes the first dimension of a group the slowest one, so that p equal parts along
 * it are p equal runs of elements on both sides, where p divides the sizes of both first ones. Other parts differ at
 * their ends: 6 heads of 4 in 4 parts are 4, 8, 4 and 8 of the 24 elements that in 4 parts are 6 each. */
#ifndef MTF_RESHAPE_H
#define MTF_RESHAPE_H

#include "layouts/graph/graph.h"

/* Dimensions first_in … first_in + n_in of one shape and first_out … of the other. */
typedef struct {
    int first_in, n_in, first_out, n_out;
    int64_t parts; /* divisors of this are the numbers of equal parts that both sides have */
} MtfReshapeGroup;

/* Finds the groups, at most 2 MTF_MAX_RANK, and returns how many there are; -1 where the shapes have
 * no such groups. A dimension that both have is a group of its own. */
int mtf_reshape_groups(const MtfGraph *graph, const MtfShape *in, const MtfShape *out,
                       MtfReshapeGroup *groups);

/* The dimension that one of a reshape's input, `dim`, splits together with where it becomes several, or is the first of
 * several that become one, so that either side's elements are as many of the other's each; -1 where it is none such. */
int mtf_reshape_side(const MtfGraph *graph, const MtfOperation *operation, int dim);

/* What an input of an operation that joins is of its result, which has a dimension `to` that no input
 * has: elements [begin, begin + size) along it, which the input has along `dim`.
 *
 *     x[batch, a]  y[batch, b]  z[batch]          to  [0 … a)[a … a + b)[a + b]
 *
 * -1 where the input has no such dimension: it is the one element. */
typedef struct {
    int to, dim;
    int64_t begin, size;
} MtfJoined;

/* Of input `k` of an operation whose row joins. */
MtfJoined mtf_joined_input(const MtfGraph *graph, const MtfOperation *operation, int k);

/* The dimension that input `k` is split along where the result is along `to`; -1 where it is read whole:
 * it gives one element. */
int mtf_joined_side(const MtfGraph *graph, const MtfOperation *operation, int k);

#endif
