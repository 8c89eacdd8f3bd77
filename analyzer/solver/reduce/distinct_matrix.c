// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/distinct_matrix.h"

#include "analyzer/solver/problem/shared_blocks.h"
#include "analyzer/solver/reduce/core_matrices.h"

#include <math.h>
#include <string.h>

/* Numbers the different ones among `count` lists of `width` costs as they turn up: of[i] is the
 * number of list i, first[k] the first list of number k. Returns how many there are. */
static int number_lists(const int64_t *lists, int count, int width, int *of, int *first) {
    gsize bytes = (gsize)width * sizeof *lists;
    g_autofree guint *hash = g_new(guint, count + 1);
    int different = 0;
    for (int i = 0; i < count; i++) {
        const int64_t *list = lists + (gsize)i * (gsize)width;
        int k = 0;
        hash[different] = mtf_hash_words(list, bytes);
        while (k < different && (hash[k] != hash[different] ||
                                 memcmp(lists + (gsize)first[k] * (gsize)width, list, bytes) != 0))
            k++;
        of[i] = k;
        first[k] = k == different ? i : first[k];
        different += k == different;
    }
    return different;
}

static double as_double(int64_t cost) {
    return cost >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)cost;
}

/* The costs of the rows in `first`, a column after the other. Free with g_free. */
static int64_t *columns_of(const int64_t *costs, const int *first, int rows, int columns) {
    int64_t *transposed = g_new(int64_t, (gsize)rows * (gsize)columns + 1);
    for (int i = 0; i < rows; i++)
        for (int q = 0; q < columns; q++)
            transposed[(gsize)q * (gsize)rows + (gsize)i] =
                costs[(gsize)first[i] * (gsize)columns + (gsize)q];
    return transposed;
}

static bool is_small(const int64_t *costs, int rows, int columns) {
    for (gsize i = 0; i < (gsize)rows * (gsize)columns; i++)
        if (costs[i] < INT32_MIN || costs[i] > INT32_MAX)
            return false;
    return true;
}

/* Takes the costs of the rows kept, a column after the other, at the columns in `first`. */
static void fill(MtfDistinctMatrix *matrix, const int64_t *transposed, const int *first) {
    gsize rows = (gsize)matrix->rows, columns = (gsize)matrix->columns;
    gsize high = (gsize)mtf_distinct_filled(matrix->rows);
    gsize wide = (gsize)mtf_distinct_filled(matrix->columns);
    for (int turned = 0; turned < 2; turned++) {
        if (matrix->is_small)
            matrix->small[turned] = g_new0(int32_t, high * wide);
        else
            matrix->cost[turned] = g_new0(double, high *wide);
    }
    if (!matrix->is_small)
        matrix->whole = g_new(int64_t, rows * columns + 1);
    for (gsize j = 0; j < columns; j++)
        for (gsize i = 0; i < rows; i++) {
            int64_t cost = transposed[(gsize)first[j] * rows + i];
            if (matrix->is_small)
                matrix->small[0][i * wide + j] = matrix->small[1][j * high + i] = (int32_t)cost;
            else
                matrix->cost[0][i * wide + j] = matrix->cost[1][j * high + i] = as_double(cost);
            if (!matrix->is_small)
                matrix->whole[i * columns + j] = cost;
        }
}

/* Four rows at a time, so that what is lowered is fetched and kept once for all of them: this is
 * where the time of message passing goes. */
#define LOWER(Cost)                                                                    \
    for (int q = 0; q < MTF_DISTINCT_UNIT * wide; q++)                                 \
        lowered[q] = INFINITY;                                                         \
    for (int row = 0; row < MTF_DISTINCT_UNIT * high; row += 4) {                      \
        const Cost *restrict a = costs + (gsize)row * MTF_DISTINCT_UNIT * (gsize)wide; \
        const Cost *restrict b = a + MTF_DISTINCT_UNIT * wide;                         \
        const Cost *restrict c = b + MTF_DISTINCT_UNIT * wide;                         \
        const Cost *restrict d = c + MTF_DISTINCT_UNIT * wide;                         \
        for (int q = 0; q < MTF_DISTINCT_UNIT * wide; q++) {                           \
            double of_a = offsets[row] + (double)a[q];                                 \
            double of_b = offsets[row + 1] + (double)b[q];                             \
            double of_c = offsets[row + 2] + (double)c[q];                             \
            double of_d = offsets[row + 3] + (double)d[q];                             \
            double first = MIN(of_b, of_a), second = MIN(of_d, of_c);                  \
            double least = MIN(second, first);                                         \
            lowered[q] = MIN(least, lowered[q]);                                       \
        }                                                                              \
    }

/* Of a matrix that is `high` by `wide` units. */
MTF_FOR_EACH_UNIT static void lower_small(const int32_t *restrict costs, int high, int wide,
                                          const double *restrict offsets,
                                          double *restrict lowered){ LOWER(int32_t) }

MTF_FOR_EACH_UNIT
    static void lower_large(const double *restrict costs, int high, int wide,
                            const double *restrict offsets, double *restrict lowered) {
    LOWER(double)
}

void mtf_distinct_lower(const MtfDistinctMatrix *matrix, bool turned, const double *offsets,
                        double *lowered) {
    int rows = turned ? matrix->columns : matrix->rows;
    int columns = turned ? matrix->rows : matrix->columns;
    int high = mtf_distinct_filled(rows) / MTF_DISTINCT_UNIT;
    int wide = mtf_distinct_filled(columns) / MTF_DISTINCT_UNIT;
    if (matrix->is_small)
        lower_small(matrix->small[turned], high, wide, offsets, lowered);
    else
        lower_large(matrix->cost[turned], high, wide, offsets, lowered);
}

MtfDistinctMatrix *mtf_distinct_matrix_new(const int64_t *costs, int rows, int columns) {
    MtfDistinctMatrix *matrix = g_new0(MtfDistinctMatrix, 1);
    g_autofree int *first = g_new(int, MAX(rows, columns) + 1);
    matrix->row_of = g_new(int, rows + 1);
    matrix->column_of = g_new(int, columns + 1);
    matrix->rows = number_lists(costs, rows, columns, matrix->row_of, first);
    g_autofree int64_t *transposed = columns_of(costs, first, matrix->rows, columns);
    matrix->columns = number_lists(transposed, columns, matrix->rows, matrix->column_of, first);
    matrix->is_small = is_small(costs, rows, columns);
    fill(matrix, transposed, first);
    return matrix;
}

void mtf_distinct_matrix_free(MtfDistinctMatrix *matrix) {
    if (matrix == NULL)
        return;
    g_free(matrix->row_of);
    g_free(matrix->column_of);
    for (int turned = 0; turned < 2; turned++) {
        g_free(matrix->small[turned]);
        g_free(matrix->cost[turned]);
    }
    g_free(matrix->whole);
    g_free(matrix);
}
