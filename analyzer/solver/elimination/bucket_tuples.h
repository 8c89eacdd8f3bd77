// SPDX-License-Identifier: GPL-3.0-or-later
/* What each bucket leaves behind for its scope, as far as a cutoff allows: a tuple is values of the
 * scope, a row of it a value of the bucket's node beside them.
 *
 *     bucket of b, scope {c, a}        c  a | least of the subtree      rows: b, its terms, children's tuples
 *                                      0  2 |   17                        0   9   #4 of bucket x
 *                                      1  0 |    3                        1   3   #0
 *
 * Going up (children first) `least` is the least sum of all terms of the buckets below; a tuple is
 * left out, wherever it shows, once its terms and what is below exceed the slack. That is what keeps
 * wide scopes small: not all combinations of values are looked at, only those a good choice may hold.
 * Going down `outside` is the least sum of all other terms, and rows beyond the slack are dropped. So
 * what is left is, without any memory's limit, exactly what choices within the cutoff consist of.
 *
 * Tuples are kept in tries, a level for each node of the scope, in ascending order. */
#ifndef MTF_BUCKET_TUPLES_H
#define MTF_BUCKET_TUPLES_H

#include "analyzer/solver/elimination/elimination_tree.h"
#include "analyzer/solver/elimination/priced_terms.h"
#include "analyzer/solver/problem/search_control.h"

/* Values of a scope's first nodes. */
typedef struct MtfTrieNode {
    int64_t least; /* of the tuples below */
    int first; /* the first child, of the last level the first row; they end where the next one's begin */
    int16_t value; /* of the last of them */
} MtfTrieNode;

typedef struct MtfBucketRow {
    int64_t terms; /* of the node and its edges to the scope; MTF_TERM_NEVER: dropped */
    int16_t value;
} MtfBucketRow;

typedef struct MtfBucketTable {
    int width;        /* of the scope */
    GArray **levels;  /* [width + 1] MtfTrieNode and a last one behind all; the root, then one
                         for each * node of the scope: those of the last are the tuples */
    GArray *rows;     /* MtfBucketRow, by tuple */
    GArray *below;    /* int, [rows][children] the tuples of the children */
    int64_t *outside; /* [tuples] */
} MtfBucketTable;

typedef struct MtfBucketTuples {
    const MtfEliminationTree *tree;
    const MtfPricedTerms *terms;
    MtfBucketTable *tables; /* [count] */
    int64_t work;           /* values tried */
    int64_t rows;           /* in all tables, dropped ones included */
} MtfBucketTuples;

typedef enum {
    MTF_TUPLES_COMPLETE,
    MTF_TUPLES_NONE, /* no choice is within the cutoff, whatever the memory */
    MTF_TUPLES_OPEN, /* there are too many, or time is up */
} MtfTuplesStatus;

/* Tuples without any yet; tree and terms must outlive them. */
MtfBucketTuples *mtf_bucket_tuples_new(const MtfEliminationTree *tree, const MtfPricedTerms *terms);
void mtf_bucket_tuples_free(MtfBucketTuples *tuples);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfBucketTuples, mtf_bucket_tuples_free)

/* Finds them all, up and down, trying at most `most_work` values. After any status but COMPLETE they can
 * only be freed. The control (or NULL) is asked now and then. */
MtfTuplesStatus mtf_bucket_tuples_find(MtfBucketTuples *tuples, int64_t most_work,
                                       const MtfSearchControl *control);

/* How many a table has; its trie nodes for them; the rows of one, up to those of the next. */
int mtf_bucket_table_count(const MtfBucketTable *table);
const MtfTrieNode *mtf_bucket_table_tuple(const MtfBucketTable *table, int tuple);
MtfBucketRow *mtf_bucket_table_row(const MtfBucketTable *table, int row);

#endif
