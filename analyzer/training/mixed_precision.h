// SPDX-License-Identifier: GPL-3.0-or-later
/* From a training graph in float32 to the same step stored in bfloat16, as the operation table says
 * which inputs and results are wide:
 *
 *     w f32 ──cast──► w/bf16 ──einsum──► y bf16 ──► … ──► losses f32 ──► loss f32
 *                        │
 *                        └──einsum──► grad/w bf16 ──adam──► w f32, m f32, v f32
 *
 * Variables, optimizer state and inputs stay as they are; what the model reads of them is cast once a step,
 * so that a variable kept in parts is gathered in half the bytes. Activations, their gradients and the
 * gradients of variables are bfloat16, and so is what travels between processors; gradients of variables
 * leave their products rounded once from a float32 sum, which costs less than the noise of a batch, and
 * updates take them up in float32. Over micro-batches they are added up in float32, and rounded before they
 * travel (layouts/execution/accumulation.h). Wide stay: statistics of softmax and layer norm, losses and what
 * follows from them alone, and in the clip and update phases everything: an operation there reads bfloat16
 * only where its result is wide. */
#ifndef MTF_MIXED_PRECISION_H
#define MTF_MIXED_PRECISION_H

#include "layouts/graph/graph.h"

/* A new graph; casts are called "TENSOR/bf16" and "TENSOR/f32". Every float tensor of `training`
 * must be float32. Fails with a bad-input error when such a name is taken. */
MtfGraph *mtf_mixed_precision(const MtfGraph *training, GError **error);

/* The same of a graph that is run and not trained: variables are kept in bfloat16, too. */
MtfGraph *mtf_narrow_precision(const MtfGraph *graph, GError **error);

#endif
