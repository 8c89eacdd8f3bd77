// SPDX-License-Identifier: GPL-3.0-or-later
/* Sums and maxima of what several ranks hold, element by element, in the order of the ranks:
 *
 *     target[i] = (..(terms[0][i] + terms[1][i]) + ..) + terms[n - 1][i]
 *
 * block by block, so that each term is read from memory once and each target written once. Terms in
 * bfloat16 are combined in float32 and their total rounded once. */
#ifndef MTF_KERNEL_COMBINE_H
#define MTF_KERNEL_COMBINE_H

#include "layouts/graph/operation_table.h"

typedef struct {
    MtfDtype dtype;
    MtfReduction reduction; /* sum or maximum */
    int n_terms, n_targets;
    const char *const *terms;
    char *const *targets; /* may be among the terms: in place */
} MtfCombination;

/* Combines `elements` elements of all terms and stores the result in all targets. */
void mtf_combine(const MtfCombination *combination, int64_t elements);

#endif
