// SPDX-License-Identifier: GPL-3.0-or-later
/* Rewrites the composite rows that users write into the primitive rows that are differentiated,
 * priced and executed. The last operation keeps the user's name, the others hang below it:
 *
 *     y = softmax(x)            y/max = reduce_max(x)    y/sum = sum_exp(x, y/max)
 *                               y = softmax_apply(x, y/max, y/sum)
 *     y = layer_norm(x, g, b)   y/mean = reduce_mean(x)  y/variance = variance(x, y/mean)
 *                               y = normalize(x, y/mean, y/variance, g, b)
 *     l = softmax_cross_entropy(z, labels, mask)
 *                               l/max = reduce_max(z)    l/sum = sum_exp(z, l/max)
 *                               l/logit = label_logit(z, labels)
 *                               l = cross_entropy(l/max, l/sum, l/logit, mask)
 *     y = einsum(a, b, c, …)    y/1 = einsum(of the cheapest pair), y/2 = …, y = einsum(last pair)
 *
 * The cheapest pair has the smallest product of the sizes of its dimensions, then the smallest
 * result, then comes first. A partial product keeps the dimensions that the result or a later
 * factor has. */
#ifndef MTF_EXPAND_H
#define MTF_EXPAND_H

#include "layouts/graph/graph.h"

/* A new graph without composites and without einsums of more than two operands; everything else is
 * copied. Where an intermediate would be called as something of the graph is, it is called NAME_2. */
MtfGraph *mtf_expand(const MtfGraph *graph, GError **error);

#endif
