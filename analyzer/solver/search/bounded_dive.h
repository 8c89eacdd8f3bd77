// SPDX-License-Identifier: GPL-3.0-or-later
/* Guesses that some choice costs no more than a cutoff a little above the bound. What no such
 * choice uses, which is most of a core whose bound is near its optimum, is forbidden in a copy of
 * it, and in what is left good choices are soon found:
 *
 *     bound ----- guess ---------------------- best known
 *       |<- most ->|  values whose bound is above the guess are gone
 *
 * Where nothing is left the guess is refuted, exactly: no choice costs as little, so the guess is a
 * bound. */
#ifndef MTF_BOUNDED_DIVE_H
#define MTF_BOUNDED_DIVE_H

#include "analyzer/solver/bounds/dual_ascent.h"

typedef struct {
    bool refuted; /* no choice of the core costs `cutoff` or less */
    bool found;   /* a choice that costs at most `known` */
} MtfGuessAnswer;

typedef struct {
    int64_t cutoff; /* in core costs */
    int64_t known;  /* choices that cost more are of no use */
    guint64 seed;
    const MtfSearchControl *control; /* or NULL */
} MtfGuess;

/* Tries a guess on the core of `dual`, neither of which changes. It gives up where too much of the
 * core is left, and after some rounds. Where a choice was found `values` is the cheapest, legal,
 * indexed as in the core; otherwise it is unspecified. */
MtfGuessAnswer mtf_guess_try(MtfDual *dual, const MtfGuess *guess, int *values);

#endif
