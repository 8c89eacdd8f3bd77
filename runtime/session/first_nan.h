// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a loss that is not a number comes from: a step's forward passes are computed once more, and
 * every result looked at as soon as it is there.
 *
 *     rank 0   ok  ok  ok  ok  NaN NaN …
 *     rank 1   ok  ok  NaN NaN NaN NaN …       "layer/0/ffn/hidden" (einsum) on rank 1, in stage 0
 *     rank 2                   NaN NaN NaN … */
#ifndef MTF_FIRST_NAN_H
#define MTF_FIRST_NAN_H

#include "runtime/executor/stage_steps.h"

/* Collective over `control`: says on every rank, in the same words, which value is the first that is not a
 * number: a variable before the step, or an operation's result in it; where there is none, the first that is
 * infinite. NULL when all are finite. The variables must be those before the step, whose first half has run:
 * nothing can follow it any more. Free with g_free. */
char *mtf_first_nan(MtfStageRun *run, MPI_Comm control, int64_t step);

#endif
