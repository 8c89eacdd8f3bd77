// SPDX-License-Identifier: GPL-3.0-or-later
/* The global norm of a step's gradients: the square root of the sum of all their squares. Where a
 * program clips by it, it is there already; otherwise every rank adds up the squares of the
 * gradients it answers for, each just before the update that reads it. Each stage has its own. */
#ifndef MTF_GRADIENT_NORM_H
#define MTF_GRADIENT_NORM_H

#include "runtime/worker/worker.h"

#include <mpi.h>

typedef struct MtfGradientNorm MtfGradientNorm;

/* Of the program of a stage, or of all of the model, which must outlive it. */
MtfGradientNorm *mtf_gradient_norm_new(const MtfWorker *worker, const MtfGraph *model);
void mtf_gradient_norm_free(MtfGradientNorm *norm);

/* To be called before each instruction of a step is run; does nothing for most. */
void mtf_gradient_norm_look(MtfGradientNorm *norm, int instruction);

/* Collective over `control`, before the first step: whether the parts of all ranks have gradients that they can
 * add up. */
bool mtf_gradient_norm_agree(MtfGradientNorm *const *norms, int n, MPI_Comm control);

/* Collective over `control`: the norm of what all parts have looked at since the last call. */
double mtf_gradient_norm_take(MtfGradientNorm *const *norms, int n, MPI_Comm control);

#endif
