// SPDX-License-Identifier: GPL-3.0-or-later
/* What proves an answer, for others to check: its layout problem, and a certificate of its bound
 * (solver/problem/certificate.h), which `meshtf-plan verify` reads beside it.
 *
 *     answer ──problem──► file of the problem ────────┐
 *        │                                            ├──► verify: exact, nothing of the solver
 *        └─choice─► solved once more from there on ──►┘
 *                   for a certificate and the bound that the answer claims from then on
 */
#ifndef MTF_ANSWER_PROOF_H
#define MTF_ANSWER_PROOF_H

#include "analyzer/layout_search/plan_answer.h"
#include "analyzer/solver/problem/search_control.h"

typedef struct {
    const char *problem;     /* files; NULL: not wanted */
    const char *certificate; /* … */
    guint64 seed;            /* as of the search */
    MtfSearchControl *control;
} MtfAnswerProof;

/* Writes what is wanted of an answer that kept its problem. With a certificate the answer's bound becomes the
 * one that it proves, which may be lower: what the search knew from integer programs is not in certificates.
 * Where nothing fits the certificate says what is needed at least. Fails for an answer whose
 * search posed no problem. */
bool mtf_answer_prove(MtfPlanAnswer *answer, const MtfAnswerProof *wanted, GError **error);

#endif
