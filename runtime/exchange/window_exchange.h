// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move between ranks of one host, through the window of their arenas: no message
 * is sent, each rank fetches what it needs from where the others computed it.
 *
 *     begin: mine is ready ──► all are: fetch, copy or combine ──► end: all have fetched
 *
 *     allgather, all-to-all   what the others have for me, into my output or scratch
 *     reduce-scatter          the sum of everybody's terms of my part
 *     allreduce               the sum of everybody's terms of my 1/n, into everybody's output
 *
 * Sums are taken in the order of the ranks, so all get the same bits. Between the three a rank may
 * compute what touches none of the move's buffers: nobody waits for a slower one before it must. */
#ifndef MTF_WINDOW_EXCHANGE_H
#define MTF_WINDOW_EXCHANGE_H

#include "runtime/exchange/host_window.h"
#include "runtime/worker/worker.h"

typedef struct MtfWindowExchange MtfWindowExchange;

/* Collective over `control`, which has one rank a processor of the worker's mesh. `like` is that of
 * another worker with the same arena, whose window it looks through, or NULL. Both must outlive it. */
MtfWindowExchange *mtf_window_exchange_new(MPI_Comm control, const MtfWorker *worker,
                                           const MtfWindowExchange *like);

/* What is called while this rank waits (host_window.h), also in exchanges that look through the same window. */
void mtf_window_exchange_set_idle(MtfWindowExchange *exchange, const MtfProgressHook *idle);

/* Collective over `control`: nobody's arena may go before all are done with it. */
void mtf_window_exchange_free(MtfWindowExchange *exchange);

/* Whether all ranks of every group of `axes` share a host, the same on all ranks. */
bool mtf_window_exchange_reaches(const MtfWindowExchange *exchange, unsigned axes);

/* Collective over this rank's group of the move's axes, which the exchange reaches: what lies
 * between mtf_move_before and mtf_move_after of instruction `index`, in three parts. `begin`
 * returns the exchange's epoch, for the others. `fetch` waits until all have begun (`is_ready` says
 * whether they have) and returns the bytes that went from one arena into another by this rank's
 * doing; of exchanges over the same axes the one begun first is fetched first. `end` waits until
 * all have fetched. */
uint64_t mtf_window_exchange_begin(MtfWindowExchange *exchange, int index);
bool mtf_window_exchange_is_ready(const MtfWindowExchange *exchange, int index, uint64_t epoch);
int64_t mtf_window_exchange_fetch(MtfWindowExchange *exchange, int index, uint64_t epoch);
void mtf_window_exchange_end(const MtfWindowExchange *exchange, int index, uint64_t epoch);

/* What mtf_window_exchange_fetch will return, from the instruction's shapes alone. */
int64_t mtf_window_exchange_bytes(const MtfMove *move);

#endif
