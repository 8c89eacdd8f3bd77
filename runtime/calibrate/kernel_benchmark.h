// SPDX-License-Identifier: GPL-3.0-or-later
/* Operations alone, each lowered to a program of its own and made ready on a worker, as in
 * training: the same instruction, operands in an arena, and results written over operands where a
 * step does so. Running them says how long their kernels take.
 *
 * Between two runs of a kernel a step touches many times the bytes that the kernel does, so that
 * operands come from a farther cache, or from memory; all but those that one of the instructions
 * before has just computed. So trials of one size are run in turn, many of them, round after round,
 * and what is *fresh* is written one trial before each run. A fresh operand is read for the last
 * time, so that the result may take its place, unless it is *kept*: unless the backward pass wants
 * it, too.
 *
 * Trials share one arena, as the instructions of a step do: in huge pages where there are any.
 *
 * Operands are written as kernels' rows write them (kernel.h). */
#ifndef MTF_KERNEL_BENCHMARK_H
#define MTF_KERNEL_BENCHMARK_H

#include "runtime/worker/worker.h"

typedef struct {
    int kind; /* MtfOperationKind */
    MtfKernelTrial operands;
} MtfBenchmarkOperation;

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker; /* NULL while it is not open */
    int kernel;        /* the instruction that is measured */
    unsigned fresh;    /* bit k: input k of the instruction */
} MtfKernelBenchmark;

/* Makes the trial of an operation in `dtype`; size_of[letter - 'a'] are the dimensions' sizes. */
void mtf_kernel_benchmark_init(MtfKernelBenchmark *trial, const MtfBenchmarkOperation *operation,
                               MtfDtype dtype, const int64_t *size_of);
void mtf_kernel_benchmark_clear(MtfKernelBenchmark *trial);

/* Makes the trials ready to run, their arenas one behind another in `memory`, which is mapped anew when
 * it is too small ({ 0 } at first) and stays the caller's to clear: to map memory is to have it zeroed.
 * Fails when memory is short; then there is nothing to close. */
bool mtf_kernel_benchmarks_open(MtfKernelBenchmark *trials, int n, MtfArenaMemory *memory,
                                GError **error);
void mtf_kernel_benchmarks_close(MtfKernelBenchmark *trials, int n);

/* Whether the operation updates what is kept between steps: its operands are variables, and it
 * overwrites some of them. */
bool mtf_kernel_is_update(int kind);

/* The kernel instruction, with its bytes and products. */
const MtfInstruction *mtf_kernel_benchmark_instruction(const MtfKernelBenchmark *trial);

/* What looking at the clock takes, in seconds. */
double mtf_kernel_benchmark_clock(void);

/* Runs all trials in turn, round after round for about `patience` seconds: seconds[i] is the
 * processor time that one run of trial i takes, the median of its rounds (medians add up, as the
 * instructions of a step do). A round that comes first does not count. Before each round all of
 * `swept` is read, so that operands come from memory; NULL = nothing. */
void mtf_kernel_benchmarks_measure(const MtfKernelBenchmark *trials, int n, double patience,
                                   const MtfArenaMemory *swept, double *seconds);

#endif
