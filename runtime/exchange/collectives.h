// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move: one place, so that everything is counted where it is issued. Ranks of
 * one host exchange through the window of their arenas, others by MPI. An exchange may be under way
 * while the rank computes:
 *
 *     begin     tells the others that mine is ready, or starts MPI's non-blocking collective
 *     progress  between kernels and inside long ones: what can be done without waiting
 *     end       waits for what is left
 *
 * Those under way progress and end in the order in which they were begun, which is the
 * program's, so no two ranks wait for each other. */
#ifndef MTF_COLLECTIVES_H
#define MTF_COLLECTIVES_H

#include "layouts/program/overlap_windows.h"
#include "runtime/exchange/communicators.h"
#include "runtime/exchange/message_exchange.h"
#include "runtime/exchange/traffic.h"
#include "runtime/exchange/window_exchange.h"

#include <mpi.h>

/* How a run exchanges data. */
typedef struct {
    const MtfCommunicators *communicators; /* NULL when the program has no collective */
    MtfWindowExchange *window;             /* NULL: everything by MPI */
    MtfMessageExchange *messages;          /* NULL: no instruction names such an algorithm */
    int64_t max_message;                   /* elements an allreduce call of MPI may have:
                                              MTF_MAX_MESSAGE, or less in tests */
} MtfTransport;

/* One exchange that has begun and not ended. */
typedef struct {
    int index;
    const MtfMove *move;
    MtfTrafficEntry *counted;
    bool by_window, by_messages;
    bool moved;          /* this rank has nothing left to do but wait */
    uint64_t epoch;      /* through the window */
    MPI_Request request; /* by MPI */
} MtfExchange;

/* Those under way, the oldest first. All zeros: none. */
typedef struct {
    int n;
    MtfExchange exchanges[MTF_EXCHANGES_UNDER_WAY];
} MtfExchanges;

/* Collective over this rank's group of move->axes: what lies between mtf_move_before and
 * mtf_move_after of instruction `index`, whose move is given, from the beginning to the end. Adds
 * calls, payload bytes, bytes copied between arenas, and the seconds that this rank spent in it to
 * `counted`, like all here. */
void mtf_collective_issue(const MtfTransport *transport, MtfExchanges *under_way, int index,
                          const MtfMove *move, MtfTrafficEntry *counted);

/* The same in parts. There must be room for one more under way. */
void mtf_collective_begin(const MtfTransport *transport, MtfExchanges *under_way, int index,
                          const MtfMove *move, MtfTrafficEntry *counted);
void mtf_collectives_progress(const MtfTransport *transport, MtfExchanges *under_way);

/* Ends the oldest and returns its instruction. */
int mtf_collective_end_oldest(const MtfTransport *transport, MtfExchanges *under_way);

#endif
