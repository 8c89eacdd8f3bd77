// SPDX-License-Identifier: GPL-3.0-or-later
/* What a framework does that calls its library operation by operation, and multiplies in a narrower type
 * while it keeps the rest in float32, as PyTorch does without its compiler and with autocast:
 *
 *     each map, reduction and copy reads its operands from memory and writes its results there; but
 *     a product adds its bias itself (a convolution does not), and a norm is one call, with its
 *     statistics, and one for its gradients;
 *
 *     products and attention give the narrow type, and cast what they read that is wider: weights
 *     once a step, activations in each product, their gradients back;
 *     lookups, and norms and softmax over rows give float32, and so do maps one of whose operands is.
 *     A norm over the batch keeps its input's type, and a gradient has that of its tensor.
 *
 * Forward, of a layer whose input x is float32:
 *
 *     x ──► norm ──► (cast) ──► product + bias ──► add ──► x', float32 since x is
 *      ╰────────────────────────────────────────────╯ */
#ifndef MTF_EAGER_H
#define MTF_EAGER_H

#include "layouts/graph/graph.h"

/* Fills in `eager` of all operations. */
void mtf_graph_mark_eager(MtfGraph *graph);

#endif
