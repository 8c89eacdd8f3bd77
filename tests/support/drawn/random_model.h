// SPDX-License-Identifier: GPL-3.0-or-later
/* Random models whose steps may be divided: a batch of examples that no operation mixes, layers of drawn operations
 * in a repeated block, each of which adds to what it was given, a loss of each example, an optimizer with its schedule.
 *
 *     x[batch, …] ──► layer 0 ──► … ──► layer n-1 ──► losses[batch, …] ──► mean, or mean by a mask
 *
 * The same options give the same model. */
#ifndef MTF_TESTS_RANDOM_MODEL_H
#define MTF_TESTS_RANDOM_MODEL_H

#include "layouts/graph/graph.h"

typedef struct {
    guint32 seed;
    int layers;     /* of the block */
    int operations; /* about so many in each */
    int64_t batch;  /* examples */
    MtfDtype dtype; /* MTF_F32 or MTF_F64 */
} MtfRandomModel;

/* Draws the model, a forward graph with its optimizer; free with mtf_graph_free. */
MtfGraph *mtf_random_model(const MtfRandomModel *options);

/* Draws a model of texts, of that many operations and sizes at most 7:
 *
 *     tokens[batch, length] ──► x[batch, length, d] ──► operations over any dimensions ──► logits ──► loss
 *
 * in float64, without an optimizer. What looks at later tokens, or at other examples, may be drawn, too: not all of them
 * generate. Free with mtf_graph_free. */
MtfGraph *mtf_random_text_model(guint32 seed, int operations, int64_t batch, int64_t length,
                                int64_t vocabulary);

#endif
