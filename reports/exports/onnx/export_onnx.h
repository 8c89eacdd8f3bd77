// SPDX-License-Identifier: GPL-3.0-or-later
/* A plan's forward pass as an ONNX file (opset 17), with the plan as ONNX's multi-device annotations
 * (IR 11): a configuration of as many devices as the mesh has, and for every node where its inputs and
 * results lie (onnx_sharding.h).
 *
 *     einsum, add, reduce_sum, …  ──►  Einsum, Add with inputs brought in line, ReduceSum, …
 *     variables                   ──►  initial values in a safetensors file beside the model (a
 *                                      checkpoint's), or ConstantOfShape where none is given
 *     what a loss compares        ──►  the model's output
 *
 * The operations' writers are tables in the files onnx_KIND_nodes.c, of elementwise, sum, place, attention
 * and window operations; what stands in none of them (tokens sent to experts) is refused by name. A loop is a
 * Scan (onnx_loop_nodes.h). */
#ifndef MTF_EXPORT_ONNX_H
#define MTF_EXPORT_ONNX_H

#include "layouts/plan_file/pipeline_plan.h"

/* The file's bytes; `weights` is a safetensors file, or NULL. NULL with a bad-input error. */
GByteArray *mtf_export_onnx(const MtfPlan *plan, const char *weights, GError **error);

/* The same of a pipeline: every node has the stage that runs it (pipeline_stage), and its inputs and results
 * lie on that stage's devices, of all that there are. */
GByteArray *mtf_export_onnx_pipeline(const MtfPipelinePlan *pipeline, const char *weights,
                                     GError **error);

#endif
