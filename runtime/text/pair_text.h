// SPDX-License-Identifier: GPL-3.0-or-later
/* What a text that is read, and one that is made of it, are as tokens:
 *
 *                     begins with              ends with
 *     bytes           2 (STX)                  3 (ETX)
 *     a tokenizer's   decoder_start_token_id   what its post-processor puts there, in most </s>
 *
 * An end stands behind either text, a beginning before what is made: "Hi" and "Salut" are read as `H i ETX`,
 * and the decoder as `STX S a l u t`, which is to say `S a l u t ETX`. */
#ifndef MTF_PAIR_TEXT_H
#define MTF_PAIR_TEXT_H

#include "runtime/text/tokenizer.h"

typedef struct {
    const MtfTokenizer *tokenizer; /* or NULL; borrowed */
    int begins;
    GArray *ends; /* int */
} MtfPairText;

extern const MtfPairText mtf_pair_bytes; /* without a tokenizer; knows no ends */

/* `path` is where the tokenizer comes from, perhaps the folder of its model. Fails (bad input) as reading its
 * files does. */
bool mtf_pair_text_init(MtfPairText *text, const MtfTokenizer *tokenizer, const char *path,
                        GError **error);
void mtf_pair_text_clear(MtfPairText *text);

/* Appends the tokens (int) of a text with its end, whatever else a tokenizer puts around it. Fails (bad
 * input) on what the vocabulary cannot say. */
bool mtf_pair_text_encode(const MtfPairText *text, const char *words, GArray *tokens,
                          GError **error);

/* Whether a token ends what is made; among bytes one that is no byte does, too. */
bool mtf_pair_text_is_end(const MtfPairText *text, int token);

/* What tokens say, for a line: without controls, which would command the terminal. Free with g_free. */
char *mtf_pair_text_decode(const MtfPairText *text, const int *tokens, gsize n);

#endif
