// SPDX-License-Identifier: GPL-3.0-or-later
/* Sends and receives of an order. Every result that another rank waits for is sent right after it is
 * made, and the receive is put into the other rank's list at that same moment of one common walk over
 * all ranks:
 *
 *     rank 0   0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 …
 *     rank 1   1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 …
 *
 * So all ranks see all messages in the order of that walk, and no circle can arise, even when each
 * send waits for its receive. The walk is PyTorch's (torch.distributed.pipelining, _add_send_recv),
 * so the lists are those that PyTorch executes. */
#ifndef MTF_PIPELINE_LOWER_H
#define MTF_PIPELINE_LOWER_H

#include "layouts/pipeline/pipeline_order.h"

/* A copy of a checked order (pipeline_check.h) with its messages in place; an order that has messages
 * is copied as it is. */
MtfPipelineOrder *mtf_pipeline_lower(const MtfPipelineOrder *order);

/* How many steps the order takes when every action, message or computation, takes one and a receive
 * may share its step with its send: PyTorch's measure (_simulate_comms_compute). The order must have
 * passed mtf_pipeline_check. */
int mtf_pipeline_steps(const MtfPipelineOrder *order);

#endif
