// SPDX-License-Identifier: GPL-3.0-or-later
/* The global norm of a step's gradients: the square root of the sum of all their squares. Where the
 * program clips by it, it is there already; otherwise every rank adds up the squares of the
 * gradients it answers for, each just before the update that reads it. */
#ifndef MTF_GRADIENT_NORM_H
#define MTF_GRADIENT_NORM_H

#include "runtime/worker/worker.h"

#include <mpi.h>

typedef struct MtfGradientNorm MtfGradientNorm;

/* NULL when the program has no gradients that a rank could add up. */
MtfGradientNorm *mtf_gradient_norm_new(const MtfWorker *worker);
void mtf_gradient_norm_free(MtfGradientNorm *norm);

/* To be called before each instruction of a step is run; does nothing for most. */
void mtf_gradient_norm_look(MtfGradientNorm *norm, int instruction);

/* Collective over `control`: the norm of what was looked at since the last call. */
double mtf_gradient_norm_take(MtfGradientNorm *norm, MPI_Comm control);

#endif
