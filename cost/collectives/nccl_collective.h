// SPDX-License-Identifier: GPL-3.0-or-later
/* Collectives as NCCL runs them, which is what GPU frameworks call. It has rings, trees (allreduce
 * only) and, on switches that add, sums in the switch, each in three protocols, and takes the
 * quickest; nothing that is only possible on paper. The model is NCCL's own (src/graph/tuning.cc):
 *
 *     ring   base + hops latency + bytes over the slowest hop        hops p - 1, twice for allreduce
 *     tree   base + 2 (chain in the node + log2 nodes) latency + 2 bytes over the slowest hop
 *
 * LL and LL128 move 4 of 8 and 120 of 128 bytes and take a fraction of Simple's latency a hop. */
#ifndef MTF_NCCL_COLLECTIVE_H
#define MTF_NCCL_COLLECTIVE_H

#include "cost/collectives/collective.h"

/* Seconds of a collective of `bytes` (collective_kind.h) over a group on switches, running alone. */
double mtf_nccl_seconds(const MtfMachineTransport *transport, const MtfNetwork *group,
                        MtfCollectiveKind kind, double bytes);

#endif
