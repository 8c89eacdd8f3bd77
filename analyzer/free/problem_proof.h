// SPDX-License-Identifier: GPL-3.0-or-later
/* A layout problem that has been searched, solved once more for a certificate: from a choice that is known on,
 * to a gap that is known to do, by methods that certificates have words for. */
#ifndef MTF_PROBLEM_PROOF_H
#define MTF_PROBLEM_PROOF_H

#include "analyzer/solver/problem/certificate.h"
#include "analyzer/solver/problem/layout_problem.h"
#include "analyzer/solver/problem/search_control.h"

typedef struct {
    const MtfLayoutProblem *problem;
    const int *start; /* a choice, or NULL */
    double gap;       /* as of MtfSolveOptions */
    guint64 seed;
    MtfSearchControl *control;
} MtfProblemProof;

/* Fills an empty certificate. `*method` says what gave `*bound`, below which no choice costs; it is NULL where
 * no choice is legal, and `*bound` the least limit that any needs. Fails where the search ended before
 * either. */
bool mtf_problem_prove(const MtfProblemProof *proof, MtfCertificate *certificate, MtfInt128 *bound,
                       const char **method, GError **error);

#endif
