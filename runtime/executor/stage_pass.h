// SPDX-License-Identifier: GPL-3.0-or-later
/* One way through a pipeline stage's instructions with its transfers in between:
 *
 *     receive h   [ instructions of layers 2, 3 ]   send h   [ the rest ]
 *
 * A receive stands before the first instruction that reads its tensor, a send behind the last that
 * writes it (stage_transfers.h). */
#ifndef MTF_STAGE_PASS_H
#define MTF_STAGE_PASS_H

#include "runtime/exchange/stage_transfers.h"
#include "runtime/executor/executor.h"

/* A look at what a stage has computed before an instruction that leads to the loss. */
typedef struct MtfStageLook {
    void (*fill)(const MtfWorker *worker, void *user); /* writes the inputs of one of the stages */
    void (*seen)(const MtfWorker *worker,
                 void *user); /* what is there to be seen; not collective */
    void *user;
    int stage, before;
} MtfStageLook;

/* Who goes, and how. */
typedef struct {
    MtfStageTransfers *transfers; /* of the executor's worker's program; borrowed, like all here */
    MtfExecutor *executor;
    int slot; /* the worker's */
    int64_t step;
    const MtfStageLook *look; /* of this stage, or NULL */
} MtfStagePass;

/* Instructions [from, to) without events, with a pause for who looks at what is there in between. */
void mtf_stage_pass_range(const MtfStagePass *pass, int from, int to);

/* Runs the instructions from `from` on that stand before an event, then the event; returns the instruction
 * that comes next. */
int mtf_stage_pass_event(const MtfStagePass *pass, int event, int from);

/* Instructions with the events of parts `first` to `last` of the step, which they are those of. */
void mtf_stage_pass_run(const MtfStagePass *pass, MtfStagePart first, MtfStagePart last,
                        const MtfRange *instructions);

#endif
