// SPDX-License-Identifier: GPL-3.0-or-later
/* Where the time of a step goes: for each operation of the table and each local step, how many
 * instructions run it, how long they are said to take and how long they took. Processor time of the
 * thread that runs them, so that ranks which take turns on a core see their own work only.
 *
 *     instruction  entry      name       calls  flops   measured
 *          0         3        einsum        73  7.9e11    3.9 s
 *          1         0        reduce_mean   25  4.9e6     2.1 ms
 *          …                  …
 */
#ifndef MTF_KERNEL_TIMES_H
#define MTF_KERNEL_TIMES_H

#include "cost/price/price.h"

#include <mpi.h>

typedef struct {
    const char *name; /* of the operation's row, or of the local step */
    MtfKernelClass kernel_class;
    int64_t calls;    /* of one step of training */
    double flops;     /* of one step of training */
    double predicted; /* seconds of one step of training; 0 until mtf_kernel_times_predict */
    double measured;  /* seconds of the steps counted so far */
} MtfKernelTime;

typedef struct {
    int n_entries;
    MtfKernelTime *entries; /* one an operation of the table, then one a local step */
    int n_instructions;
    int *entry_of;        /* one an instruction; -1 for collectives */
    int64_t begun, ended; /* steps; of several the first, which touches memory first, is not counted
                             as ended, nor in what was measured */
} MtfKernelTimes;

/* Counts the kernels and local steps that the program has. */
MtfKernelTimes *mtf_kernel_times_new(const MtfProgram *program);
void mtf_kernel_times_free(MtfKernelTimes *times);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfKernelTimes, mtf_kernel_times_free)

/* Fills in what the same program is said to take. */
void mtf_kernel_times_predict(MtfKernelTimes *times, const MtfProgram *program,
                              const MtfPricer *pricer);

/* Adds to the entry of an instruction, if it has one. */
void mtf_kernel_times_add(MtfKernelTimes *times, int instruction, double seconds);

/* Before and after each step of training. */
void mtf_kernel_times_begin_step(MtfKernelTimes *times);
void mtf_kernel_times_end_step(MtfKernelTimes *times);

/* Collective over `control`: the sum of all that the ranks bring, `n` tables each, for the two below: the
 * same on all ranks. */
MtfKernelTimes *mtf_kernel_times_gather(MtfKernelTimes *const *times, int n, MPI_Comm control);

/* The table of one step: classes, and under each the rows that take at least a hundredth of the
 * whole; free with g_free. */
char *mtf_kernel_times_format(const MtfKernelTimes *times);

/* A row more of the table of `whole`: all that a part of it does. */
void mtf_kernel_times_append_part(GString *text, const char *name, const MtfKernelTimes *part,
                                  const MtfKernelTimes *whole);

#endif
