// SPDX-License-Identifier: GPL-3.0-or-later
/* A rank's part in the plan of a pipeline: the stage whose domain it belongs to, and a worker for
 * each micro-batch that its stage may have in flight. The workers share one arena and differ in the
 * slots that they use of what waits between a micro-batch's passes (MtfBuffer).
 *
 *     order of stage 0      F0      F1      B0      F2      B1      B2     [ once ] [ update ]
 *     worker                 0       1       0       0       1       0        0         0
 *     transfers             send    send    receive send    receive receive
 */
#ifndef MTF_STAGE_RUN_H
#define MTF_STAGE_RUN_H

#include "layouts/program/pipeline_plan.h"
#include "runtime/exchange/stage_transfers.h"
#include "runtime/executor/executor.h"

typedef struct {
    MtfPipelinePlan *pipeline;
    MPI_Comm domain; /* the ranks of this rank's domain */
    int stage;
    int rank;     /* in the domain: the processor of the stage's mesh */
    int *slot_of; /* of each micro-batch */
    int n_slots;
    MtfWorker **workers; /* [n_slots]; the first owns the arena and is not owned */
    MtfArena **arenas;   /* [n_slots]; the first is not owned */
    MtfStageTransfers *transfers;
} MtfStageRun;

/* Loads the plan of a pipeline and finds this rank's place in it. Not collective; fails where the
 * number of ranks is not the plan's. */
MtfStageRun *mtf_stage_run_load(const char *path, MPI_Comm control, GError **error);

/* Collective over `control`: the domain's communicator, transfers, and workers beside `worker`, that
 * of slot 0. */
void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, MtfWorker *worker, uint64_t seed);

/* Collective over the ranks that opened it: ends what it opened, before the worker and the program,
 * which need the plan, are freed; then the rest. NULL does nothing. */
void mtf_stage_run_close(MtfStageRun *run);
void mtf_stage_run_free(MtfStageRun *run);

/* The plan of this rank's stage; borrowed. */
MtfPlan *mtf_stage_run_plan(const MtfStageRun *run);

/* As mtf_executor_compute and mtf_executor_update, over all ranks: every pass of the stage's order,
 * with its transfers. Fills the inputs of all micro-batches. */
bool mtf_stage_run_compute(MtfStageRun *run, const MtfExecutor *executor, int64_t step,
                           GError **error);
void mtf_stage_run_update(MtfStageRun *run, const MtfExecutor *executor, int64_t step);

/* The forward passes of all micro-batches of one batch of data, and of what follows them once a step
 * the instructions before `once_end`: what the loss needs. Transfers are not counted. A failure to
 * read data is told in `*failure`, where none was before. */
void mtf_stage_run_forward(MtfStageRun *run, const MtfExecutor *executor, int once_end,
                           int64_t batch, GError **failure);

/* Collective over `control`: the loss, which the ranks of its stage hold, on all ranks. */
double mtf_stage_run_share_loss(const MtfStageRun *run, MPI_Comm control, double loss);

#endif
