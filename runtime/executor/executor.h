// SPDX-License-Identifier: GPL-3.0-or-later
/* Executes a program on this rank: its worker's kernels and local copies, and an exchange
 * with other ranks between the halves of each collective move. Where the program gives it room
 * (layouts/program/overlap_windows.h), the second half waits while the rank computes. */
#ifndef MTF_EXECUTOR_H
#define MTF_EXECUTOR_H

#include "runtime/data/data.h"
#include "runtime/exchange/collectives.h"
#include "runtime/exchange/stage_transfers.h"
#include "runtime/executor/accuracy.h"
#include "runtime/executor/dropped_choices.h"
#include "runtime/executor/gradient_norm.h"
#include "runtime/executor/kernel_times.h"
#include "runtime/executor/step_trace.h"

/* A look at what each instruction has made, of a loop when it is over. */
typedef struct {
    void (*seen)(const MtfWorker *worker, int instruction, void *user);
    void *user;
} MtfInstructionLook;

typedef struct {
    MtfWorker *worker;      /* borrowed, like all here */
    MtfTransport transport; /* of the same program, like the rest */
    bool at_once;           /* exchanges do not stay under way */
    MtfTraffic *counted;
    MtfKernelTimes *times; /* NULL: nobody asks; so also the next five */
    MtfStepTrace *trace;
    MtfGradientNorm *norm;
    MtfDropped *dropped;
    MtfAccuracy *accuracy; /* kernels then run one by one, as with `look` */
    const MtfInstructionLook *look;
    MtfData *data;             /* of inputs; NULL: they are as they are */
    MtfStageTransfers *stages; /* whose messages may be under way; NULL: there are no stages */
} MtfExecutor;

/* Turns the worker to a micro-batch and fills its inputs with its part of a batch's examples, where
 * there is data. Where that cannot be read, or could not before (`*failure`), inputs stay as they are:
 * ranks go on alike and agree later. */
void mtf_executor_begin_microbatch(MtfExecutor *executor, int microbatch, int64_t batch,
                                   GError **failure);

/* The first instruction that writes a variable, of those that run once a step: between it and what comes
 * before, the loss included, a step can be judged while it can still be done again. */
int mtf_executor_first_update(const MtfProgram *program);

/* Instructions [from, to) alone, collective like the rest, no exchange under way afterwards; `step`
 * 0 is none of training (kernel.h).
 */
void mtf_executor_run(MtfExecutor *executor, int from, int to, int64_t step);

#endif
