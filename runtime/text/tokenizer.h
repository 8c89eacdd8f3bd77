// SPDX-License-Identifier: GPL-3.0-or-later
/* Tokenizers of Hugging Face (tokenizer.json): text to token ids and back.
 *
 *     text ──added tokens cut out──► parts ──normalize──► ──split──► pieces ──model──► ids
 *                                    ids ──post-processor──► ids with <s>, [CLS], …
 *     ids ──► tokens ──decoder──► text
 *
 * Normalizers, splits, models, post-processors and decoders are rows of tables in the files beside;
 * what a file asks for and no table has is an error by name. Unicode's properties and normal forms
 * are GLib's. */
#ifndef MTF_TOKENIZER_H
#define MTF_TOKENIZER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfTokenizer MtfTokenizer;

/* Reads FILE, or tokenizer.json of a folder. Fails (bad input) where it is none, or asks for what is
 * not supported. */
MtfTokenizer *mtf_tokenizer_load(const char *path, GError **error);

/* The same from bytes; `name` stands for the file in messages. */
MtfTokenizer *mtf_tokenizer_parse(const char *name, const char *text, gsize length, GError **error);
void mtf_tokenizer_free(MtfTokenizer *tokenizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTokenizer, mtf_tokenizer_free)

/* Appends the ids (int) of a text; `special` adds those that the post-processor does. Bytes that are
 * no UTF-8 are taken for U+FFFD. Fails (bad input) on a text that the vocabulary cannot say. */
bool mtf_tokenizer_encode(const MtfTokenizer *tokenizer, const char *text, bool special,
                          GArray *ids, GError **error);

/* The text of ids, without special tokens; ids that are not in the vocabulary are left out. Free with
 * g_free. */
char *mtf_tokenizer_decode(const MtfTokenizer *tokenizer, const int *ids, gsize n);

/* One more than the largest id. */
int64_t mtf_tokenizer_vocabulary(const MtfTokenizer *tokenizer);

#endif
