// SPDX-License-Identifier: GPL-3.0-or-later
/* The steps of a plan on this rank, all that loops over micro-batches:
 *
 *     compute   what comes before the first micro-batch; every pass of the domain's order, with its
 *               transfers; what comes after the last and writes no variable, the loss included
 *     update    the rest
 *
 * Between the two a step can be judged while it can still be done again. What runs once a step is run for
 * all stages of the domain in turns: each goes on until it waits for another. */
#ifndef MTF_STAGE_STEPS_H
#define MTF_STAGE_STEPS_H

#include "runtime/executor/stage_run.h"

/* Steps done + 1 … until follow one another without a pause, the pipeline is empty before them and
 * after: variables may be read by others then. Of synchronous pipelines each step is so. */
void mtf_stage_run_begin(MtfStageRun *run, int64_t done, int64_t until);

/* Lets the pipeline run empty as soon as it can after a step that was computed: `until` becomes the last
 * step that is begun anywhere. */
void mtf_stage_run_drain(MtfStageRun *run, int64_t step);

/* Collective over all ranks: the two halves of step `step` (the first is 1). Allocates nothing. Fills the
 * inputs of all micro-batches; false when data could not be read: the step has then run to its end all
 * the same, so that no rank waits for another. */
bool mtf_stage_run_compute(MtfStageRun *run, int64_t step, GError **error);
void mtf_stage_run_update(MtfStageRun *run, int64_t step);

/* Collective over all ranks: the forward passes of all micro-batches of one batch of data, and what of
 * the rest leads to the loss, without dropout. Nothing that training counts or times is changed but the
 * inputs. A failure to read data is told in `*failure`, where none was before. */
void mtf_stage_run_forward(MtfStageRun *run, int64_t batch, GError **failure);

/* Collective over all ranks, instead of a step's second half: its forward passes once more, with a look at
 * what each chunk's instructions make (looks[chunk]). Steps that overlap with it are computed to their ends
 * before, the variables stay as they are. Nothing can follow. */
void mtf_stage_run_watch(MtfStageRun *run, int64_t step, const MtfInstructionLook *looks);

/* Forward passes of the first micro-batch alone, on inputs that the look gives. */
void mtf_stage_run_look(MtfStageRun *run, const MtfStageLook *look);

/* Collective over all ranks: a batch of data through all instructions of a plan that is only run, not
 * trained. False where data could not be read: it has run to its end all the same. */
bool mtf_stage_run_all(MtfStageRun *run, int64_t batch, GError **error);

#endif
