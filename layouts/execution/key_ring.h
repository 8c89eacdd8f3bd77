// SPDX-License-Identifier: GPL-3.0-or-later
/* Ring attention: queries, keys and values of attention in equal parts, so that all three may stay split along
 * their positions over one axis (context parallelism). Each part of queries meets those of memory one after
 * the other, which are handed on from processor to processor round a ring:
 *
 *     q, k, v ──reshape──► [batch, parts, queries/parts, …]
 *     o, lse = attention(q, k, v)                                 part p meets part p
 *     k, v   = turned by one part (and a bias along memory)       a permute where parts are split
 *     o, lse = attention_further(q, k, v, o, lse), turn 1         part p meets part p - 1
 *     …                                                           until it has met all
 *
 * Parts are a dimension that attention has in parallel: whoever splits it holds its parts of queries, keys and
 * values alone, and two parts of keys and of values at a time. Backward keys and values are handed on
 * again, followed by the gradients that they have so far, which are home after the last turn:
 *
 *     dq, dk, dv  = attention_grad(q, k, v, o, lse, do)           o and lse of all memory
 *     k, v        = turned by one part, and so dk and dv
 *     dq, dk, dv += attention_grad(q, k, v, o, lse, do), turn 1
 *     …
 *     dk, dv      = turned home
 *
 * Where queries look back only, parts are stripes: of P parts part p has positions p, p + P, …, so that in
 * every turn each part looks at half of what it meets, and nobody waits for the last (Brandon and others,
 * "Striped attention", 2023). With a sliding window they are neighbours, and the turns end as soon as no
 * query looks that far back; they are neighbours, too, with dropout, which is drawn for neighbours at once.
 *
 * What is added to scores along queries and memory stays with its queries, all memory's parts beside each
 * other (MEMORY/met), and each turn takes from it what belongs to the part at hand; backward each puts there
 * what it makes of its gradient. What is added along memory alone is handed on with it. Layers that add the
 * same have it in parts once.
 *
 *     neighbours  0 0 0 0 1 1 1 1 2 2 2 2     stripes  0 1 2 0 1 2 0 1 2 0 1 2 */
#ifndef MTF_KEY_RING_H
#define MTF_KEY_RING_H

#include "layouts/graph/graph.h"

/* The largest number of parts: the graph grows with it. */
#define MTF_MAX_RING 256

/* Whether attention, or its gradient, can be computed by a ring of `parts` parts: they divide queries and
 * memory, which are equally many where it is causal and in parts of neighbours, and it is in no loop. What is
 * dropped is what attention that is whole drops. */
bool mtf_operation_rings(const MtfGraph *graph, const MtfOperation *op, int parts);

/* Rewrites attention and its gradients in a graph without composites (a training graph or one that runs
 * forward alone), which is canonical afterwards; 0 and 1 leave it as it is, and so stay those that cannot be
 * rewritten. Fails with a bad-input error where none is left, or a name is taken. */
bool mtf_graph_ring_keys(MtfGraph *graph, int parts, GError **error);

#endif
