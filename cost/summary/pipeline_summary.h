// SPDX-License-Identifier: GPL-3.0-or-later
/* What somebody wants to know of a pipeline's plan before anything else: the members of step_summary.h, of all
 * stages together.
 *
 *     parallelism   "pipeline parallel 4 x " the stages' words, or each stage's where they differ
 *     model_flops, mfu, …               of all devices in the pipeline's step
 *     peak_memory_bytes, memory_share   of the fullest domain
 *     shares        of the domain that works longest, and what it waits for others: they add up to the step */
#ifndef MTF_PIPELINE_SUMMARY_H
#define MTF_PIPELINE_SUMMARY_H

#include "cost/machine/machine.h"
#include "layouts/plan_file/pipeline_plan.h"

/* Adds the members to `pipeline->predicted`, which has "step_seconds", from the predictions of the stages. */
void mtf_pipeline_summary_add(MtfPipelinePlan *pipeline, const MtfMachine *machine,
                              int64_t memory_limit);

/* What the devices of a domain work in a step, without any wait, and the domain that works longest; of a plan
 * whose stages have predictions. */
double mtf_pipeline_work_seconds(const MtfPipelinePlan *pipeline, int domain);
int mtf_pipeline_busiest_domain(const MtfPipelinePlan *pipeline);

#endif
