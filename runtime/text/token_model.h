// SPDX-License-Identifier: GPL-3.0-or-later
/* The model of a tokenizer: which ids a piece of text is.
 *
 *     BPE         characters; the pair that comes first in a list is merged again and again
 *     WordPiece   the longest entry that begins the piece, then the longest "##…" behind it, …
 *     Unigram     the row of entries with the largest sum of scores
 *     WordLevel   the piece itself */
#ifndef MTF_TOKEN_MODEL_H
#define MTF_TOKEN_MODEL_H

#include "layouts/base/json_reader.h"

typedef struct MtfTokenModel MtfTokenModel;

/* Appends the ids of a piece; false where the vocabulary cannot say it. */
typedef bool (*MtfTokenEncode)(const MtfTokenModel *model, const char *piece, GArray *ids);

/* How the characters of two neighbours become one. */
typedef struct {
    int rank; /* the lower first */
    int id;
} MtfTokenMerge;

struct MtfTokenModel {
    MtfTokenEncode encode;
    GHashTable *ids;    /* text -> id + 1 */
    GPtrArray *texts;   /* by id; NULL where there is none; borrowed from `ids` */
    GHashTable *merges; /* of BPE: left << 32 | right -> MtfTokenMerge */
    GArray *scores;     /* of Unigram: double, by id */
    double unknown_score;
    int longest;  /* of Unigram: bytes of the longest entry */
    int unknown;  /* id, or -1 */
    int most;     /* of WordPiece: characters of a word */
    char *prefix; /* of pieces inside a word, or NULL */
    char *suffix; /* of the last piece of a word, or NULL */
    bool fuse_unknown, byte_fallback, ignore_merges;
};

/* Reads "model" of a tokenizer.json; the caller frees it. Bad input fails with one sentence. */
MtfTokenModel *mtf_token_model_read(const MtfJson *object, GError **error);
void mtf_token_model_free(MtfTokenModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTokenModel, mtf_token_model_free)

/* The id of a text, or -1; the text of an id, or NULL. */
int mtf_token_model_find(const MtfTokenModel *model, const char *text);
const char *mtf_token_model_text(const MtfTokenModel *model, int64_t id);

/* Adds an entry (an added token). */
void mtf_token_model_add(MtfTokenModel *model, const char *text, int id);

/* Appends the ids "<0x41>" of the bytes of a text; false, appending nothing, where one is missing. */
bool mtf_token_model_bytes(const MtfTokenModel *model, const char *text, gsize length, GArray *ids);

/* Appends the ids of one piece of text: pairs merged in the model's order, or the likeliest unigrams.
 * False where the piece holds something that the model has no id for. */
bool mtf_encode_pairs(const MtfTokenModel *model, const char *piece, GArray *ids);
bool mtf_encode_unigrams(const MtfTokenModel *model, const char *piece, GArray *ids);

#endif
