// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules of what layers are made of: attention and rotated positions, tables and experts, and the
 * pieces of softmax, layer_norm and cross entropy, which hand the whole gradient to the tensor whose
 * statistics they use. */
#ifndef MTF_GRADIENT_LAYERS_H
#define MTF_GRADIENT_LAYERS_H

#include "analyzer/training/gradient_table.h"

/* Rules of gradient_table.h, each named after its operation. */
void mtf_gradient_rotary(MtfGradient *g);
void mtf_gradient_attention(MtfGradient *g);
void mtf_gradient_attention_further(MtfGradient *g);
void mtf_gradient_linear_attention(MtfGradient *g);
void mtf_gradient_embedding(MtfGradient *g);
void mtf_gradient_dispatch(MtfGradient *g);
void mtf_gradient_combine(MtfGradient *g);
void mtf_gradient_expert_einsum(MtfGradient *g);
void mtf_gradient_sum_exp(MtfGradient *g);
void mtf_gradient_variance(MtfGradient *g);
void mtf_gradient_softmax_apply(MtfGradient *g);
void mtf_gradient_cross_entropy(MtfGradient *g);
void mtf_gradient_normalize(MtfGradient *g);

#endif
