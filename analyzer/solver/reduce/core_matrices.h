// SPDX-License-Identifier: GPL-3.0-or-later
/* What the steps that shrink a core do to its matrices. Matrices are shared blocks, and each of
 * these results is computed once for the same arguments, however many layers of a network ask.
 * A view is a matrix as one end of its edge sees it, that end's values down the rows:
 *
 *     edge (a, b)      view from a            view from b
 *                      | 0 7 2 |              | 0 5 |
 *                      | 5 1 9 |              | 7 1 |      the same block
 *                                             | 2 9 |
 *
 * Results are rows first, [values of the end][values of the other end], and come with a reference
 * for the caller. */
#ifndef MTF_CORE_MATRICES_H
#define MTF_CORE_MATRICES_H

#include "analyzer/solver/problem/shared_blocks.h"
#include "analyzer/solver/problem/vector_units.h"

#include <stdint.h>

/* An impossible term; sums that hold one are at least half of it. */
#define MTF_CORE_IMPOSSIBLE (INT64_MAX / 4)

/* Sum of two costs, impossible when one is. */
int64_t mtf_core_add(int64_t a, int64_t b);

typedef struct MtfCoreView {
    const int64_t *costs;
    int rows, columns;  /* values of this end and of the other one */
    gsize down, across; /* costs[p * down + q * across] */
} MtfCoreView;

static inline int64_t mtf_view_cost(const MtfCoreView *view, int p, int q) {
    return view->costs[(gsize)p * view->down + (gsize)q * view->across];
}

/* A shared matrix and its shape, for tables of what is made of matrices once. */
typedef struct MtfMatrixKey {
    const int64_t *costs;
    gint64 rows;
} MtfMatrixKey;

/* Hash and equality of MtfMatrixKey, for tables. */
guint mtf_matrix_key_hash(gconstpointer key);
gboolean mtf_matrix_key_equal(gconstpointer left, gconstpointer right);

/* Kinds of questions about a core; the ones answered here come first. */
enum { MTF_ASK_PICK, MTF_ASK_SUM, MTF_ASK_ELIMINATION, MTF_ASK_POSSIBLE, MTF_ASK_DOMINATED };

/* Adds a part that says all about a view. */
bool mtf_question_add_view(MtfQuestion *question, const MtfCoreView *view);

/* Row p of the result is row from[p] of the view, `count` rows; `from` is a shared block. */
const int64_t *mtf_matrix_pick(MtfShared *shared, const MtfCoreView *view, const int16_t *from,
                               int count);

/* The sum of two views of the same size. */
const int64_t *mtf_matrix_sum(MtfShared *shared, const MtfCoreView *a, const MtfCoreView *b);

/* Whether each row has a possible entry. */
const bool *mtf_matrix_possible(MtfShared *shared, const MtfCoreView *view);

/* A node's best value beside each pair of its neighbours' values. */
typedef struct MtfCoreElimination {
    const int64_t *table;  /* [columns of a][columns of b] its cost */
    const int16_t *choice; /* likewise, the value */
} MtfCoreElimination;

/* Reductions a node away: table[p][q] = min_s cost[s] + a[s][p] + b[s][q]. A view without rows stands
 * for a neighbour that is not there, of one value. */
MtfCoreElimination mtf_matrix_eliminate(MtfShared *shared, const int64_t *cost, int values,
                                        const MtfCoreView *a, const MtfCoreView *b);

#endif
