// SPDX-License-Identifier: GPL-3.0-or-later
/* Labels that stand before a text in a table: one of it all, numbers of it all, or one of each of its words.
 *
 *     3       ⇥ a text                  its class
 *     12 15   ⇥ a text                  where in its row an answer begins and ends
 *     0 5 6   ⇥ in New York             of words: tokens  2  i n _ N e w _ Y o r k
 *                                                 labels  –  0 – – 5 – – – 6 – – –              */
#ifndef MTF_TEXT_LABELS_H
#define MTF_TEXT_LABELS_H

#include "runtime/text/pair_text.h"

/* Of a token that no label is told of. */
#define MTF_NO_LABEL (-1)

typedef struct {
    int64_t classes; /* 0: there are none */
    int64_t places;  /* of an example */
    bool of_words;   /* its places are those of tokens: a word's label is that of its first token */
} MtfLabelsWanted;

/* Appends the labels (int) that a text has before its tab. Fails (bad input) where one is no label of the
 * model, or where there are not as many as an example has places (of words: as the text has, which is
 * `text`). */
bool mtf_labels_read(const MtfLabelsWanted *wanted, const char *said, const char *text,
                     GArray *labels, GError **error);

/* Appends the tokens (int) of a text, word by word, with what stands around it, and for each its label (int).
 * Fails as encoding a text does. */
bool mtf_labelled_words_encode(const MtfPairText *text, const char *words, const GArray *of_words,
                               GArray *tokens, GArray *labels, GError **error);

#endif
