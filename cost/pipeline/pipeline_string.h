// SPDX-License-Identifier: GPL-3.0-or-later
/* An order as one string of letters a rank, for searches that try very many. A letter is a kind of work
 * of one chunk; the n-th such letter stands for micro-batch n, so micro-batches keep their order and
 * the string says everything:
 *
 *     F F I F W I …      F0 F1 I0 F2 W0 I1 …         letter = 3 * chunk + (0 F, 1 I, 2 W)
 *
 * Strings that put an I before its F or a W before its I are not legal. Whole backwards are written as
 * I and W. */
#ifndef MTF_PIPELINE_STRING_H
#define MTF_PIPELINE_STRING_H

#include "cost/pipeline/pipeline_schedule.h"

typedef struct {
    int ranks, chunks, microbatches, length; /* letters of a rank: 3 * chunks * microbatches */
    int *stage;                              /* [ranks * chunks]: of chunk c of rank r */
    uint8_t *letter;                         /* [ranks * length] */
} MtfPipelineString;

/* What an order is worth; less is better. */
typedef struct {
    double span, makespan;
    double mean_span; /* over ranks */
} MtfPipelineScore;

/* The order as a string, and a copy of one; the caller frees them. */
MtfPipelineString *mtf_pipeline_string_new(const MtfPipelineOrder *order);
MtfPipelineString *mtf_pipeline_string_copy(const MtfPipelineString *string);
void mtf_pipeline_string_free(MtfPipelineString *string);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineString, mtf_pipeline_string_free)

/* The order that the string says, without messages. */
MtfPipelineOrder *mtf_pipeline_string_order(const MtfPipelineString *string);

static inline uint8_t *mtf_pipeline_letters(const MtfPipelineString *string, int rank) {
    return string->letter + (gsize)rank * (gsize)string->length;
}

/* Room for scoring strings of one size again and again. */
typedef struct MtfPipelineScorer MtfPipelineScorer;

/* Room to time strings of this shape under a case; the caller frees it. */
MtfPipelineScorer *mtf_pipeline_scorer_new(const MtfPipelineString *string,
                                           const MtfPipelineCase *the_case);
void mtf_pipeline_scorer_free(MtfPipelineScorer *scorer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPipelineScorer, mtf_pipeline_scorer_free)

/* Plays the string; false where it deadlocks (score untouched). The times are those that
 * mtf_pipeline_run_new finds. */
bool mtf_pipeline_score(MtfPipelineScorer *scorer, const MtfPipelineString *string,
                        MtfPipelineScore *score);

/* Where the rank waited in the last string that was scored: the places (rank * length + at) of letters
 * whose input came after the rank was free. Valid until the next scoring. */
const int *mtf_pipeline_score_waits(const MtfPipelineScorer *scorer, int *count);

/* The place of the letter that made what the letter at `place` waits for, by the last string scored; -1
 * where it waits for nothing. */
int mtf_pipeline_score_maker(const MtfPipelineScorer *scorer, const MtfPipelineString *string,
                             int place);

/* Whether the rank's string is legal and never holds more than the case's cap. */
bool mtf_pipeline_string_fits(const MtfPipelineScorer *scorer, const MtfPipelineString *string,
                              int rank);

/* The same order for `more` further micro-batches: on every rank a stretch between two input gradients
 * of the last chunk's kind that holds each letter once is repeated. NULL where a rank has none. */
MtfPipelineString *mtf_pipeline_string_extend(const MtfPipelineString *string, int more);

#endif
