// SPDX-License-Identifier: GPL-3.0-or-later
/* Who sends what to whom where a tensor goes from one mesh to another, as pipelines send it: every receiver
 * gets its part from processors that hold pieces of it, and of processors that hold the same part each
 * serves its share of the receivers.
 *
 *     from rows:2      h [batch rows 0-3 | 4-7]
 *     to   cols:4      h [0-1 | 2-3 | 4-5 | 6-7]         0 -> 0, 1      1 -> 2, 3
 *
 *     direct     within a host the receiver copies it out of the sender's arena; between hosts as mpi
 *     mpi        by MPI's messages, within a host, too
 *     gathered   of n receivers of the same part each gets an n-th, and then they give each other
 *                theirs, all by MPI: over the slow links goes every element once
 *
 * The runtime sends by these routes, and prices count them. */
#ifndef MTF_TRANSFER_ROUTES_H
#define MTF_TRANSFER_ROUTES_H

#include "layouts/placement/layout.h"

/* The ways in the order of files: X(NAME, name). */
#define MTF_TRANSFER_WAY_LIST(X) X(DIRECT, direct) X(MPI, mpi) X(GATHERED, gathered)

#define MTF_TRANSFER_WAY_NUMBER(NAME, name) MTF_TRANSFER_##NAME,
typedef enum { MTF_TRANSFER_WAY_LIST(MTF_TRANSFER_WAY_NUMBER) MTF_TRANSFER_WAYS } MtfTransferWay;

/* "gathered"; static. */
const char *mtf_transfer_way_name(MtfTransferWay way);

/* A tensor as the processors of a mesh hold it. */
typedef struct {
    const MtfGraph *graph;
    const MtfLayout *layout;
    int tensor;
} MtfTransferSide;

typedef struct {
    int sender, receiver;         /* processors of the two meshes */
    bool inside;                  /* both are receivers: what one got for the other */
    MtfRange range[MTF_MAX_RANK]; /* of the tensor, one a dimension */
    int64_t bytes;
} MtfTransferRoute;

/* What a processor holds of a tensor: one range a dimension. */
void mtf_transfer_part_ranges(const MtfTransferSide *side, int processor, MtfRange *ranges);

/* All routes (MtfTransferRoute) in the order of receivers, those of one in the order of the parts that
 * they come from: both sides find the same. Free with g_array_unref. */
GArray *mtf_transfer_routes(const MtfTransferSide *from, const MtfTransferSide *to,
                            MtfTransferWay way);

/* How many receivers have a part in common, at most. */
int mtf_transfer_most_alike(const MtfTransferSide *to);

#endif
