// SPDX-License-Identifier: GPL-3.0-or-later
/* What a rank sends or receives of one tensor that goes from a pipeline stage to another, by the routes that
 * both sides know (layouts/transfer/transfer_routes.h) and as the plan says. Messages lie where the tensor
 * does: as MPI's subarrays, or in the sender's arena, from which a receiver of the same host copies them.
 * Nothing is copied beforehand. */
#ifndef MTF_STAGE_MESSAGES_H
#define MTF_STAGE_MESSAGES_H

#include "runtime/exchange/stage_windows.h"
#include "runtime/worker/box_copy.h"

/* What goes between this rank and another. */
typedef struct {
    int peer; /* rank of the communicator */
    bool sends;
    int64_t bytes;
    MPI_Datatype type;   /* by MPI, relative to this rank's slice */
    MtfStageCell *cells; /* through the window, [micro-batch][round]; NULL: by MPI */
    const char *arena;   /* the sender's, of what is received through the window */
    MtfBoxCopy copy;     /* likewise, from slice to slice */
} MtfStageMessage;

/* Whose messages they are. */
typedef struct {
    const MtfPipelinePlan *pipeline;
    const MtfStageWindows *windows; /* NULL: all go by MPI */
    int transfer;                   /* of the pipeline's split */
    bool sends;
    int rank; /* processor of the stage that sends, or receives */
} MtfStageMessageSide;

/* The messages (MtfStageMessage) of one side, between the stages, or with `inside` those in which
 * receivers give each other what they got; free with mtf_stage_messages_free. */
GArray *mtf_stage_messages_new(const MtfStageMessageSide *side, bool inside);
void mtf_stage_messages_free(GArray *messages);

#endif
