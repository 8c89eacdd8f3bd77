// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/core_matrices.h"

#include <string.h>

int64_t mtf_core_add(int64_t a, int64_t b) {
    if (a >= MTF_CORE_IMPOSSIBLE || b >= MTF_CORE_IMPOSSIBLE)
        return MTF_CORE_IMPOSSIBLE;
    return a + b;
}

bool mtf_question_add_view(MtfQuestion *question, const MtfCoreView *view) {
    gintptr number = (gintptr)view->rows << 17 | (gintptr)view->columns << 1 | (view->down == 1);
    return mtf_question_add(question, view->costs, number);
}

static gsize matrix_bytes(int rows, int columns) {
    return (gsize)rows * (gsize)columns * sizeof(int64_t);
}

/* Remembers a block that answers a question alone, and returns it. */
static const void *remember_block(MtfShared *shared, const MtfQuestion *question, void *block) {
    const void *kept = mtf_shared_keep(shared, block);
    mtf_shared_remember(shared, question, (MtfAnswer){ { kept, NULL }, 0 });
    return kept;
}

/* Copies a row of a view. */
static void copy_row(const MtfCoreView *view, int p, int64_t *row) {
    const int64_t *from = view->costs + (gsize)p * view->down;
    if (view->across == 1)
        memcpy(row, from, (gsize)view->columns * sizeof *row);
    else
        for (int q = 0; q < view->columns; q++)
            row[q] = from[(gsize)q * view->across];
}

const int64_t *mtf_matrix_pick(MtfShared *shared, const MtfCoreView *view, const int16_t *from,
                               int count) {
    MtfQuestion question = { .kind = MTF_ASK_PICK };
    mtf_question_add_view(&question, view);
    mtf_question_add(&question, from, count);
    const MtfAnswer *known = mtf_shared_recall(shared, &question);
    if (known != NULL)
        return mtf_shared_ref(known->blocks[0]);
    int64_t *matrix = mtf_shared_alloc(matrix_bytes(count, view->columns));
    for (int p = 0; p < count; p++)
        copy_row(view, from[p], matrix + (gsize)p * (gsize)view->columns);
    return remember_block(shared, &question, matrix);
}

const int64_t *mtf_matrix_sum(MtfShared *shared, const MtfCoreView *a, const MtfCoreView *b) {
    MtfQuestion question = { .kind = MTF_ASK_SUM };
    mtf_question_add_view(&question, a);
    mtf_question_add_view(&question, b);
    const MtfAnswer *known = mtf_shared_recall(shared, &question);
    if (known != NULL)
        return mtf_shared_ref(known->blocks[0]);
    int64_t *matrix = mtf_shared_alloc(matrix_bytes(a->rows, a->columns));
    for (int p = 0; p < a->rows; p++)
        for (int q = 0; q < a->columns; q++)
            matrix[(gsize)p * (gsize)a->columns + (gsize)q] =
                mtf_core_add(mtf_view_cost(a, p, q), mtf_view_cost(b, p, q));
    return remember_block(shared, &question, matrix);
}

const bool *mtf_matrix_possible(MtfShared *shared, const MtfCoreView *view) {
    MtfQuestion question = { .kind = MTF_ASK_POSSIBLE };
    mtf_question_add_view(&question, view);
    const MtfAnswer *known = mtf_shared_recall(shared, &question);
    if (known != NULL)
        return mtf_shared_ref(known->blocks[0]);
    bool *possible = mtf_shared_alloc((gsize)view->rows * sizeof *possible);
    for (int p = 0; p < view->rows; p++) {
        int q = 0;
        while (q < view->columns && mtf_view_cost(view, p, q) >= MTF_CORE_IMPOSSIBLE)
            q++;
        possible[p] = q < view->columns;
    }
    return remember_block(shared, &question, possible);
}

/* ---- folding ---- */

/* The view's costs from the other end, rows first: [columns][rows], or a column of zeros. */
static int64_t *oriented(const MtfCoreView *view, int rows, bool other_end) {
    if (view->rows == 0)
        return g_new0(int64_t, rows);
    int64_t *matrix = g_new(int64_t, (gsize)view->rows * (gsize)view->columns);
    for (int p = 0; p < view->rows; p++)
        for (int q = 0; q < view->columns; q++)
            matrix[other_end ? (gsize)q * (gsize)view->rows + (gsize)p
                             : (gsize)p * (gsize)view->columns + (gsize)q] =
                mtf_view_cost(view, p, q);
    return matrix;
}

/* Where offset + row[q] is less than least[q], takes it and notes s. */
MTF_FOR_EACH_UNIT static void take_less(int64_t *restrict least, int64_t *restrict chosen,
                                        const int64_t *restrict row, int64_t offset, int64_t s,
                                        int count) {
    for (int q = 0; q < count; q++) {
        int64_t cost = offset + row[q];
        bool less = cost < least[q];
        least[q] = less ? cost : least[q];
        chosen[q] = less ? s : chosen[q];
    }
}

typedef struct Elimination {
    const int64_t *cost; /* of the node */
    const int64_t *rows; /* [values][width] beside the neighbour b */
    int values, width;
    int64_t *chosen; /* [width] */
} Elimination;

/* One row of the table: the neighbour a has the value whose costs are `beside`. Sums that hold an
 * impossible term are at least half of one. */
static void eliminate_row(const Elimination *elimination, const int64_t *beside, int64_t *table,
                          int16_t *choice) {
    int width = elimination->width;
    for (int q = 0; q < width; q++) {
        table[q] = MTF_CORE_IMPOSSIBLE / 2;
        elimination->chosen[q] = 0;
    }
    for (int s = 0; s < elimination->values; s++)
        if (elimination->cost[s] < MTF_CORE_IMPOSSIBLE && beside[s] < MTF_CORE_IMPOSSIBLE)
            take_less(table, elimination->chosen, elimination->rows + (gsize)s * (gsize)width,
                      elimination->cost[s] + beside[s], s, width);
    for (int q = 0; q < width; q++) {
        table[q] = table[q] < MTF_CORE_IMPOSSIBLE / 2 ? table[q] : MTF_CORE_IMPOSSIBLE;
        choice[q] = (int16_t)elimination->chosen[q];
    }
}

static void eliminated(const int64_t *cost, int values, const MtfCoreView *a, const MtfCoreView *b,
                       MtfCoreElimination *result, MtfShared *shared) {
    int height = a->rows == 0 ? 1 : a->columns, width = b->rows == 0 ? 1 : b->columns;
    g_autofree int64_t *beside = oriented(a, values, true);
    g_autofree int64_t *rows = oriented(b, values, false);
    g_autofree int64_t *chosen = g_new(int64_t, width);
    Elimination elimination = { cost, rows, values, width, chosen };
    int64_t *table = mtf_shared_alloc(matrix_bytes(height, width));
    int16_t *choice = mtf_shared_alloc((gsize)height * (gsize)width * sizeof *choice);
    for (int p = 0; p < height; p++)
        eliminate_row(&elimination, beside + (gsize)p * (gsize)values,
                      table + (gsize)p * (gsize)width, choice + (gsize)p * (gsize)width);
    result->table = mtf_shared_keep(shared, table);
    result->choice = mtf_shared_keep(shared, choice);
}

MtfCoreElimination mtf_matrix_eliminate(MtfShared *shared, const int64_t *cost, int values,
                                        const MtfCoreView *a, const MtfCoreView *b) {
    MtfQuestion question = { .kind = MTF_ASK_ELIMINATION };
    mtf_question_add(&question, cost, values);
    mtf_question_add_view(&question, a);
    mtf_question_add_view(&question, b);
    const MtfAnswer *known = mtf_shared_recall(shared, &question);
    if (known != NULL)
        return (MtfCoreElimination){ mtf_shared_ref(known->blocks[0]),
                                     mtf_shared_ref(known->blocks[1]) };
    MtfCoreElimination result;
    eliminated(cost, values, a, b, &result, shared);
    mtf_shared_remember(shared, &question, (MtfAnswer){ { result.table, result.choice }, 0 });
    return result;
}

guint mtf_matrix_key_hash(gconstpointer key) {
    const MtfMatrixKey *matrix = key;
    return g_direct_hash(matrix->costs) * 31 + (guint)matrix->rows;
}

gboolean mtf_matrix_key_equal(gconstpointer left, gconstpointer right) {
    const MtfMatrixKey *a = left, *b = right;
    return a->costs == b->costs && a->rows == b->rows;
}
