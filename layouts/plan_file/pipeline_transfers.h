// SPDX-License-Identifier: GPL-3.0-or-later
/* The transfers of a pipeline's plan: from where to where each goes, by which routes, and in which way
 * (layouts/transfer/transfer_routes.h). What does not go directly stands in the plan by its number in the
 * split:
 *
 *     "transfers": { "mpi": [0, 3], "gathered": [2] } */
#ifndef MTF_PIPELINE_TRANSFERS_H
#define MTF_PIPELINE_TRANSFERS_H

#include "layouts/plan_file/pipeline_plan.h"
#include "layouts/transfer/transfer_routes.h"

/* How many there are. */
int mtf_pipeline_transfers(const MtfPipelinePlan *pipeline);

/* One of them; the pipeline owns it. */
MtfStageTransfer *mtf_pipeline_transfer(const MtfPipelinePlan *pipeline, int transfer);

/* The tensor on one of its two stages, whose plans must be there. */
MtfTransferSide mtf_pipeline_sender(const MtfPipelinePlan *pipeline, int transfer);
MtfTransferSide mtf_pipeline_receiver(const MtfPipelinePlan *pipeline, int transfer);

/* Its routes in its way (transfer_routes.h), between processors of the stages' meshes. */
GArray *mtf_pipeline_routes(const MtfPipelinePlan *pipeline, int transfer);

/* NULL where all go directly. */
cJSON *mtf_pipeline_transfers_to_json(const MtfPipelinePlan *pipeline);

/* Reads what that wrote. */
bool mtf_pipeline_transfers_read(const MtfJson *where, MtfPipelinePlan *pipeline, GError **error);

#endif
