// SPDX-License-Identifier: GPL-3.0-or-later
/* A matrix of costs with each of its different rows and columns kept once. The price of a
 * resharding depends on placements, and many strategies of an operation leave a tensor in the same
 * placement, so most rows and columns of an edge's matrix are repeated:
 *
 *     strategies   a  b  c  d                     column_of  0 1 0 1
 *              A   3  5  3  5       3  5          row_of     0 0 1
 *              B   3  5  3  5   =   9  2
 *              C   9  2  9  2                                                           */
#ifndef MTF_DISTINCT_MATRIX_H
#define MTF_DISTINCT_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct MtfDistinctMatrix {
    int rows, columns;       /* different ones */
    int *row_of, *column_of; /* for each row and column of the full matrix */
    bool is_small;           /* costs are kept in `small`, else in `cost` */
    /* [rows][columns], and transposed; both are filled up to whole units (below) with zeros. Loops
     * over matrices take the time of fetching them, so costs that are possible and fit into 32
     * bits, as most do, take no more. */
    int32_t *small[2];
    double *cost[2]; /* impossible entries are INFINITY */
    int64_t *whole;  /* [rows][columns] core costs, where `small` is not there */
} MtfDistinctMatrix;

/* `count` rounded up to a whole number of units, in which the loops over matrices go. */
#define MTF_DISTINCT_UNIT 8
static inline int mtf_distinct_filled(int count) {
    return (count + MTF_DISTINCT_UNIT - 1) / MTF_DISTINCT_UNIT * MTF_DISTINCT_UNIT;
}

/* The cost at row i and column j, turned: of the transposed. */
static inline double mtf_distinct_cost(const MtfDistinctMatrix *matrix, bool turned, int i, int j) {
    int width = mtf_distinct_filled(turned ? matrix->rows : matrix->columns);
    int64_t at = (int64_t)i * width + j;
    return matrix->is_small ? matrix->small[turned][at] : matrix->cost[turned][at];
}

/* lowered[j] = min over rows i of offsets[i] + cost[i][j], turned: of the transposed. Both arrays
 * have whole units; behind the rows there are offsets of INFINITY, and what is lowered behind the
 * columns means nothing. */
void mtf_distinct_lower(const MtfDistinctMatrix *matrix, bool turned, const double *offsets,
                        double *lowered);

/* Of costs[rows][columns] in core costs (core_matrices.h). */
MtfDistinctMatrix *mtf_distinct_matrix_new(const int64_t *costs, int rows, int columns);
void mtf_distinct_matrix_free(MtfDistinctMatrix *matrix);

#endif
