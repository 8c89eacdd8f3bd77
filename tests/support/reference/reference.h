// SPDX-License-Identifier: GPL-3.0-or-later
/* The independent witness for gradients and kernels: evaluates any graph, composites included, on
 * whole tensors in double precision by the plainest loops that the operation table's comments
 * allow. It shares no code with runtime/. An operation is a sum (or maximum) of one term at each
 * point of the space of all its dimensions, so even a lookup walks the whole vocabulary: for small
 * graphs only.
 *
 *     MtfReference *reference = mtf_reference_new(graph, seed);    variables at initial values
 *     mtf_reference_fill_inputs(reference, 1);                     or write into reference->values
 *     mtf_reference_run(reference, step);                          every operation in order
 *     reference->values[graph->loss][0]
 *     mtf_reference_update(reference);                             variables take their updates
 *
 * `values[t]` holds tensor t row-major in the order of its shape; int32 tensors hold whole numbers.
 * Nothing is rounded to float32. */
#ifndef MTF_TESTS_REFERENCE_H
#define MTF_TESTS_REFERENCE_H

#include "layouts/graph/operation_table.h"

#include <stdint.h>

typedef struct {
    const MtfGraph *graph; /* borrowed; must not change any more */
    uint64_t seed;
    int n_values;
    double **values; /* by tensor, always allocated */
    int64_t element; /* of the loop that runs */
} MtfReference;

/* Variables start at layouts/graph/random.h's initial values for `seed`, everything else at 0. */
MtfReference *mtf_reference_new(const MtfGraph *graph, uint64_t seed);
void mtf_reference_free(MtfReference *reference);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfReference, mtf_reference_free)

/* Gives every input values drawn from `seed` and its name: floats normal, masks 0 or 1, and int32
 * below 2 or, where the input feeds a lookup or labels, below the size of what it chooses from. */
void mtf_reference_fill_inputs(MtfReference *reference, uint64_t seed);

/* Evaluates all operations at `step` (0 is the first). */
void mtf_reference_run(MtfReference *reference, uint64_t step);

/* Copies the values of updates into their variables. */
void mtf_reference_update(MtfReference *reference);

/* The values of the tensor of that name, which must exist. */
double *mtf_reference_find(const MtfReference *reference, const char *name);

#endif
