// SPDX-License-Identifier: GPL-3.0-or-later
/* Who sends what to whom where a tensor goes from one mesh to another, as pipelines send it: every receiver
 * gets its part from processors that hold pieces of it, and of processors that hold the same part each
 * serves its share of the receivers.
 *
 *     from rows:2      h [batch rows 0-3 | 4-7]
 *     to   cols:4      h [0-1 | 2-3 | 4-5 | 6-7]         0 -> 0, 1      1 -> 2, 3
 *
 * The runtime sends by these routes, and prices count them. */
#ifndef MTF_TRANSFER_ROUTES_H
#define MTF_TRANSFER_ROUTES_H

#include "layouts/placement/layout.h"

/* A tensor as the processors of a mesh hold it. */
typedef struct {
    const MtfGraph *graph;
    const MtfLayout *layout;
    int tensor;
} MtfTransferSide;

typedef struct {
    int sender, receiver;         /* processors of the two meshes */
    MtfRange range[MTF_MAX_RANK]; /* of the tensor, one a dimension */
    int64_t bytes;
} MtfTransferRoute;

/* What a processor holds of a tensor: one range a dimension. */
void mtf_transfer_part_ranges(const MtfTransferSide *side, int processor, MtfRange *ranges);

/* All routes (MtfTransferRoute) in the order of receivers, those of one in the order of the parts that
 * they come from: both sides find the same. Free with g_array_unref. */
GArray *mtf_transfer_routes(const MtfTransferSide *from, const MtfTransferSide *to);

#endif
