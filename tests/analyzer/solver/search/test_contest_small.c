// SPDX-License-Identifier: GPL-3.0-or-later
/* Small problems of the contest's family, twenty of every shape, to their optimum: of eight nodes as exhaustive
 * search finds it, of two dozen as a certificate proves it to a reader that shares nothing with the solver. */
#include "tests/support/cmocka.h"

#include "analyzer/certificate/certificate_check.h"
#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/contest_problems.h"
#include "tests/support/problems/layout_problems.h"

#define SEEDS 20
#define SMALL 8
#define MIDDLE 24

typedef struct {
    const char *name;
    MtfContestShape shape; /* of MIDDLE nodes */
} Case;

static const Case cases[] = {
    { "narrow and tight", { MIDDLE, 5, 0.5, 0.1, 1.02, MIDDLE, 6, 1000, 0 } },
    { "wide", { MIDDLE, 5, 0, 0, 1.1, MIDDLE, MIDDLE, 1000, 0 } },
    { "a long chain", { MIDDLE, 4, 0.8, 0.3, 1.1, MIDDLE, 3, 1000, 0 } },
    { "many intervals", { MIDDLE, 5, 0.3, 0.1, 1.05, 1000, 200, 1000, 0 } },
    { "a wide core at one time", { MIDDLE, 4, 0, 0, 1.05, 1, 1, 1000, 0 } },
    { "memory in large pieces", { MIDDLE, 5, 0.2, 0.1, 1.1, MIDDLE, 8, 1000, 3 } },
};

static MtfLayoutProblem *draw(const Case *item, int nodes, guint32 seed) {
    MtfContestShape shape = item->shape;
    shape.nodes = nodes;
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    int planted[MIDDLE];
    return mtf_test_contest_problem(&shape, rand, planted);
}

static MtfLayoutSolution *solve(const Case *item, const MtfLayoutProblem *problem,
                                MtfCertificate *certificate, MtfSolveMethods without) {
    MtfSolveOptions options = { .certificate = certificate, .without = without };
    g_autoptr(GError) error = NULL;
    MtfLayoutSolution *solution = mtf_layout_solve(problem, &options, NULL, &error);
    if (solution == NULL)
        fail_msg("%s: %s", item->name, error->message);
    if (solution->bound != solution->cost || solution->tolerance > 0)
        fail_msg("%s: not proven to be optimal", item->name);
    return solution;
}

TEST(exhaustive_search_finds_nothing_better) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (guint32 seed = 0; seed < SEEDS; seed++) {
            g_autoptr(MtfLayoutProblem) problem = draw(&cases[i], SMALL, seed);
            MtfInt128 optimum = 0;
            int choice[SMALL];
            assert_true(mtf_test_exhaustive_search(problem, &optimum, choice));
            g_autoptr(MtfLayoutSolution) solution = solve(&cases[i], problem, NULL, 0);
            assert_true(solution->cost == optimum);
        }
}

TEST(a_certificate_proves_every_optimum) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (guint32 seed = 0; seed < SEEDS; seed++) {
            g_autoptr(MtfLayoutProblem) problem = draw(&cases[i], MIDDLE, 100 + seed);
            g_autoptr(MtfCertificate) certificate = mtf_certificate_new();
            g_autoptr(MtfLayoutSolution) solution = solve(&cases[i], problem, certificate, 0);
            MtfProven proven;
            g_autoptr(GError) error = NULL;
            if (!mtf_certificate_check(problem, mtf_certificate_text(certificate), &proven, &error))
                fail_msg("%s %u: %s", cases[i].name, seed, error->message);
            assert_true(proven.cost == solution->cost && proven.bound == solution->cost);
        }
}

/* Without any one method the others come to the same optimum. */
TEST(no_optimum_hangs_on_a_single_method) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (guint32 seed = 0; seed < SEEDS / 4; seed++) {
            g_autoptr(MtfLayoutProblem) problem = draw(&cases[i], MIDDLE, 200 + seed);
            g_autoptr(MtfLayoutSolution) all = solve(&cases[i], problem, NULL, 0);
            for (const MtfSolveMethod *method = mtf_solve_methods; method->name != NULL; method++) {
                MtfSolveMethods without = method->bit | MTF_METHOD_PROGRAM;
                g_autoptr(MtfLayoutSolution) other = solve(&cases[i], problem, NULL, without);
                assert_true(other->cost == all->cost);
            }
        }
}
