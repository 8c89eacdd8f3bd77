// SPDX-License-Identifier: GPL-3.0-or-later
/* The bound of a copy in which few rows count holds for the core: against exhaustive search, and its
 * certificate. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/search/relaxed_bound.h"
#include "tests/support/problems/contest_problems.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 1500
#define MAX_NODES 16
#define STEPS 15 /* of the dual before the copy is made */
#define RAISES 60

typedef struct {
    int64_t before, bound; /* proven without the copy, and with it */
    bool stuck;
} Found;

/* Raises the bound of a problem to rest or for a while, and holds its certificate against it. */
static Found raise_bound(const MtfLayoutProblem *problem, int nodes, int64_t cutoff) {
    g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
    g_autoptr(MtfCore) core = mtf_core_new(problem);
    mtf_certify_begin(core, certificate);
    g_autoptr(MtfDual) dual = mtf_dual_new(core);
    g_autofree int *values = g_new0(int, nodes + 1);
    for (int i = 0; i < STEPS; i++)
        mtf_dual_step(dual, values);
    Found found = { .before = mtf_dual_prove(dual) };
    MtfRelaxedBound *relaxed = mtf_relaxed_bound_new(dual, cutoff, found.before, NULL);
    for (int i = 0; i < RAISES && !mtf_relaxed_bound_is_stuck(relaxed); i++)
        mtf_relaxed_bound_raise(relaxed, cutoff);
    found.bound = mtf_relaxed_bound_raise(relaxed, cutoff);
    found.stuck = mtf_relaxed_bound_is_stuck(relaxed);
    mtf_relaxed_bound_free(relaxed);
    MtfProven proven;
    g_autoptr(GError) error = NULL;
    if (!mtf_certificate_check(problem, mtf_certificate_text(certificate), &proven, &error))
        fail_msg("%s in\n%s", error->message, mtf_certificate_text(certificate));
    assert_true(proven.none_fits ||
                proven.bound == MAX(found.before, MIN(found.bound, cutoff + 1)));
    return found;
}

TEST(no_choice_costs_less) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    int exact = 0, raised = 0, fit = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem =
            round % 3 == 2 ? mtf_test_repeated_problem(rand) : mtf_test_random_problem(rand);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        int64_t cutoff = (int64_t)optimum + g_rand_int_range(rand, 0, 30);
        Found found = raise_bound(problem, MAX_NODES, cutoff);
        assert_true(found.bound <= optimum && found.bound >= found.before);
        fit++;
        exact += found.bound == optimum;
        raised += found.bound > found.before;
    }
    assert_true(exact > fit / 2 && raised > fit / 10);
}

/* A cutoff below the optimum is exceeded or not reached, and never by more than one. */
TEST(nothing_is_said_beyond_the_cutoff) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);
    int refuted = 0;
    for (int round = 0; round < ROUNDS / 3; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        int64_t cutoff = (int64_t)optimum - g_rand_int_range(rand, 1, 6);
        Found found = raise_bound(problem, MAX_NODES, cutoff);
        assert_true(found.bound <= optimum);
        refuted += found.bound > cutoff;
    }
    assert_true(refuted > ROUNDS / 10);
}

/* Where cycles hold the gap and memory binds in few of many rows, the copy closes much of what is left. */
TEST(the_gap_of_cycles_gets_smaller) {
    static const MtfContestShape shape = { 400, 6, 0.2, 0, 1.3, 400, 60, 1000, 0 };
    for (guint32 seed = 1; seed <= 4; seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        int planted[400];
        g_autoptr(MtfLayoutProblem) problem = mtf_test_contest_problem(&shape, rand, planted);
        int64_t cost = (int64_t)mtf_layout_problem_evaluate(problem, planted).cost;
        Found found = raise_bound(problem, shape.nodes, cost);
        assert_true(found.bound > found.before && found.bound <= cost);
    }
}
