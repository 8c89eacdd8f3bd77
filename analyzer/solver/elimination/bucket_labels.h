// SPDX-License-Identifier: GPL-3.0-or-later
/* The cheapest choice that keeps some memory rows within their capacity, from the tuples of a core: a
 * label of a tuple is one way to choose all below it, its cost and its use of each of those rows.
 *
 *     tuple (c 0, a 2) of bucket b:    cost  91   rows  40  7
 *                                            95         31  7      of two labels, neither of which is
 *                                           102         12  0      better in all, both are kept
 *
 * Use below what can never fill a row, whatever is chosen outside, counts as just that much, so labels
 * that differ in nothing that matters are one (resource-constrained shortest paths, Irnich and
 * Desaulniers 2005, on a tree of buckets). */
#ifndef MTF_BUCKET_LABELS_H
#define MTF_BUCKET_LABELS_H

#include "analyzer/solver/elimination/bucket_tuples.h"

#define MTF_MOST_LABEL_ROWS 8

typedef struct MtfLabelRows {
    int count;
    int rows[MTF_MOST_LABEL_ROWS]; /* of the core, in any order */
    bool all_priced;               /* every row with a price is one of them */
} MtfLabelRows;

typedef enum {
    MTF_LABELS_FOUND,
    MTF_LABELS_NONE, /* no choice within the cutoff keeps to those rows */
    MTF_LABELS_OPEN, /* there are too many labels, or time is up */
} MtfLabelsStatus;

/* Looks for it among the tuples, which are complete, combining labels at most `most_work` times. Where it is
 * found, `values` (indexed as in the core) are those of the least core cost; other rows may be
 * overfull. */
MtfLabelsStatus mtf_bucket_labels_find(MtfBucketTuples *tuples, const MtfLabelRows *rows,
                                       int64_t most_work, const MtfSearchControl *control,
                                       int *values);

#endif
