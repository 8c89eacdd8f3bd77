// SPDX-License-Identifier: GPL-3.0-or-later
/* Executes a program on this rank: its worker's kernels and local copies, and MPI between the
 * halves of each collective move. */
#ifndef MTF_EXECUTOR_H
#define MTF_EXECUTOR_H

#include "runtime/communicators.h"
#include "runtime/kernel_times.h"
#include "runtime/traffic.h"
#include "runtime/worker.h"

typedef struct {
    MtfWorker *worker;                     /* borrowed, like all here */
    const MtfCommunicators *communicators; /* NULL when the program has no collective */
    MtfTraffic *counted;                   /* of the same program */
    MtfKernelTimes *times;                 /* of the same program; NULL: nobody asks */
    int64_t max_message;                   /* MTF_MAX_MESSAGE */
} MtfExecutor;

/* Collective over the ranks of the mesh: runs all instructions once, as step `step` (the first is
 * 1). Inputs must have been filled. Allocates nothing. */
void mtf_executor_step(MtfExecutor *executor, int64_t step);

#endif
