// SPDX-License-Identifier: GPL-3.0-or-later
/* The step of a training run by its plan, which is made and timed as `search` does it, with --stages where the
 * run has several, but for the search:
 *
 *     sizes ──► graph, cut evenly ──► stages, laid out as the run says ──► programs ──► passes' times
 *                                                                                           │
 *                        step ◄── the schedule, micro-batch by micro-batch, with transfers ◄┘
 *
 * Stages that are alike are priced once; a run without stages has one. */
#ifndef MTF_RUN_PLAN_H
#define MTF_RUN_PLAN_H

#include "cost/machine/machine.h"
#include "cost/step_model/training_run.h"

/* Predicted seconds of a step of the run on the machine, whose software must be set. NAN and why where such a
 * plan cannot be made. */
double mtf_run_plan_seconds(const MtfTrainingRun *run, const MtfMachine *machine, GError **error);

#endif
