// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph that generates text, from the graph that is trained: for each example the next tokens
 * come in, what they look back at stands in caches, and the scores of one place come out.
 *
 *     trained     tokens[batch, length] ─► … k ─rename─► attention over all ─► … logits ─► loss
 *
 *     generating  tokens[batch, length] ─► … k ─cache_update─► cached_attention ─► … scores[batch, vocab]
 *                 position[batch] ──────────────┴──────┘  ▲
 *                 last[batch]                       cache[batch, …, memory, features], kept
 *
 * `length` is what an example brings at once: one token where text is generated, as many as one
 * likes where a prompt is read; both are this graph with another size. Example b's tokens stand at
 * position[b] and behind it, and the scores are those behind its token number last[b]. What stands
 * behind an example's own tokens in its cache is never looked at, so that examples may be of
 * different lengths: their filling is overwritten by what comes. Convolutions keep the elements before what
 * is at hand that they read, loops and linear attention their states, which filling does not change
 * (generation_states.c); last[b] is -1 where an example brings nothing.
 *
 * Ranges, rotary turns, causal masks and tables of learned positions count from `position`; dropout
 * goes; experts that drop nobody have as many places as the tokens at hand have choices; the last
 * product, with the vocabulary, sees one place of each example. The loss and all that
 * only it needs goes, and so do backward pass and optimizer where there are any. Variables keep
 * their names. */
#ifndef MTF_GENERATION_GRAPH_H
#define MTF_GENERATION_GRAPH_H

#include "layouts/graph/graph.h"

typedef struct {
    int64_t batch;   /* examples; 0: as the graph has */
    int64_t length;  /* tokens that an example brings */
    int64_t context; /* tokens of an example that caches have room for; 0: as the graph has */
} MtfGenerationSizes;

/* Fails (bad input) where the graph does not compare scores with next tokens, reads several texts, looks at
 * what comes later, or along its text in a way that no cache serves (a capacity of experts that drops what
 * comes late, too, a sum over all places that no mask hides, places made of a table otherwise than by its rows'
 * numbers), or mixes examples, each of which is a text of its own; and where the context is longer than a table of learned positions. */
MtfGraph *mtf_generation_graph(const MtfGraph *graph, const MtfGenerationSizes *sizes,
                               GError **error);

/* Gives a graph of these another number of tokens that an example brings. */
void mtf_generation_set_length(MtfGraph *graph, int64_t length);

/* Whether a graph is run for what it makes of its inputs, which variables keep, and has no loss; and whether it
 * is one of these, whose results are scores behind an example's last token. */
bool mtf_graph_has_results(const MtfGraph *graph);
bool mtf_graph_generates(const MtfGraph *graph);

/* The dimension that counts what an example brings, and the one that caches of keys and values have in its
 * place; -1 where there is none. */
int mtf_generation_length(const MtfGraph *graph);
int mtf_generation_context(const MtfGraph *graph);

/* The input of that feed, or -1; and the variable that keeps the scores. */
int mtf_generation_input(const MtfGraph *graph, MtfFeed feed);
int mtf_generation_scores(const MtfGraph *graph);

#endif
