// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention whose memory is cut into equal parts, so that keys and values may stay split along their
 * positions (context parallelism) where otherwise they would be gathered:
 *
 *     o, lse = attention(q, k, v)            k, v [batch, keys, …], q [batch, queries, …]
 *
 *         k, v ──reshape──► [batch, keys/parts, keys/within, …]        q ──broadcast──► keys/parts
 *              ──attention, parts──► O, L, of each part by itself      [keys/parts, batch, queries, …]
 *         m = max L        s = sum e^(L - m)        over parts
 *         o = sum e^(L - m) / s O                   lse = m + log s
 *
 * where a query that no part holds anything for has the weights of parts that are equally empty. So the
 * parts meet by a maximum and two sums, as everything else does that is reduced: who splits keys/parts
 * holds a part's keys and values alone, and exchanges results of the size of the queries. The
 * gradient is that of the whole operation, which knows o and lse: it sums q's over memory, and k's and
 * v's stay where k and v are. */
#ifndef MTF_KEY_PARTS_H
#define MTF_KEY_PARTS_H

#include "layouts/graph/graph.h"

/* The largest number of parts. */
#define MTF_MAX_KEY_PARTS 65536

/* Rewrites the attention of a graph without composites (a training graph or one that runs forward alone),
 * which is canonical afterwards. 0 and 1 leave it as it is, and so stays attention whose memory is not
 * divisible by `parts`, in a loop, or causal with something added to its scores. Fails with a bad-input error
 * where none is left, or a name is taken. */
bool mtf_graph_split_keys(MtfGraph *graph, int parts, GError **error);

#endif
