// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/problem_proof.h"

#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/solver/search/layout_solve.h"
#include "layouts/base/error.h"

#define PROOF_ROUNDS 120 /* at most: twice those of a search */

bool mtf_problem_prove(const MtfProblemProof *proof, MtfCertificate *certificate, MtfInt128 *bound,
                       const char **method, GError **error) {
    const MtfSolveOptions options = { .gap = proof->gap,
                                      .work = PROOF_ROUNDS,
                                      .threads = mtf_in_parallel_threads(),
                                      .seed = proof->seed,
                                      .start = proof->start,
                                      .without = MTF_METHOD_PROGRAM,
                                      .certificate = certificate,
                                      .control = proof->control };
    GError *cause = NULL;
    MtfInfeasibility infeasibility = { 0 };
    g_autoptr(MtfLayoutSolution) solution =
        mtf_layout_solve(proof->problem, &options, &infeasibility, &cause);
    *bound = infeasibility.needed;
    g_free(infeasibility.nodes);
    *method = NULL;
    if (solution != NULL) {
        *bound = solution->bound;
        *method = solution->method;
    }
    if (g_error_matches(cause, MTF_ERROR, MTF_ERROR_FIT))
        g_clear_error(&cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return cause == NULL;
}
