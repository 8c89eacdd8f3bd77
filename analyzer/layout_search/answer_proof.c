// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/answer_proof.h"

#include "analyzer/free/problem_proof.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "layouts/base/error.h"

/* Of merged axes the proof is that of the mesh they were merged to. */
static bool is_merged(const MtfPlanAnswer *answer) {
    return answer->merged.mesh.n_axes > 0;
}

/* The gap that the answer claims: as much is enough. */
static double claimed_gap(const MtfPlanAnswer *answer) {
    int64_t cost = is_merged(answer) ? answer->merged.cost : answer->free.cost;
    int64_t bound = is_merged(answer) ? answer->merged.bound : answer->free.bound;
    return cost > 0 ? (double)(cost - bound) / (double)cost : 0;
}

/* The answer claims what was proven. */
static void take_bound(MtfPlanAnswer *answer, int64_t bound, const char *method) {
    if (is_merged(answer)) {
        answer->merged.bound = MIN(bound, answer->merged.cost);
        return;
    }
    answer->free.bound = MIN(bound, answer->free.cost);
    g_free(answer->free.method);
    answer->free.method = g_strdup_printf("%s, with a certificate", method);
}

/* Solves the answer's problem from its choice on. */
static bool certify(MtfPlanAnswer *answer, const MtfAnswerProof *wanted, GError **error) {
    g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
    const MtfProblemProof proof = { .problem = answer->problem,
                                    .start = answer->choice,
                                    .gap = claimed_gap(answer),
                                    .seed = wanted->seed,
                                    .control = wanted->control };
    MtfInt128 bound;
    const char *method;
    mtf_search_tell_phase(wanted->control, "writing down what proves the bound");
    if (!mtf_problem_prove(&proof, certificate, &bound, &method, error))
        return false;
    if (method == NULL)
        answer->free.limit_bound = MIN(answer->free.limit_bound, (int64_t)bound);
    else if (answer->free.layout != NULL)
        take_bound(answer, (int64_t)MAX(0, bound), method);
    return mtf_certificate_write(certificate, wanted->certificate, error);
}

bool mtf_answer_prove(MtfPlanAnswer *answer, const MtfAnswerProof *wanted, GError **error) {
    if (wanted->problem == NULL && wanted->certificate == NULL)
        return true;
    if (answer->problem == NULL)
        return !answer->found || mtf_failure(error, "no layout problem was posed, so that there is "
                                                    "none to write");
    if (wanted->problem != NULL &&
        !mtf_layout_problem_save(answer->problem, wanted->problem, error))
        return false;
    return wanted->certificate == NULL || certify(answer, wanted, error);
}
