// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move by messages between two, as the algorithm that its instruction names has
 * them (layouts/exchange), through plain MPI:
 *
 *     begin ──► round 0: receives and sends posted ──► all over: combine ──► round 1 ...  ──► end
 *
 * The members' vectors are the move's own buffers: an allreduce's output, what an allgather
 * receives, what a reduce-scatter sends; where that is a tensor others read still, a copy outside
 * the arena. So is what is received to be combined. Memory is taken when it is made. */
#ifndef MTF_MESSAGE_EXCHANGE_H
#define MTF_MESSAGE_EXCHANGE_H

#include "runtime/exchange/communicators.h"
#include "runtime/worker/worker.h"

typedef struct MtfMessageExchange MtfMessageExchange;

/* For all instructions of the worker's program whose algorithm is one of messages; both must outlive
 * it. `under_way` exchanges at most are begun and not ended. */
MtfMessageExchange *mtf_message_exchange_new(const MtfCommunicators *communicators,
                                             const MtfWorker *worker, int under_way);
void mtf_message_exchange_free(MtfMessageExchange *exchange);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfMessageExchange, mtf_message_exchange_free)

/* Whether instruction `index` is run so. */
bool mtf_message_exchange_runs(const MtfMessageExchange *exchange, int index);

/* Collective over the group of the instruction's axes: what lies between mtf_move_before and
 * mtf_move_after, in parts. `advance` goes on as far as it can without waiting and returns whether
 * all is done; `end` waits until it is, and returns the bytes that this rank has sent. Ranks begin
 * their exchanges in the same order. */
void mtf_message_exchange_begin(MtfMessageExchange *exchange, int index);
bool mtf_message_exchange_advance(MtfMessageExchange *exchange, int index);
int64_t mtf_message_exchange_end(MtfMessageExchange *exchange, int index);

#endif
