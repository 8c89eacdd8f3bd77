// SPDX-License-Identifier: GPL-3.0-or-later
/* What is noted of a run's steps beside their losses, of all stages of this rank: processor time of each kind
 * of kernel, in the first eight of them and every fourth behind, and the norm of the gradients.
 *
 *     stage      0        2                        operations    calls   plan     run
 *     times    [ … ]    [ … ]  ──all ranks──►      einsum          484   32 ms   23 ms
 *     norms    [ … ]    [ … ]  ──all ranks──►      grad 6.22 */
#ifndef MTF_STAGE_WATCHES_H
#define MTF_STAGE_WATCHES_H

#include "runtime/executor/stage_run.h"

typedef struct MtfStageWatches MtfStageWatches;

/* Collective over `control`, which it keeps, once the run is open. */
MtfStageWatches *mtf_stage_watches_new(MtfStageRun *run, MPI_Comm control);

/* To be freed before the run; NULL does nothing. */
void mtf_stage_watches_free(MtfStageWatches *watches);

/* A step begins. The norm costs time: it is looked for where somebody will see it. */
void mtf_stage_watches_begin_step(MtfStageWatches *watches, bool norm);

/* Collective: it has ended. The norm of its gradients; 0 where it was not looked for or cannot be known. */
double mtf_stage_watches_end_step(MtfStageWatches *watches);

/* Collective: the table of kernels of a step, each domain by its first rank; free with g_free. */
char *mtf_stage_watches_format(const MtfStageWatches *watches);

/* Flop of this rank's matrix products a step. */
double mtf_stage_watches_products(const MtfStageWatches *watches);

#endif
