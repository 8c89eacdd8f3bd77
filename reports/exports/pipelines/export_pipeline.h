// SPDX-License-Identifier: GPL-3.0-or-later
/* The plan of a pipeline in the words of other tools:
 *
 *     torch-pipelining   the order of its passes as torch.distributed.pipelining reads it (_load_csv): a
 *                        line a domain, 0F0 forward, 0B0 backward, or 0I0 and 0W0 its two halves
 *     megatron           command-line flags of Megatron-LM
 *     deepspeed          DeepSpeed's configuration with its section "pipeline"
 *     alpa               a Python module: stages set by hand for Alpa's PipeshardParallel
 *
 *     slurm, rankfile    where ranks start (rank_places.h)
 *
 * (ONNX: onnx/export_onnx.h.) Where a tool has no word for the plan, one sentence says which stage stands in
 * the way. */
#ifndef MTF_EXPORT_PIPELINE_H
#define MTF_EXPORT_PIPELINE_H

#include "layouts/plan_file/pipeline_plan.h"
#include "reports/exports/export.h"

/* The text; free with g_free. Fails with bad input on forms that hold no pipeline, and on asynchronous
 * pipelines, whose steps overlap; slurm and rankfile hold those, too. */
char *mtf_export_pipeline(const MtfPipelinePlan *pipeline, const MtfExportRequest *request,
                          GError **error);

#endif
