// SPDX-License-Identifier: GPL-3.0-or-later
/* How well a model foretells a text (meshtf-run --perplexity): every token but the first is scored
 * once, by those before it in its window. Windows stand side by side, as many of the plan's length as
 * the text fills, the last with what is left; a batch of them runs at once.
 *
 *     text      t0 t1 t2 t3 t4 t5 t6            length 3, 7 tokens
 *     window 0  t0 t1 t2    ► t1 t2 t3
 *     window 1  t3 t4 t5    ► t4 t5 t6
 *
 *     nats = - sum log p(token) / tokens,  perplexity = exp(nats)
 *
 * A score's p is taken over the ranks that hold parts of the vocabulary, in float64. */
#ifndef MTF_PERPLEXITY_H
#define MTF_PERPLEXITY_H

#include "runtime/session/session.h"

typedef struct {
    int64_t tokens; /* that were scored */
    double nats;    /* a token */
} MtfPerplexity;

/* Collective; the first says whether the second can do so, to be asked before a model is trained. Fail (bad
 * input) where the model does not score next tokens or wants more than a text, and where the file holds fewer
 * than two tokens or one that is not the model's. */
bool mtf_perplexity_check(MtfSession *session, const char *path, GError **error);
bool mtf_perplexity(MtfSession *session, const char *path, MtfPerplexity *perplexity,
                    GError **error);

#endif
