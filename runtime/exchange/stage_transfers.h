// SPDX-License-Identifier: GPL-3.0-or-later
/* Tensors that go from one pipeline stage to another, and when in a step: through the arenas of a host's
 * ranks (stage_windows.h), else by MPI's point-to-point messages. A send runs in the background until its
 * place is written again; a receive waits. */
#ifndef MTF_STAGE_TRANSFERS_H
#define MTF_STAGE_TRANSFERS_H

#include "runtime/exchange/stage_windows.h"
#include "runtime/worker/worker.h"

/* The parts of a step. */
typedef enum {
    MTF_PART_BEGIN, /* before the first micro-batch */
    MTF_PART_FORWARD,
    MTF_PART_INPUT_GRADIENT, /* of a backward pass that is not split, all of it */
    MTF_PART_WEIGHT_GRADIENT,
    MTF_PART_ONCE,   /* after the last micro-batch, before the first variable is written */
    MTF_PART_UPDATE, /* the rest */
    MTF_PARTS,
} MtfStagePart;

/* One tensor to be sent or received in a part of the step. */
typedef struct {
    int number; /* of the transfer in the pipeline's split */
    MtfStagePart part;
    int before; /* the instruction before which it is done */
    bool sends;
    int64_t bytes; /* of this rank's messages, once */
} MtfStageEvent;

typedef struct MtfStageTransfers MtfStageTransfers;

/* Whose transfers they are: those of processor `rank` of a stage. */
typedef struct {
    const MtfPipelinePlan *pipeline;
    const MtfProgram *program; /* of the stage */
    int stage, rank;
    int first_update;               /* the first instruction of MTF_PART_UPDATE */
    const MtfStageWindows *windows; /* NULL: all goes by MPI */
} MtfStagePlace;

/* Bytes of this rank. */
typedef struct {
    int64_t sent;   /* as the sizes of its messages say, those of MPI as MPI has them */
    int64_t copied; /* of others' arenas, counted by the copy itself */
} MtfStageTraffic;

/* Collective over `control`: the communicator that all stages' transfers use. */
MPI_Comm mtf_stage_communicator_new(MPI_Comm control);

/* What is sent and received there. All that it is given must outlive it. */
MtfStageTransfers *mtf_stage_transfers_new(MPI_Comm communicator, const MtfStagePlace *place);
void mtf_stage_transfers_free(MtfStageTransfers *transfers);

/* The events in the order in which they are done. */
int mtf_stage_transfers_count(const MtfStageTransfers *transfers);
const MtfStageEvent *mtf_stage_transfers_event(const MtfStageTransfers *transfers, int event);

/* Does one event for the micro-batch (of a worker that stands in its slot). A receive returns when
 * the tensor is there, a send at once. */
void mtf_stage_transfer_do(MtfStageTransfers *transfers, int event, const MtfWorker *worker,
                           int slot, int microbatch);

/* Whether a receive of what travels once a step would return at once. */
bool mtf_stage_transfer_has_come(MtfStageTransfers *transfers, int event);

/* Lets what was sent go on its way: MPI moves a large message only while its sender calls it. */
void mtf_stage_transfers_progress(MtfStageTransfers *transfers);

/* Waits until what the sends of a part took from a slot may be written again; and of all. */
void mtf_stage_transfers_wait(MtfStageTransfers *transfers, MtfStagePart part, int slot);
void mtf_stage_transfers_wait_all(MtfStageTransfers *transfers);

/* What goes in a step, as the layouts say; and all that has gone. */
MtfStageTraffic mtf_stage_transfers_planned(const MtfStageTransfers *transfers);
MtfStageTraffic mtf_stage_transfers_counted(const MtfStageTransfers *transfers);

/* Takes the count back to what it was: evaluations are not counted. */
void mtf_stage_transfers_set_counted(MtfStageTransfers *transfers, MtfStageTraffic counted);

#endif
