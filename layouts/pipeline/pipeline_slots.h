// SPDX-License-Identifier: GPL-3.0-or-later
/* The slots that micro-batches have in their stages. What a stage sends stands in the slot of its micro-batch
 * until it is taken. A gradient that goes past a stage (of a skip connection) is taken late: where what
 * follows in its slot would wait for that in a circle, the stage gets more slots,
 *
 *     rank 0   0F0 … 2B0 … 0B0          0B0 takes a gradient of 3B0's, and follows 1B0;
 *     rank 1   … 3B0 3F1 3B1 … 1B0      in one slot 3B1 would wait for 0B0. */
#ifndef MTF_PIPELINE_SLOTS_H
#define MTF_PIPELINE_SLOTS_H

#include "layouts/pipeline/pipeline_order.h"

/* Gradients go from one stage to an earlier one, once a micro-batch. */
typedef struct {
    int from, to;
} MtfGradientWay;

/* Fills in how many slots each stage has, and slots[stage * microbatches + microbatch]. `ways`: MtfGradientWay. */
void mtf_pipeline_find_slots(const MtfPipelineOrder *order, const GArray *ways, int *counts,
                             int *slots);

#endif
