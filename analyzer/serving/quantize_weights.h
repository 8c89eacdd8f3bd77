// SPDX-License-Identifier: GPL-3.0-or-later
/* Weights in eight bits, weight by weight: what products alone read is kept as int8, in units of a
 * float32 scale for each of the dimensions that it brings to their results (its output channels):
 *
 *     y = einsum(x, w)     ->     y = quantized_einsum(x, w, w/scale)
 *
 *     w/scale[n] = largest |w[k, n]| over k / 127       w[k, n] rounded to the nearest unit
 *
 * Tables that are looked up too, adapters, and weights of norms and biases stay as they are. Initial
 * values are those of the weights as written, with a normal one's scale for four deviations. */
#ifndef MTF_QUANTIZE_WEIGHTS_H
#define MTF_QUANTIZE_WEIGHTS_H

#include "layouts/graph/graph.h"

/* The graph with as many weights in int8 as may be; `*weights`, if not NULL, becomes how many. `graph`
 * has no composites and no backward pass. */
MtfGraph *mtf_quantize_weights(const MtfGraph *graph, int *weights, GError **error);

#endif
