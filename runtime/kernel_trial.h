// SPDX-License-Identifier: GPL-3.0-or-later
/* Operations alone, each lowered to a program of one kernel and made ready on a worker, as in
 * training: the same instruction, operands in an arena, and results written over operands where a
 * step does so (optimizers, new names). Running them says how long their kernels take.
 *
 * Between two runs of a kernel a step touches many times the bytes that the kernel does, so that
 * operands come from a farther cache, or from memory. So trials of one size are run in turn, many
 * of them, round after round.
 *
 * Operands are written as letters, one a dimension: "rc" is a tensor of the dimensions r and c;
 * "#r" holds integers. */
#ifndef MTF_KERNEL_TRIAL_H
#define MTF_KERNEL_TRIAL_H

#include "runtime/worker.h"

#define MTF_TRIAL_INPUTS 8

typedef struct {
    int kind; /* MtfOperationKind */
    const char *inputs[MTF_TRIAL_INPUTS];
    const char *output; /* NULL: what the operation infers */
} MtfTrialOperation;

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
    int kernel; /* the instruction that is measured */
} MtfKernelTrial;

/* Makes the trial of an operation in `dtype`; size_of[letter - 'a'] are the dimensions' sizes.
 * Fails when memory is short, and leaves nothing to clear. */
bool mtf_kernel_trial_init(MtfKernelTrial *trial, const MtfTrialOperation *operation,
                           MtfDtype dtype, const int64_t *size_of, GError **error);
void mtf_kernel_trial_clear(MtfKernelTrial *trial);

/* Whether the operation updates what is kept between steps: its operands are variables, and it
 * overwrites some of them. */
bool mtf_kernel_is_update(int kind);

/* The kernel instruction, with its bytes and products. */
const MtfInstruction *mtf_kernel_trial_instruction(const MtfKernelTrial *trial);

/* Runs all trials in turn, round after round for about `patience` seconds: seconds[i] is the
 * processor time that one run of trial i takes, the first quarter of its rounds. A round that comes
 * first does not count. */
void mtf_kernel_trials_measure(const MtfKernelTrial *trials, int n, double patience,
                               double *seconds);

#endif
