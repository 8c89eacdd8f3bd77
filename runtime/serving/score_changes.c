// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/score_changes.h"

static void penalize(const MtfScoreChanges *changes, const GArray *said, double *scores,
                     bool *marks) {
    for (guint i = 0; i < said->len; i++) {
        int token = g_array_index(said, int, i);
        scores[token] -= changes->frequency + (marks[token] ? 0 : changes->presence);
        marks[token] = true;
    }
    for (guint i = 0; i < said->len; i++)
        marks[g_array_index(said, int, i)] = false;
}

void mtf_score_changes_apply(const MtfScoreChanges *changes, const GArray *said, double *scores,
                             bool *marks) {
    if (changes->presence != 0 || changes->frequency != 0)
        penalize(changes, said, scores, marks);
    for (guint i = 0; changes->biases != NULL && i < changes->biases->len; i++) {
        const MtfTokenBias *b = &g_array_index(changes->biases, MtfTokenBias, i);
        scores[b->token] += b->bias;
    }
}
