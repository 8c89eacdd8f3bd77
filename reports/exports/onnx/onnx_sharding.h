// SPDX-License-Identifier: GPL-3.0-or-later
/* A tensor's placement as ONNX's ShardingSpecProto (docs/proposals/0006 of onnx/onnx): parts are numbered
 * with the first listed axis outermost; `device` names for each the processor that holds it, or a
 * negative number for a group of processors that all hold it:
 *
 *     on rows:2;cols:2, [batch@rows, model]     device [-1, -2], {-1: [0, 1], -2: [2, 3]}, axis 0 in 2 */
#ifndef MTF_ONNX_SHARDING_H
#define MTF_ONNX_SHARDING_H

#include "layouts/onnx/protobuf.h"
#include "layouts/plan_file/plan.h"

/* The message for a tensor that files call `name`; NULL for one that is partial, which ONNX has no word
 * for. `first` is the device of processor 0: of a pipeline's stage the first of its domain. */
GByteArray *mtf_onnx_sharding(const MtfPlan *plan, int tensor, const char *name, int first);

#endif
