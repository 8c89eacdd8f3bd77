// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory that a framework takes for a pipeline: of the domain that has most, at the worst of its actions,
 *
 *     standing, of all its stages           weights, gradients, optimizer
 *     + left, of those in flight by then    F adds what it leaves, I and W take what they read last
 *     + passing                             of the stage that works
 *
 * since its allocator gives a stage what another one has given back. */
#ifndef MTF_PIPELINE_MEMORY_H
#define MTF_PIPELINE_MEMORY_H

#include "cost/summary/framework_memory.h"
#include "layouts/plan_file/pipeline_plan.h"

/* Of a plan whose stages' predictions have the members of mtf_framework_memory_add. */
MtfFrameworkMemory mtf_pipeline_memory(const MtfPipelinePlan *pipeline,
                                       const MtfSoftware *software);

/* What it gives out in one of the domains: given, standing and passing with what is left. */
MtfFrameworkMemory mtf_pipeline_domain_memory(const MtfPipelinePlan *pipeline, int domain);

#endif
