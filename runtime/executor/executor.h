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

typedef struct {
    MtfWorker *worker;      /* borrowed, like all here */
    MtfTransport transport; /* of the same program, like the rest */
    bool at_once;           /* exchanges do not stay under way */
    MtfTraffic *counted;
    MtfKernelTimes *times; /* NULL: nobody asks; so also the next four */
    MtfStepTrace *trace;
    MtfGradientNorm *norm;
    MtfDropped *dropped;
    MtfAccuracy *accuracy; /* kernels then run one by one */
    MtfData *data;         /* of micro-batches beyond the first; may be NULL where there are none */
    MtfStageTransfers *stages; /* whose messages may be under way; NULL: there are no stages */
} MtfExecutor;

/* One way through a program: instructions [0, repeated) for every micro-batch on its own examples,
 * then once those from where repetition ends up to `once`. */
typedef struct {
    int repeated, once;
    int64_t step;  /* that kernels are told */
    int64_t batch; /* whose examples the inputs are filled with */
    bool first_is_filled;
    void (*run)(MtfExecutor *executor, int from, int to, int64_t step, void *user);
    /* runs instructions [from, to); NULL: mtf_executor_run */
    void *user;
} MtfMicrobatchLoop;

/* Turns the worker to a micro-batch and fills its inputs with its part of a batch's examples. Where data
 * cannot be read, or could not before (`*failure`), inputs stay as they are: ranks go on alike and agree
 * later. */
void mtf_executor_begin_microbatch(MtfExecutor *executor, int microbatch, int64_t batch,
                                   GError **failure);

/* Collective over the ranks of the mesh. Ends at the first micro-batch again. False when data could
 * not be read: the inputs then stay as they were, and the loop has run to its end all the same, so
 * that no rank waits for another. */
bool mtf_executor_loop(MtfExecutor *executor, const MtfMicrobatchLoop *loop, GError **error);

/* Collective over the ranks of the mesh: runs step `step` (the first is 1), what is repeated once
 * for each micro-batch. The first one's inputs must have been filled; the others are filled on the
 * way. Allocates nothing. False when data could not be read: the step has then run to its end all
 * the same, so that no rank waits for another. */
bool mtf_executor_step(MtfExecutor *executor, int64_t step, GError **error);

/* The two halves of a step: all that comes before the first variable is written, the loss included,
 * and the rest. Between them the step can be judged while it can still be done again. */
bool mtf_executor_compute(MtfExecutor *executor, int64_t step, GError **error);
void mtf_executor_update(MtfExecutor *executor, int64_t step);

/* The first instruction of the second half. */
int mtf_executor_first_update(const MtfProgram *program);

/* Instructions [from, to) alone, collective like the rest, no exchange under way afterwards; `step`
 * 0 is none of training (kernel.h).
 */
void mtf_executor_run(MtfExecutor *executor, int from, int to, int64_t step);

#endif
