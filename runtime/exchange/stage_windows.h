// SPDX-License-Identifier: GPL-3.0-or-later
/* How tensors go from stage to stage on one host: ranks map each other's arenas, a sender says where the
 * tensor lies, and the receiver copies what it wants of it.
 *
 *     sender      computes h   offer ──────────────────────────┐      … may write h again
 *     receiver    … computes                wait, copy, take ──┘
 *
 * Both meet in a cell of the sender's board, which the receiver maps as well: one for each transfer,
 * receiver and micro-batch, and of these as many as may be offered at once. Neither has to call anything
 * for the other to go on. */
#ifndef MTF_STAGE_WINDOWS_H
#define MTF_STAGE_WINDOWS_H

#include "layouts/plan_file/pipeline_plan.h"
#include "runtime/exchange/host_window.h"

#include <stdatomic.h>

/* The two sides write to lines of their own. */
typedef struct {
    _Alignas(64) _Atomic uint64_t offered;
    int64_t offset; /* of what was offered last, in the sender's arena */
    _Alignas(64) _Atomic uint64_t taken;
} MtfStageCell;

/* Where the cells of a transfer to a receiver are: [micro-batch][round]. */
typedef struct {
    int transfer, sender, receiver; /* ranks of the communicator */
} MtfStageRoute;

typedef struct MtfStageWindows MtfStageWindows;

/* Collective over `communicator`, which all stages' transfers use: maps what can be mapped. `own` are the
 * arenas of the stages of this rank's domain, in their order; they and the pipeline must outlive it. */
MtfStageWindows *mtf_stage_windows_new(MPI_Comm communicator, const MtfPipelinePlan *pipeline,
                                       const MtfArenaMemory *const *own, int n_own);
void mtf_stage_windows_free(MtfStageWindows *windows);

/* What is called while this rank waits (host_window.h). */
void mtf_stage_windows_set_idle(MtfStageWindows *windows, const MtfProgressHook *idle);

/* The cells of a route; NULL where its sender cannot be reached by its receiver: both say the same. */
MtfStageCell *mtf_stage_windows_cells(const MtfStageWindows *windows, const MtfStageRoute *route);

/* How many of a micro-batch there are, to be used in turns. */
int mtf_stage_windows_rounds(const MtfStageWindows *windows);

/* Where the arena of a stage begins that another rank of this host runs. */
const char *mtf_stage_windows_arena(const MtfStageWindows *windows, int rank, int stage);

/* The sender's half, of a cell that has been taken; and whether it has. */
void mtf_stage_cell_offer(MtfStageCell *cell, int64_t offset);
bool mtf_stage_cell_is_free(const MtfStageCell *cell);

/* The receiver's: what is offered stays as it is until it is taken. */
void mtf_stage_cell_take(MtfStageCell *cell);

/* Wait until something is offered, or all that was has been taken. */
void mtf_stage_windows_await(const MtfStageWindows *windows, const MtfStageCell *cell,
                             bool offered);

#endif
