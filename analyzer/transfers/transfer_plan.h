// SPDX-License-Identifier: GPL-3.0-or-later
/* A planned transfer: which host sends what when, by the cheapest of the algorithms of
 * transfer_price.h, with a bound, and what the others would take.
 *
 *     boxes ──hosts──► moves ──algorithm──► seconds ──sender_balance──► senders ──transfer_order──► begins */
#ifndef MTF_TRANSFER_PLAN_H
#define MTF_TRANSFER_PLAN_H

#include "cost/transfer/transfer_order.h"
#include "cost/transfer/transfer_price.h"

/* One algorithm's senders and order for all moves. */
typedef struct {
    MtfTransferAlgorithm algorithm;
    MtfTransferOrder *order;
    double busiest_host_bytes; /* the most that a host's link carries in one direction */
} MtfTransferWay;

typedef struct {
    MtfTransferHosts hosts;
    GPtrArray *boxes, *moves;
    int host_count, chunks;
    double bytes_across;      /* over links between hosts, each box once */
    double lower_bound_bytes; /* no plan's busiest host carries less */
    double makespan_bytes;    /* end of the last move when a byte takes a second, in the best order
                                 found */
    MtfTransferWay way[MTF_TRANSFER_ALGORITHMS];
    MtfTransferAlgorithm best;
} MtfTransferPlan;

/* Plans the transfer on `machine`; `chunks` of a broadcast (0: the best number). Free with
 * mtf_transfer_plan_free. NULL on an error of the machine or of GLPK. */
MtfTransferPlan *mtf_transfer_plan_new(const MtfTransferShape *shape, int64_t element_bytes,
                                       const MtfTransferEnd *from, const MtfTransferEnd *to,
                                       const MtfMachine *machine, int chunks, GError **error);

void mtf_transfer_plan_free(MtfTransferPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTransferPlan, mtf_transfer_plan_free)

#endif
