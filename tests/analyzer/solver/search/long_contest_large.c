// SPDX-License-Identifier: GPL-3.0-or-later
/* Large problems of the contest's family in 30 seconds of two processors: none ends far from its bound. */
#include "tests/support/cmocka.h"

#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/contest_problems.h"

#include <time.h>

#define SECONDS 30
#define MOST_GAP 0.05

typedef struct {
    const char *name;
    MtfContestShape shape;
} Case;

static const Case cases[] = {
    { "narrow and tight", { 20000, 12, 0.7, 0.05, 1.02, 20000, 2000, 100000, 0 } },
    { "wide", { 10000, 15, 0, 0, 1.1, 10000, 1500, 100000, 0 } },
    { "a long chain", { 30000, 10, 0.9, 0.3, 1.1, 30000, 10, 100000, 0 } },
    { "many intervals", { 15000, 10, 0.4, 0.1, 1.05, 15000, 3000, 100000, 0 } },
    { "a wide core at one time", { 5000, 20, 0, 0, 1.05, 1, 1, 100000, 0 } },
};

static MtfLayoutSolution *solve_within(const MtfLayoutProblem *problem, double seconds) {
    MtfSearchControl control;
    mtf_search_control_init(&control, seconds);
    MtfSolveOptions options = { .control = &control, .threads = 2, .gap = MOST_GAP };
    return mtf_layout_solve(problem, &options, NULL, NULL);
}

/* Beside other programs it is asked again with twice the time until it has had what two processors give. */
TEST(no_shape_ends_far_from_its_bound) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)i + 7);
        g_autofree int *planted = g_new(int, cases[i].shape.nodes);
        g_autoptr(MtfLayoutProblem) problem =
            mtf_test_contest_problem(&cases[i].shape, rand, planted);
        double gap = 1, had = 0;
        for (double seconds = SECONDS; gap > MOST_GAP && had < SECONDS; seconds *= 2) {
            clock_t begin = clock();
            g_autoptr(MtfLayoutSolution) solution = solve_within(problem, seconds);
            had = (double)(clock() - begin) / CLOCKS_PER_SEC;
            gap = solution != NULL ? solution->gap : 1;
        }
        if (gap > MOST_GAP)
            fail_msg("%s: a gap of %.1f %%", cases[i].name, 100 * gap);
    }
}
