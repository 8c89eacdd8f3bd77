// SPDX-License-Identifier: GPL-3.0-or-later
/* What the solver claims is what its certificate proves, and what exhaustive search finds. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/bounded_dive.h"
#include "analyzer/solver/search/branch_and_bound.h"
#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/contest_problems.h"
#include "tests/support/problems/layout_problems.h"

#include <string.h>

#define ROUNDS 2400
#define MAX_NODES 16

/* Every eighth one is of repeated cells, and costs of every third come close to 1e15, ties apart by a
 * unit. */
static MtfLayoutProblem *some_problem(GRand *rand, int round) {
    if (round % 8 == 7)
        return mtf_test_repeated_problem(rand);
    return round % 3 == 1 ? mtf_test_magnified_problem(rand, INT64_C(20000000000021), 1)
                          : mtf_test_random_problem(rand);
}

static MtfProven check(const MtfLayoutProblem *problem, const MtfCertificate *certificate) {
    MtfProven proven;
    g_autoptr(GError) error = NULL;
    if (!mtf_certificate_check(problem, mtf_certificate_text(certificate), &proven, &error))
        fail_msg("%s in\n%s", error->message, mtf_certificate_text(certificate));
    return proven;
}

/* The answer is the same without a certificate: no method is left out for want of words, but for what an integer
 * program says to a tolerance. */
static void assert_unchanged(const MtfLayoutProblem *problem, const MtfSolveOptions *certified,
                             const MtfLayoutSolution *solution) {
    MtfSolveOptions options = *certified;
    options.certificate = NULL;
    g_autoptr(MtfLayoutSolution) again = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_true((again == NULL) == (solution == NULL));
    if (solution == NULL)
        return;
    assert_true(again->cost == solution->cost);
    if (again->tolerance > 0) {
        assert_true(again->bound >= solution->bound);
        return;
    }
    assert_true(again->bound == solution->bound);
    assert_string_equal(again->method, solution->method);
}

/* Solves with some methods and so many rounds (0: to the end), and holds the answer, the certificate
 * and exhaustive search against one another. Returns whether the optimum is proven. */
static bool compare(const MtfLayoutProblem *problem, MtfSolveMethods methods, int64_t work) {
    MtfInt128 optimum = 0;
    int choice[MAX_NODES];
    bool fits = mtf_test_exhaustive_search(problem, &optimum, choice);
    g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
    MtfSolveOptions options = { .work = work,
                                .without = (MtfSolveMethods)(MTF_METHODS_ALL & ~methods),
                                .no_infeasibility = true,
                                .certificate = certificate };
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_unchanged(problem, &options, solution);
    MtfProven proven = check(problem, certificate);
    assert_true(solution == NULL || fits);
    assert_true(!proven.none_fits || !fits);
    assert_true(!proven.has_bound || !fits || proven.bound <= optimum);
    if (solution == NULL)
        return proven.none_fits;
    assert_true(solution->tolerance == 0);
    assert_true(proven.has_choice && proven.cost == solution->cost);
    assert_true(proven.has_bound && proven.bound == solution->bound);
    return proven.bound == optimum;
}

TEST(all_claims_are_certified_and_match_exhaustive_search) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(61);
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        assert_true(compare(problem, MTF_METHODS_ALL, 0));
    }
}

TEST(claims_of_every_method_alone_are_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(62);
    for (const MtfSolveMethod *method = mtf_solve_methods; method->name != NULL; method++) {
        int proven = 0;
        for (int round = 0; round < ROUNDS / 4; round++) {
            g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
            proven += compare(problem, method->bit, 30);
        }
        assert_true(proven > ROUNDS / 5);
    }
}

TEST(bounds_of_searches_that_end_early_are_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(63);
    for (int round = 0; round < ROUNDS / 2; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        compare(problem, MTF_METHODS_ALL, 1);
    }
}

/* `needed` of an infeasibility is what its certificate says, and so is that of a limit one byte lower. */
TEST(what_is_needed_at_least_is_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(64);
    int misfits = 0, impossible = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        g_autoptr(MtfLayoutProblem) problem = mtf_test_random_problem(rand);
        MtfInfeasibility infeasibility = { 0 };
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        const MtfSolveOptions options = { .certificate = certificate };
        g_autoptr(MtfLayoutSolution) solution =
            mtf_layout_solve(problem, &options, &infeasibility, NULL);
        MtfProven proven = check(problem, certificate);
        if (solution == NULL && !infeasibility.possible) {
            assert_true(proven.none_fits && proven.needed == MTF_NO_LIMIT);
            impossible++;
        }
        if (solution == NULL && infeasibility.possible && infeasibility.needed > 0) {
            bool is_told = infeasibility.needed > mtf_layout_problem_limit(problem) + 1;
            assert_true(proven.none_fits);
            assert_true(proven.needed == infeasibility.needed || (!is_told && proven.needed == 0));
            mtf_layout_problem_set_limit(problem, infeasibility.needed - 1);
            assert_true(compare(problem, MTF_METHODS_ALL, 0));
            assert_true(infeasibility.needed == mtf_test_least_peak(problem));
            misfits++;
        }
        g_free(infeasibility.nodes);
    }
    assert_true(misfits > ROUNDS / 40 && impossible > 0);
}

/* Guesses are made on large cores; here on any. */
TEST(a_refuted_guess_is_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(65);
    int refuted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES], values[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_certify_begin(core, certificate);
        MtfDual *dual = mtf_dual_new(core);
        for (int i = 0; i < 20; i++)
            mtf_dual_step(dual, values);
        MtfGuess guess = { .cutoff = (int64_t)optimum + g_rand_int_range(rand, -3, 4),
                           .known = (int64_t)optimum + 20 };
        MtfGuessAnswer answer = mtf_guess_try(dual, &guess, values);
        MtfProven proven = check(problem, certificate);
        assert_int_equal(proven.has_bound && proven.bound > guess.cutoff, answer.refuted);
        assert_true(!proven.has_bound || proven.bound <= optimum);
        refuted += answer.refuted;
        mtf_dual_free(dual);
    }
    assert_true(refuted > ROUNDS / 20);
}

/* A tree that is not searched to its end proves a bound, too: of what is not yet visited. */
TEST(the_bound_of_open_branches_is_certified) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(66);
    int open = 0;
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(MtfLayoutProblem) problem = some_problem(rand, round);
        MtfInt128 optimum = 0;
        int choice[MAX_NODES], values[MAX_NODES];
        if (!mtf_test_exhaustive_search(problem, &optimum, choice))
            continue;
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        g_autoptr(MtfCore) core = mtf_core_new(problem);
        mtf_certify_begin(core, certificate);
        double weights[MAX_NODES] = { 0 };
        g_autoptr(MtfBranching) branching =
            mtf_branching_new(mtf_messages_new(core), weights, (guint64)round);
        int64_t cutoff = (int64_t)optimum + g_rand_int_range(rand, 0, 30);
        MtfBranchStatus status = MTF_BRANCH_FOUND;
        for (int runs = 0; runs < 3 && status != MTF_BRANCH_DONE; runs++) {
            status = mtf_branching_run(branching, cutoff, 20, values);
            if (status == MTF_BRANCH_FOUND)
                cutoff = mtf_core_cost(core, values) - 1;
        }
        int64_t bound = MIN(mtf_branching_bound(branching), cutoff + 1);
        mtf_branching_certify(branching);
        MtfProven proven = check(problem, certificate);
        assert_true(proven.has_bound && proven.bound == bound && bound <= optimum);
        open += status != MTF_BRANCH_DONE;
    }
    assert_true(open > ROUNDS / 10);
}

/* The words that certificates may be made of. */
static const char *const words[] = { "keep",   "join",  "eliminate", "move",  "shut",
                                     "dead",   "bound", "prune",     "entry", "single",
                                     "assume", "done",  "part",      "order", "buckets" };
static bool seen[G_N_ELEMENTS(words)];

static void note_words(const char *text) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        for (gsize k = 0; k < G_N_ELEMENTS(words); k++)
            seen[k] |= strncmp(*line, words[k], strlen(words[k])) == 0;
}

/* Problems of 60 and 150 nodes, where the bound is found by probing, joining nodes and branching, to the end
 * or not: every word of the format turns up. */
TEST(bounds_of_middle_problems_are_certified) {
    static const MtfContestShape shapes[] = {
        { 60, 6, 0.5, 0.1, 1.1, 60, 10, 1000, 0 },  { 60, 6, 0, 0, 1.1, 60, 10, 1000, 0 },
        { 60, 6, 0.5, 0.1, 1.03, 60, 10, 1000, 0 }, { 150, 6, 0.3, 0.5, 1.1, 150, 25, 100000, 0 },
        { 60, 6, 0.5, 0.1, 1.05, 1, 1, 100000, 0 }, { 150, 6, 0.5, 0.1, 0, 150, 1, 100000, 0 },
        { 60, 6, 0.5, 0.1, 1, 60, 10, 4, 3 },
    };
    for (guint32 i = 0; i < 10 * G_N_ELEMENTS(shapes); i++) {
        const MtfContestShape *shape = &shapes[i % G_N_ELEMENTS(shapes)];
        g_autoptr(GRand) rand = g_rand_new_with_seed(i);
        int planted[150];
        g_autoptr(MtfLayoutProblem) problem = mtf_test_contest_problem(shape, rand, planted);
        g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
        MtfSolveOptions options = { .work = i % 3 == 0 ? 12 : 60,
                                    .without = i % 2 == 0 ? MTF_METHOD_ELIMINATION : 0,
                                    .certificate = certificate };
        g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
        assert_non_null(solution);
        MtfProven proven = check(problem, certificate);
        assert_true(proven.has_choice && proven.cost == solution->cost);
        assert_true(solution->tolerance > 0 || proven.bound == solution->bound);
        assert_true(proven.bound <= mtf_layout_problem_evaluate(problem, planted).cost);
        note_words(mtf_certificate_text(certificate));
    }
    for (gsize k = 0; k < G_N_ELEMENTS(words); k++)
        if (!seen[k])
            fail_msg("no certificate says \"%s\"", words[k]);
}
