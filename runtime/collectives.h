// SPDX-License-Identifier: GPL-3.0-or-later
/* The exchange of a move, done by MPI: one function, so that every call is counted where it is
 * issued. */
#ifndef MTF_COLLECTIVES_H
#define MTF_COLLECTIVES_H

#include "runtime/move.h"
#include "runtime/traffic.h"

#include <mpi.h>

/* Collective over `group`, the communicator of move->axes: what lies between mtf_move_before and
 * mtf_move_after. An allreduce of more than `max_message` elements goes in several calls
 * (MTF_MAX_MESSAGE, or less in tests). Adds calls, payload bytes and seconds to `counted`. */
void mtf_collective_issue(MPI_Comm group, const MtfMove *move, int64_t max_message,
                          MtfTrafficEntry *counted);

#endif
