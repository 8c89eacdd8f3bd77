// SPDX-License-Identifier: GPL-3.0-or-later
/* The measurements of collectives that --calibrate takes: every kind over several sizes, in groups
 * of every size that divides the ranks, all groups at once as in training. Each is a program of a
 * kernel and the collective that its result needs, on a worker, over the executor's transport: what
 * is timed is what training does.
 * Every algorithm that does such a collective has a table of its own, so that `--collectives auto`
 * chooses by what was measured; groups have two axes for those that go axis by axis.
 *
 *     4 ranks   0 1 2 3     groups of 4   {0 1 2 3}
 *                           groups of 2   {0 1} {2 3}   at the same time */
#ifndef MTF_CALIBRATE_COLLECTIVES_H
#define MTF_CALIBRATE_COLLECTIVES_H

#include "cost/machine/samples.h"

#include <mpi.h>

/* Collective over `control`; all ranks add the same samples but for the seconds. */
bool mtf_calibrate_collectives(MPI_Comm control, MtfSamples *samples, GError **error);

#endif
