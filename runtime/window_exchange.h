// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move between ranks of one host, through the window of their arenas: no message
 * is sent, each rank fetches what it needs from where the others computed it.
 *
 *     all arrive ──► each rank copies or combines ──► all arrive
 *
 *     allgather, all-to-all   what the others have for me, into my output or scratch
 *     reduce-scatter          the sum of everybody's terms of my part
 *     allreduce               the sum of everybody's terms of my 1/n, into everybody's output
 *
 * Sums are taken in the order of the ranks, so all get the same bits. */
#ifndef MTF_WINDOW_EXCHANGE_H
#define MTF_WINDOW_EXCHANGE_H

#include "runtime/host_window.h"
#include "runtime/worker.h"

typedef struct MtfWindowExchange MtfWindowExchange;

/* Collective over `control`, which has one rank a processor of the worker's mesh. The worker must
 * outlive it. */
MtfWindowExchange *mtf_window_exchange_new(MPI_Comm control, const MtfWorker *worker);

/* Collective over `control`: nobody's arena may go before all are done with it. */
void mtf_window_exchange_free(MtfWindowExchange *exchange);

/* Whether all ranks of every group of `axes` share a host, the same on all ranks. */
bool mtf_window_exchange_reaches(const MtfWindowExchange *exchange, unsigned axes);

/* Collective over this rank's group of the move's axes, which the exchange reaches: what lies
 * between mtf_move_before and mtf_move_after of instruction `index`. Returns the bytes that went
 * from one arena into another by this rank's doing. */
int64_t mtf_window_exchange_run(MtfWindowExchange *exchange, int index);

/* What mtf_window_exchange_run will return, from the instruction's shapes alone. */
int64_t mtf_window_exchange_bytes(const MtfMove *move);

#endif
