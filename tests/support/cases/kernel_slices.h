// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs one operation's kernel the way many ranks would: its iteration space is cut along every
 * index, each part runs on slices of the inputs, and the parts' results are put together (added up,
 * or the larger taken, where an index is reduced). The whole result must not depend on the cut. */
#ifndef MTF_TESTS_KERNEL_SLICES_H
#define MTF_TESTS_KERNEL_SLICES_H

#include "runtime/kernels/base/kernel.h"

typedef struct {
    int parts[MTF_MAX_INDEXES]; /* of each index of the iteration space that may be split */
    bool in_place;              /* outputs take the memory of inputs wherever the row allows */
    int64_t scratch_limit;      /* gives the kernel less scratch than it asked for; -1 = all */
    uint64_t seed;
    int64_t step;
} MtfSlicing;

/* Runs operation `operation` of the graph on `values[t]`, whole tensors in double, and returns for
 * each output the whole tensor put together; free each with g_free. Output memory is NaN before the
 * kernel runs, and memory around operands and scratch is watched. */
void mtf_kernel_run_sliced(const MtfGraph *graph, int operation, double *const *values,
                           const MtfSlicing *slicing, double *results[MTF_MAX_OUTPUTS]);

#endif
