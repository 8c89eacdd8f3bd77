// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/reduce/core_matrices.h"
#include "analyzer/solver/reduce/distinct_matrix.h"

#include <math.h>
#include <string.h>

#define MOST 12

static bool same_row(const int64_t *costs, int columns, int a, int b) {
    return memcmp(costs + (gsize)a * (gsize)columns, costs + (gsize)b * (gsize)columns,
                  (gsize)columns * sizeof *costs) == 0;
}

static bool same_column(const int64_t *costs, int rows, int columns, int a, int b) {
    for (int p = 0; p < rows; p++)
        if (costs[p * columns + a] != costs[p * columns + b])
            return false;
    return true;
}

/* How many rows are like none before them; likewise columns. */
static int count_rows(const int64_t *costs, int rows, int columns) {
    int different = 0;
    for (int a = 0; a < rows; a++) {
        bool fresh = true;
        for (int b = 0; b < a; b++)
            fresh &= !same_row(costs, columns, a, b);
        different += fresh;
    }
    return different;
}

static int count_columns(const int64_t *costs, int rows, int columns) {
    int different = 0;
    for (int a = 0; a < columns; a++) {
        bool fresh = true;
        for (int b = 0; b < a; b++)
            fresh &= !same_column(costs, rows, columns, a, b);
        different += fresh;
    }
    return different;
}

static double full_cost(int64_t cost) {
    return cost >= MTF_CORE_IMPOSSIBLE ? INFINITY : (double)cost;
}

static void check(const int64_t *costs, int rows, int columns) {
    MtfDistinctMatrix *matrix = mtf_distinct_matrix_new(costs, rows, columns);
    bool small = true;
    for (int i = 0; i < rows * columns; i++)
        small &= costs[i] == (int32_t)costs[i];
    assert_true(matrix->is_small == small);
    assert_int_equal(matrix->rows, count_rows(costs, rows, columns));
    assert_int_equal(matrix->columns, count_columns(costs, rows, columns));
    for (int p = 0; p < rows; p++)
        for (int q = 0; q < columns; q++) {
            int i = matrix->row_of[p], j = matrix->column_of[q];
            double cost = full_cost(costs[p * columns + q]);
            assert_in_range(i, 0, matrix->rows - 1);
            assert_in_range(j, 0, matrix->columns - 1);
            assert_true(mtf_distinct_cost(matrix, false, i, j) == cost);
            assert_true(mtf_distinct_cost(matrix, true, j, i) == cost);
        }
    mtf_distinct_matrix_free(matrix);
}

/* The lowering of random offsets beside that of the costs one by one; now and then a row has none.
 */
static void check_lowering(GRand *random, const MtfDistinctMatrix *matrix, bool turned) {
    int rows = turned ? matrix->columns : matrix->rows;
    int columns = turned ? matrix->rows : matrix->columns;
    double offsets[2 * MTF_DISTINCT_UNIT], lowered[2 * MTF_DISTINCT_UNIT];
    for (int i = 0; i < 2 * MTF_DISTINCT_UNIT; i++)
        offsets[i] = i < rows && g_rand_int_range(random, 0, 4) > 0
                         ? g_rand_double_range(random, -9, 9)
                         : INFINITY;
    mtf_distinct_lower(matrix, turned, offsets, lowered);
    for (int j = 0; j < columns; j++) {
        double least = INFINITY;
        for (int i = 0; i < rows; i++)
            least = fmin(least, offsets[i] + mtf_distinct_cost(matrix, turned, i, j));
        assert_true(lowered[j] == least);
    }
}

/* Now small, now impossible, now beyond what 32 bits hold. */
static int64_t random_cost(GRand *random, int trial) {
    static const int64_t large[] = { MTF_CORE_IMPOSSIBLE, INT32_MAX, INT32_MIN,
                                     (int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1 };
    int kind = g_rand_int_range(random, 0, 10);
    return trial % 2 == 0 && kind < 5 ? large[kind] : g_rand_int_range(random, -2, 3);
}

/* Rows and columns are drawn from a few. */
static void random_matrix(GRand *random, int trial, int64_t *costs, int *rows, int *columns) {
    int64_t few[MOST * MOST];
    *rows = g_rand_int_range(random, 1, MOST + 1);
    *columns = g_rand_int_range(random, 1, MOST + 1);
    int kinds = g_rand_int_range(random, 1, MOST + 1), row[MOST], column[MOST];
    for (int i = 0; i < MOST * MOST; i++)
        few[i] = random_cost(random, trial);
    for (int i = 0; i < MOST; i++) {
        row[i] = g_rand_int_range(random, 0, kinds);
        column[i] = g_rand_int_range(random, 0, kinds);
    }
    for (int p = 0; p < *rows; p++)
        for (int q = 0; q < *columns; q++)
            costs[p * *columns + q] = few[row[p] * MOST + column[q]];
}

TEST(a_matrix_is_the_same_without_what_is_repeated) {
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int trial = 0; trial < 2000; trial++) {
        int64_t costs[MOST * MOST];
        int rows, columns;
        random_matrix(random, trial, costs, &rows, &columns);
        check(costs, rows, columns);
    }
}

TEST(lowering_takes_the_least_of_each_column) {
    g_autoptr(GRand) random = g_rand_new_with_seed(6);
    for (int trial = 0; trial < 2000; trial++) {
        int64_t costs[MOST * MOST];
        int rows, columns;
        random_matrix(random, trial, costs, &rows, &columns);
        MtfDistinctMatrix *matrix = mtf_distinct_matrix_new(costs, rows, columns);
        check_lowering(random, matrix, false);
        check_lowering(random, matrix, true);
        mtf_distinct_matrix_free(matrix);
    }
}
