// SPDX-License-Identifier: GPL-3.0-or-later
/* The measurements of transfers between stages that --calibrate takes: a tensor from one rank to the
 * next, all pairs at once, as the stages of a pipeline send it (runtime/exchange/stage_transfers.h):
 *
 *     4 ranks   0 ──► 1     2 ──► 3
 *
 *     p2p/2       out of the sender's arena, where ranks share a host
 *     p2p/2/mpi   by messages */
#ifndef MTF_CALIBRATE_TRANSFERS_H
#define MTF_CALIBRATE_TRANSFERS_H

#include "cost/machine/samples.h"

#include <mpi.h>

/* Collective over `control`; all ranks add the same samples, none where there is one rank. */
bool mtf_calibrate_transfers(MPI_Comm control, MtfSamples *samples, GError **error);

#endif
