// SPDX-License-Identifier: GPL-3.0-or-later
/* The scores (logits) that a program compares with next tokens or labels: where they are computed,
 * and how those of one example come together from the ranks that hold them. */
#ifndef MTF_SCORES_H
#define MTF_SCORES_H

#include "runtime/session/session.h"

typedef struct {
    int stage;           /* that computes them; -1: not found yet */
    int end;             /* instructions [0, end) of the program lead to the scores */
    int buffer;          /* that holds them then */
    bool holds;          /* this rank computes some of them */
    bool speaks;         /* and is, of those that hold the same, the one that speaks for them */
    MtfOperand slice;    /* this rank's, since they were computed; the session's memory */
    int batch, length;   /* dimensions of what they are compared with; length -1: it has none */
    int64_t examples;    /* of a (micro-)batch */
    int64_t window;      /* positions of an example; 1 where it has none */
    int64_t vocabulary;  /* scores of a position */
    bool of_next_tokens; /* compared with next tokens, not labels */
} MtfScores;

/* Whether a rank speaks for its slice of a buffer: of ranks that hold the same the one with the lowest
 * coordinates does. */
bool mtf_scores_speaks(const MtfProgram *program, int buffer, int rank);

/* Collective: finds the scores. Fails (bad input) where no operation of the forward pass compares any;
 * `option` is who asks. */
bool mtf_scores_find(const MtfSession *session, const char *option, MtfScores *scores,
                     GError **error);

/* What element `place` (row-major, of the whole tensor) of an input is to be. */
typedef double (*MtfInputValue)(const MtfTensor *tensor, int64_t place, const void *user);

/* Collective: runs the forward part on inputs of such values, up to the scores, and sets scores->slice. What
 * training counts or times is not changed. */
void mtf_scores_compute(MtfSession *session, MtfScores *scores, MtfInputValue value,
                        const void *user);

/* Collective: the scores of an example's places [from, to), place by place, on every rank. */
void mtf_scores_collect(const MtfSession *session, const MtfScores *scores, int64_t example,
                        int64_t from, int64_t to, double *values);

/* Writes an array of that shape to a file of NumPy's format, in float32. Not collective. */
bool mtf_scores_save(const char *path, const int64_t shape[3], const double *values,
                     GError **error);

/* Collective: writes the scores of the batch after step `step` to a .npy file of float32, [example,
 * place, score]. Fails on all ranks or on none. */
bool mtf_scores_write(MtfSession *session, int64_t step, const char *path, GError **error);

#endif
