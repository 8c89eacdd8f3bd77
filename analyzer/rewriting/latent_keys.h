// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention whose keys and values are products of a few features and one turned key for all heads (DeepSeek-V2,
 * 2024, 2.1; models/architecture_latent.c), so that these alone need be remembered:
 *
 *     few [.., L], turned [.., R]      k = [few Wk │ turned]   v = few Wv      for each of H heads
 *
 * Remembered is m = [few │ turned], L + R numbers a token where keys and values are H times theirs. Of products
 * that associate one does what takes fewer multiplications:
 *
 *     few queries     q' = [q Wk │ q turned]   attention(q', m, m)    the first L of a result, times Wv
 *     many            k and v of all of m, made again                 attention(q, k, v)
 *
 * A generated token has one query, a prompt that is read at once as many as it has positions. */
#ifndef MTF_LATENT_KEYS_H
#define MTF_LATENT_KEYS_H

#include "layouts/graph/graph.h"

/* Rewrites such attention of a forward graph as it was written, for `queries` of a text of `context`
 * positions. Other attention stays. The graph is canonical afterwards. Fails (bad input) where a name is
 * taken. */
bool mtf_graph_remember_latents(MtfGraph *graph, int64_t queries, int64_t context, GError **error);

#endif
