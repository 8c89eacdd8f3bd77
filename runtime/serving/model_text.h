// SPDX-License-Identifier: GPL-3.0-or-later
/* What a model's tokens say: by a tokenizer; without one a token of a vocabulary of at most 256 is a
 * byte, and tokens of a larger one are numbers between spaces. */
#ifndef MTF_MODEL_TEXT_H
#define MTF_MODEL_TEXT_H

#include "runtime/text/tokenizer.h"

typedef struct {
    const MtfTokenizer *tokenizer; /* or NULL; borrowed */
    int64_t vocabulary;            /* scores of a place */
} MtfModelText;

/* Appends the tokens (int) of a text, with what the model expects before one. Fails (bad input) on
 * what the vocabulary cannot say. */
bool mtf_model_text_encode(const MtfModelText *model, const char *text, GArray *tokens,
                           GError **error);

/* The same of a text that has all around it already; where it names special tokens, it means them. */
bool mtf_model_text_encode_whole(const MtfModelText *model, const char *text, GArray *tokens,
                                 GError **error);

/* The bytes of tokens, which need not be whole characters; free with g_free. */
char *mtf_model_text_decode(const MtfModelText *model, const int *tokens, gsize n);

#endif
