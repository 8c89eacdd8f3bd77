// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks a certificate (analyzer/solver/problem/certificate.h says how one reads) against the problem it
 * is about, line by line:
 *
 *     problem ──steps, each with its reason──► ... ──point──► bound
 *                  │ assume 7 2 ... done: value 2 of node 7 is impossible, at the lowest K used there
 *                  │ guess K ... done:    nothing costs at most K; the problem is as it was before
 *
 * A line without a reason ends it. What is proven rests on this folder and on exact arithmetic alone. */
#ifndef MTF_CERTIFICATE_CHECK_H
#define MTF_CERTIFICATE_CHECK_H

#include "analyzer/solver/problem/layout_problem.h"

typedef struct MtfProven {
    bool none_fits; /* no choice is legal; no bound and choice are then set */
    int64_t needed; /* no choice fits in less; MTF_NO_LIMIT: none is possible; 0: nothing is said */
    bool has_bound; /* no legal choice costs less than `bound` */
    MtfInt128 bound; /* in the problem's costs */
    bool has_choice; /* a legal choice of that cost is in the certificate */
    MtfInt128 cost;
    int lines;
} MtfProven;

/* Reads the whole certificate. False with "line N: ..." where it proves nothing. */
bool mtf_certificate_check(const MtfLayoutProblem *problem, const char *text, MtfProven *proven,
                           GError **error);

#endif
