// SPDX-License-Identifier: GPL-3.0-or-later
/* Windows of a stream of tokens: the bytes of a text, or the tokens of files made for that. Where
 * no files are held out, the last share of the tokens is, unless too little would be left to train
 * on.
 *
 *     |-------- training part --------|---- held out ----|
 *           [ window of L + 1 tokens )  [ 0 )[ 1 )[ 2 )         tokens: its first L
 *                                                               next tokens: its last L
 *
 * A window of the training part begins at a place drawn for (seed, step, example); those of the
 * held out part follow one another. */
#ifndef MTF_DATA_TOKENS_H
#define MTF_DATA_TOKENS_H

#include "runtime/data/data_stream.h"
#include "runtime/text/tokenizer.h"

typedef struct MtfTokens MtfTokens;

/* What a model wants of its tokens, and which are held out. */
typedef struct {
    int64_t window;        /* L */
    bool next;             /* the token after a window is read, too */
    int64_t bound;         /* ids below it are legal; INT64_MAX = all */
    char *const *files;    /* NULL-terminated */
    char *const *held_out; /* files; NULL = a share of the tokens */
    double share;
    const MtfTokenizer *tokenizer; /* of text; NULL = bytes */
} MtfTokensWanted;

/* All files (NULL-terminated) as one stream of tokens; texts go through the tokenizer, where there is
 * one. Fails (bad input) when a file cannot be read or holds none. */
MtfDataStream *mtf_tokens_stream_open(char *const *files, const MtfTokenizer *tokenizer,
                                      GError **error);

/* Fails (bad input) when a file cannot be read, there are too few tokens for a window and what is read
 * after it, or one of the first 2^24 tokens is `bound` or more. */
MtfTokens *mtf_tokens_open(const MtfTokensWanted *wanted, GError **error);
void mtf_tokens_close(MtfTokens *tokens);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTokens, mtf_tokens_close)

/* Reads the training window of an example, or held out window `number` (modulo how many there are).
 * Fails when a file has become unreadable, or a token is `bound` or more. */
bool mtf_tokens_load(MtfTokens *tokens, uint64_t seed, int64_t step, int64_t example,
                     GError **error);
bool mtf_tokens_load_held(MtfTokens *tokens, int64_t number, GError **error);

/* Windows of the held out part. */
int64_t mtf_tokens_held(const MtfTokens *tokens);

/* Token `place` (0 … L - 1, with `next` L) of the window loaded last. */
int mtf_tokens_get(const MtfTokens *tokens, int64_t place);

/* What guessing tokens by their frequency alone would lose, in nats a token: the order-0 entropy of
 * the training part (of its first 2^24 tokens). NAN when a file has become unreadable. */
double mtf_tokens_entropy(const MtfTokens *tokens);

/* How many and a digest; free with g_free. Fails when a file has become unreadable. */
char *mtf_tokens_identity(const MtfTokens *tokens, GError **error);

#endif
