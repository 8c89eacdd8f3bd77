// SPDX-License-Identifier: GPL-3.0-or-later
/* The step of a training run and its memory by its plan, which is made and timed as `search` does it, with
 * --stages where the run has several, but for the search:
 *
 *     sizes ──► graph, cut evenly ──► stages, laid out as the run says ──► programs ──► passes' times
 *                                                                                           │
 *                        step ◄── the schedule, micro-batch by micro-batch, with transfers ◄┘
 *
 * Stages that are alike are priced once; a run without stages has one. Their programs say the memory, too
 * (cost/summary/framework_memory.h, pipeline_memory.h). */
#ifndef MTF_RUN_PLAN_H
#define MTF_RUN_PLAN_H

#include "cost/machine/machine.h"
#include "cost/step_model/training_run.h"
#include "cost/summary/framework_memory.h"

/* Seconds of a step, and what the framework takes. */
typedef struct {
    double seconds;
    MtfFrameworkMemory memory;
} MtfRunPlan;

/* Predicts the run on the machine, whose software must be set. False and why where such a plan cannot be
 * made. */
bool mtf_run_plan(const MtfTrainingRun *run, const MtfMachine *machine, MtfRunPlan *predicted,
                  GError **error);

#endif
