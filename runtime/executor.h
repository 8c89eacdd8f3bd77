// SPDX-License-Identifier: GPL-3.0-or-later
/* Executes a program on this rank: its worker's kernels and local copies, and an exchange
 * with other ranks between the halves of each collective move. */
#ifndef MTF_EXECUTOR_H
#define MTF_EXECUTOR_H

#include "runtime/collectives.h"
#include "runtime/kernel_times.h"

typedef struct {
    MtfWorker *worker;      /* borrowed, like all here */
    MtfTransport transport; /* of the same program, like the rest */
    MtfTraffic *counted;
    MtfKernelTimes *times; /* NULL: nobody asks */
} MtfExecutor;

/* Collective over the ranks of the mesh: runs all instructions once, as step `step` (the first is
 * 1). Inputs must have been filled. Allocates nothing. */
void mtf_executor_step(MtfExecutor *executor, int64_t step);

#endif
