// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move: one function, so that everything is counted where it is issued. Ranks of
 * one host exchange through the window of their arenas, others by MPI. */
#ifndef MTF_COLLECTIVES_H
#define MTF_COLLECTIVES_H

#include "runtime/communicators.h"
#include "runtime/traffic.h"
#include "runtime/window_exchange.h"

#include <mpi.h>

/* How a run exchanges data. */
typedef struct {
    const MtfCommunicators *communicators; /* NULL when the program has no collective */
    MtfWindowExchange *window;             /* NULL: everything by MPI */
    int64_t max_message;                   /* elements an allreduce call of MPI may have:
                                              MTF_MAX_MESSAGE, or less in tests */
} MtfTransport;

/* Collective over this rank's group of move->axes: what lies between mtf_move_before and
 * mtf_move_after of instruction `index`, whose move is given. Adds calls, payload bytes, bytes
 * copied between arenas, and seconds to `counted`. */
void mtf_collective_issue(const MtfTransport *transport, int index, const MtfMove *move,
                          MtfTrafficEntry *counted);

#endif
