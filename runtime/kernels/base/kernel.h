// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels: the arithmetic of one row of the operation table on one processor's slices. Their rows
 * have the keys of the operation table; composites have no kernel, since they are rewritten before
 * anything runs.
 *
 *     whole tensor   x[batch=8, d=6]          this rank's slice, contiguous and row-major
 *     . . . . . .
 *     . . . # # #    begin  = 1 3             # # #
 *     . . . # # #    size   = 2 3             # # #
 *     . . . . . .    global = 8 6
 *
 * A micro-batch is one more way to hold a slice: of the whole step's examples, those of one part.
 *
 * What a kernel computes is what the row says, restricted to the slices:
 *
 *   - reduced dimensions are summed (or maximised) over the local range; a mean divides by the
 *     whole dimension's size, so that the ranks' results sum to the truth;
 *   - slices may be empty: a sum over nothing is 0, a maximum over nothing is -infinity;
 *   - positions (causal masks, ranges, random numbers) are those in the whole tensor, and ids and
 *     labels mean rows of the whole table: what lies outside the local range contributes 0 here and
 *     its value on the rank that has it.
 *
 * The order of every sum is fixed by the shapes, so equal inputs give equal bits. Kernels of calls
 * that were prepared allocate nothing; none can fail; shapes were checked when the graph was built.
 */
#ifndef MTF_KERNEL_H
#define MTF_KERNEL_H

#include "layouts/graph/operation_table.h"

/* A slice and where it lies in the whole tensor. `data` may be NULL when the slice is empty. */
typedef struct {
    void *data;
    MtfDtype dtype;
    int rank;
    int dims[MTF_MAX_RANK];       /* dimension ids of the graph */
    int64_t size[MTF_MAX_RANK];   /* of the slice */
    int64_t begin[MTF_MAX_RANK];  /* first index held, in the whole tensor */
    int64_t global[MTF_MAX_RANK]; /* size of the whole tensor */
} MtfOperand;

/* What long kernels do between pieces of their work, so that exchanges under way go on. */
typedef struct {
    void (*call)(void *user);
    void *user;
} MtfProgressHook;

/* Accepts NULL, which does nothing. */
static inline void mtf_progress_hook_run(const MtfProgressHook *progress) {
    if (progress != NULL)
        progress->call(progress->user);
}

/* One call. Output 0 may be the memory of input k when the row's in_place bit k is set and both
 * have the same dimensions in the same order and the same local sizes; output j > 0 may be the
 * memory of input outputs_like[j], unless the row says separate. No other overlap. */
typedef struct {
    const MtfGraph *graph;
    const MtfOperation *operation;
    const MtfOperand *inputs;
    const MtfOperand *outputs;
    void *scratch; /* mtf_operation_scratch_bytes, aligned to 64 bytes */
    int64_t scratch_bytes;
    uint64_t seed;
    int64_t step;    /* the first is 1; 0 outside training, when dropout drops nothing */
    int microbatch;  /* of the step; the first is 0 */
    int64_t element; /* of a loop: what this iteration is about (layouts/graph/loops.h); else 0 */
    int part,
        columns; /* of an operation in several kernels (MtfAlong): which it is, and how many parts
                          of its dimension there are; 0: all of it */
    bool continues;  /* output 0 holds what was folded before, to which this is added
                        (fused_groups.h) */
    void *prepared;  /* by mtf_kernel_prepare, of kernels that have something to work out */
    void *workspace; /* what it asked for */
    const MtfProgressHook *progress; /* or NULL */
} MtfKernelCall;

typedef void (*MtfKernel)(const MtfKernelCall *call);

/* How calibration times a kernel (runtime/calibrate/kernel_benchmark.h): on operands written as letters,
 * one a dimension, such as "rc"; "#r" holds integers. Where an operation has several forms, the one that
 * training steps spend most on; what is fresh, and read again by the backward pass, as there. */
#define MTF_TRIAL_INPUTS 8
typedef struct {
    const char *inputs[MTF_TRIAL_INPUTS];
    const char *output; /* NULL: what the operation infers */
    unsigned fresh;     /* bit k: input k was just computed */
    bool kept;          /* the fresh inputs, for the backward pass */
    bool is_slow;       /* each element takes so long that the place of operands does not matter */
} MtfKernelTrial;

/* The last three of them. */
#define MTF_NOTHING_FRESH 0, false, false
#define MTF_FIRST_FRESH 1, false, false
#define MTF_FIRST_KEPT 1, true, false
#define MTF_SECOND_FRESH 2, false, false
#define MTF_SECOND_KEPT 2, true, false
#define MTF_BOTH_FRESH 3, false, false
#define MTF_BOTH_KEPT 3, true, false
#define MTF_SLOW 1, true, true
#define MTF_SLOW_FROM_NOTHING 0, false, true

/* A kernel's row. Those of one file stand in a list at its end, which ends with one without a kernel;
 * runtime/kernels/table/kernel_table.c has the lists. */
typedef struct {
    int kind; /* MtfOperationKind */
    MtfKernel kernel;
    /* What every call of this kernel wants first (mtf_kernel_prepare); NULL in most. */
    void *(*prepare)(const MtfKernelCall *call, int64_t *workspace_bytes);
    void (*release)(void *prepared);
    MtfKernelTrial trial; /* without input and output: its time follows from other tables or
                             rates */
} MtfKernelRow;

#define MTF_TIMED_KERNEL(operation, function, ...)                      \
    {                                                                   \
        .kind = operation, .kernel = function, .trial = { __VA_ARGS__ } \
    }

/* The kernel of an MtfOperationKind; NULL for composites. */
MtfKernel mtf_kernel(int operation_kind);

/* How calibration times it; NULL where it does not. */
const MtfKernelTrial *mtf_kernel_trial(int operation_kind);

/* Works out, for kernels that have something to work out, what depends on the shapes of the call
 * and not on its elements, into call->prepared. Returns the bytes of workspace that running the
 * call takes, which like BLAS's own buffers is no part of the arena; 0 for most. */
int64_t mtf_kernel_prepare(MtfKernelCall *call);

/* Frees what was prepared, if anything was. */
void mtf_kernel_release(MtfKernelCall *call);

#endif
