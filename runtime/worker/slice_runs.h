// SPDX-License-Identifier: GPL-3.0-or-later
/* Which elements of a tensor each processor keeps, as runs that lie one after another both in the
 * whole tensor and in the slice:
 *
 *     whole tensor, row-major             slice of rank 1
 *     . . . . . .        run 1: index  9 … 11    position 0 … 2
 *     . . . # # #        run 2: index 15 … 17    position 3 … 5
 *     . . . # # #
 *
 * Padding (MtfDimension) is left out: the whole tensor is what it is without, and the slice's elements
 * of padding are passed over.
 *
 * Every rank can work out every other's, so two that exchange elements need no talk about which. */
#ifndef MTF_SLICE_RUNS_H
#define MTF_SLICE_RUNS_H

#include "layouts/program/program.h"
#include "runtime/kernels/base/kernel.h"

/* Part of a slice: a box of the whole tensor (data is not used), whose first element lies at position
 * `first` of the slice, which along dimension i holds `extent[i]` elements, row-major. */
typedef struct {
    MtfOperand box;
    int64_t extent[MTF_MAX_RANK];
    int64_t first;
    bool empty;
} MtfShare;

/* All that `rank` keeps of an input or variable. */
MtfShare mtf_share_kept(const MtfProgram *program, int tensor, int rank);

/* What `rank` answers for: of a slice that several ranks keep, each gets an equal part of the first
 * dimension that has more than one element. Over all ranks every element occurs exactly once.
 * Nothing for tensors that are partial. */
MtfShare mtf_share_owned(const MtfProgram *program, int tensor, int rank);

/* Walks the runs of a share within elements [low, high) of the whole tensor, in their order:
 *
 *     MtfRuns runs = mtf_runs(&share, low, high);
 *     while (mtf_runs_next(&runs)) … runs.index, runs.position, runs.count …  */
typedef struct {
    int64_t index;    /* of the run's first element in the whole tensor */
    int64_t position; /* of the same element in the slice */
    int64_t count;
    /* the walk */
    const MtfShare *share;
    int64_t low, high;
    int outer;       /* dimensions that count rows */
    int64_t length;  /* elements of a row */
    int64_t spacing; /* from a row to the next in the slice */
    int64_t row, rows;
} MtfRuns;

/* The walk before its first run, and its next one; false when there is none left. */
MtfRuns mtf_runs(const MtfShare *share, int64_t low, int64_t high);
bool mtf_runs_next(MtfRuns *runs);

/* Elements of a share within [low, high). */
int64_t mtf_share_count(const MtfShare *share, int64_t low, int64_t high);

#endif
