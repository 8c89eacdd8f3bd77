// SPDX-License-Identifier: GPL-3.0-or-later
/* The two halves of a pipeline stage's backward pass. The stage before waits for the input gradient
 * alone, so what leads there comes first, and the weight gradients may be run later:
 *
 *     written    dy ─► dW₂ ─► da ─► dW₁ ─► dx        behind it    dy ─► da ─► dx │ dW₂ ─► dW₁
 *
 * (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241.) */
#ifndef MTF_SPLIT_BACKWARD_H
#define MTF_SPLIT_BACKWARD_H

#include "layouts/program/program.h"

/* Of a stage whose backward pass is split (MtfStageExecution): puts the
 * instructions of the backward pass that some tensor sent to another stage depends on before the
 * others, both in their order, and notes where those begin in program->weight_gradients. Of any
 * other that is n_repeated. */
void mtf_program_split_backward(MtfProgram *program);

#endif
