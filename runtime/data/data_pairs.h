// SPDX-License-Identifier: GPL-3.0-or-later
/* Pairs of texts, a source and what is made of it, as rows of fixed length:
 *
 *     source           H i ETX  B y e ETX  0 0         source_segments  1 1 1 2 2 2 2 0 0
 *                                                      source_places    0 1 2 0 1 2 3 0 0
 *     tokens       STX S a l u t  STX  …               what the decoder reads
 *     next tokens      S a l u t ETX  …                what it shall say; mask: 1 where it does
 *
 * Tokens are bytes or a tokenizer's (runtime/text/pair_text.h); 0 fills rows up. Where the model has
 * segments, a row takes pairs one after another as long as both sides have room (packed, as by
 * Mesh-TensorFlow); else it is one pair. Pairs longer than a row, and those that are there already,
 * are left out.
 *
 * Labels may stand in the place of the source ("3<tab>text", text_labels.h): then the text is what is read,
 * by a tokenizer with all that it puts around it, and rows are not packed. */
#ifndef MTF_DATA_PAIRS_H
#define MTF_DATA_PAIRS_H

#include "runtime/data/data_catalogue.h"
#include "runtime/text/pair_text.h"
#include "runtime/text/text_labels.h"

typedef struct MtfPairs MtfPairs;

typedef struct {
    int64_t source_length, length; /* of rows */
    int64_t vocabulary;            /* tokens must be below it */
    MtfLabelsWanted labels;        /* without classes: sources are texts */
    bool packed;
    const MtfPairText *text; /* borrowed until they are closed; NULL: bytes */
    char *const *files;      /* NULL-terminated */
    char *const *held_out;   /* files; NULL: the last share of the pairs */
    double share;
} MtfPairsWanted;

/* Whether all files are catalogues or tables of pairs; false also where one cannot be read. */
bool mtf_pairs_are(char *const *files);

/* Fails (bad input) when a file cannot be read or is malformed, when no pair fits the rows, or when
 * a token or a label is beyond what the model has. */
MtfPairs *mtf_pairs_open(const MtfPairsWanted *wanted, GError **error);
void mtf_pairs_close(MtfPairs *pairs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPairs, mtf_pairs_close)

/* Lays out row `number` of all steps, counted from 0: every row of the training part once an epoch,
 * in an order of its own; or held out row `number` (modulo how many there are). */
void mtf_pairs_load(MtfPairs *pairs, uint64_t seed, int64_t number);
void mtf_pairs_load_held(MtfPairs *pairs, int64_t number);

int64_t mtf_pairs_trained(const MtfPairs *pairs); /* rows */
int64_t mtf_pairs_held(const MtfPairs *pairs);

/* Of the row laid out last; every list has one place more than the row, which is 0. */
typedef struct {
    int *source, *source_segments, *source_places;
    int *tokens, *next_tokens, *segments, *places;
    int *labels;              /* as many as are wanted; MTF_NO_LABEL where there is none */
    const MtfTextPair *first; /* as the file has it */
} MtfPairRow;
const MtfPairRow *mtf_pairs_row(const MtfPairs *pairs);

/* How many and a digest; free with g_free. */
char *mtf_pairs_identity(const MtfPairs *pairs);

/* What guessing the tokens of targets, or labels, by their frequency alone would lose, in nats. */
double mtf_pairs_entropy(const MtfPairs *pairs);

#endif
