// SPDX-License-Identifier: GPL-3.0-or-later
/* Parts of recurrent language models: an embedding, layers of LSTM (Hochreiter & Schmidhuber 1997) or GRU
 * cells, which may be projected to fewer features (Sak et al. 2014), and a softmax over the vocabulary. Every
 * layer is a loop over the positions (layouts/graph/loops.h); what its input gives to the gates is computed
 * before it, as one product.
 *
 *     lstm   i, f, g, o = x W + r U + b        c' = s(f) c + s(i) tanh(g)       h = s(o) tanh(c')
 *     gru    z, r, n: n' = tanh(x W_n + b_n + s(r) h U_n)                       h = (1 - s(z)) n' + s(z) h
 *            r = h, or h P with a projection                                    (s: sigmoid) */
#ifndef MTF_RECURRENT_H
#define MTF_RECURRENT_H

#include "analyzer/models/model_family.h"
#include "analyzer/models/model_parts.h"

typedef struct {
    MtfParts *p;
    const MtfModelSettings *s;
    int batch, length, vocab, d_model, gate, hidden;
    int last;   /* the features that a layer leaves: projected ones, or hidden */
    int before; /* hidden under another name, as products read it; -1 where they need none */
} MtfRecurrent;

/* Makes the dimensions that the settings ask for. */
void mtf_recurrent_init(MtfRecurrent *model, MtfParts *parts, const MtfModelSettings *settings);

/* Of tokens, which become an input: [length, batch, d_model]. */
int mtf_recurrent_embedding(const MtfRecurrent *model);

/* x is [length, batch, dim], and so is the result, of `last` features. */
int mtf_recurrent_layer(const MtfRecurrent *model, int x, int dim, int layer);

/* The mean cross entropy of the next tokens, and a number that is added to it, or -1. */
void mtf_recurrent_loss(const MtfRecurrent *model, int x, int extra);

#endif
