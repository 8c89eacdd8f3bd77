// SPDX-License-Identifier: GPL-3.0-or-later
/* How likely the tokens of a choice were, as natural logarithms of their shares of the softmax at temperature
 * 1, and which were the likeliest in their place ("logprobs"). */
#ifndef MTF_COMPLETION_SCORES_H
#define MTF_COMPLETION_SCORES_H

#include "runtime/serving/model_text.h"

#include <cjson/cJSON.h>

#define MTF_MAX_LIKELIEST 20

typedef struct {
    char *text; /* what the token says: bytes, which need not be whole characters */
    double logarithm;
} MtfTokenScore;

/* Of one place of a choice. */
typedef struct {
    MtfTokenScore said;
    MtfTokenScore likeliest[MTF_MAX_LIKELIEST]; /* descending */
    int n_likeliest;
    int64_t offset; /* characters that the choice has before it */
} MtfPlaceScores;

/* A list of MtfPlaceScores that owns its texts. */
GArray *mtf_place_scores_new(void);

/* Appends what `token` is among n >= 1 scores, with the `likeliest` highest, the first of equals first. NULL
 * scores: the first token of a text, which has no score. */
void mtf_place_scores_append(GArray *places, const MtfModelText *model, const double *scores,
                             int64_t n, int token, int likeliest);

/* Adds "logprobs" of the places from `first` on to a choice, in OpenAI's form of completions or of chats. */
void mtf_place_scores_add(cJSON *choice, const GArray *places, guint first, bool chat);

#endif
