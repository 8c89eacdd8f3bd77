// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes dimensions longer, so that meshes divide them, without changing what a graph computes:
 *
 *     vocab = 50257, --pad vocab:128      size 50304, the first 50257 valid
 *
 * Variables hold zeros in the padding from the beginning and, since no gradient reaches it, to the
 * end; files of weights and checkpoints are without it. Other tensors may hold anything there, and
 * what would notice reads them masked:
 *
 *     loss = softmax_cross_entropy(logits, …)  ─►  … (logits/masked, …)
 *                                                  logits/masked = where(vocab/counts, logits, -1e30)
 *                                                  vocab/counts  = range along vocab < 50257 */
#ifndef MTF_PADDING_H
#define MTF_PADDING_H

#include "layouts/graph/graph.h"

/* Rewrites a forward graph. Each of `paddings` is "DIMENSION:MULTIPLE" (several may stand between
 * commas): the dimension, and those that it is renamed to or from, get the next multiple as their
 * size. `said` (char *, owned; or NULL) receives what was done. Fails (bad input) where a name or a
 * number is none, an input has the dimension, or some operation's result would change. */
bool mtf_pad(MtfGraph *graph, const char *const *paddings, GPtrArray *said, GError **error);

#endif
