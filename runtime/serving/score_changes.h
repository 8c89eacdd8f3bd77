// SPDX-License-Identifier: GPL-3.0-or-later
/* What a request changes of scores before a token is drawn: with c the number of times that the choice has
 * said token t,
 *
 *     score(t) <- score(t) - frequency c - presence [c > 0] + bias(t) */
#ifndef MTF_SCORE_CHANGES_H
#define MTF_SCORE_CHANGES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_MAX_BIASES 1024

typedef struct {
    int64_t token; /* at least 0 */
    double bias;
} MtfTokenBias;

typedef struct {
    double presence, frequency;
    GArray *biases; /* MtfTokenBias, each of another token below n; or NULL */
} MtfScoreChanges;

/* Changes n scores; `said` are the choice's tokens (int), below n. `marks` are n false, and so again
 * afterwards. */
void mtf_score_changes_apply(const MtfScoreChanges *changes, const GArray *said, double *scores,
                             bool *marks);

#endif
