// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Problems of the contest's family in shapes that its four instances do not have. */
#include "tests/support/cmocka.h"

#include "analyzer/solver/search/layout_solve.h"
#include "tests/support/problems/contest_problems.h"

#include <string.h>
#include <time.h>

#define MANY 4000

typedef struct {
    const char *name;
    MtfContestShape shape;
} Case;

static const Case cases[] = {
    { "like the contest's", { 3000, 12, 0.7, 0.05, 1.1, 3000, 400, 100000, 0 } },
    { "nothing impossible", { 2000, 10, 0, 0, 1.1, 2000, 300, 100000, 0 } },
    { "much impossible", { 2000, 12, 0.3, 0.6, 1.1, 2000, 300, 100000, 0 } },
    { "tight", { 2000, 10, 0.5, 0.1, 1.02, 2000, 300, 100000, 0 } },
    { "as tight as can be", { 1000, 8, 0.5, 0.1, 1, 1000, 200, 100000, 0 } },
    { "one time point", { 2000, 10, 0.5, 0.1, 1.05, 1, 1, 100000, 0 } },
    { "one clique", { MANY, 8, 0.5, 0.1, 1.05, 10, 10, 100000, 0 } },
    { "ties everywhere", { 2000, 10, 0.5, 0.1, 1.05, 2000, 300, 4, 3 } },
    { "huge costs", { 1500, 10, 0.5, 0.1, 1.05, 1500, 300, INT64_C(1) << 53, 0 } },
    { "no limit", { MANY, 10, 0.5, 0.1, 0, 4000, 300, 100000, 0 } },
    { "many strategies", { 6000, 20, 0, 0, 1.1, 6000, 1000, 1000000, 0 } },
    { "much room", { 2000, 10, 0.5, 0.1, 50, 2000, 300, 100000, 0 } },
};

static MtfLayoutSolution *solve(const Case *item, const MtfLayoutProblem *problem,
                                const MtfSolveOptions *options) {
    GError *error = NULL;
    MtfLayoutSolution *solution = mtf_layout_solve(problem, options, NULL, &error);
    if (solution == NULL)
        fail_msg("%s: %s", item->name, error->message);
    return solution;
}

/* A legal choice at the cost told, no dearer than the bound allows. */
static void check(const MtfLayoutProblem *problem, const MtfLayoutSolution *solution,
                  MtfInt128 planted) {
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, solution->choice);
    assert_true(mtf_layout_problem_allows(problem, &value));
    assert_true(value.cost == solution->cost);
    assert_true(solution->bound <= solution->cost && solution->bound <= planted);
}

static MtfLayoutProblem *draw(const Case *item, guint32 seed, MtfInt128 *planted) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autofree int *choice = g_new(int, item->shape.nodes);
    MtfLayoutProblem *problem = mtf_test_contest_problem(&item->shape, rand, choice);
    *planted = mtf_layout_problem_evaluate(problem, choice).cost;
    return problem;
}

/* Searches for so many seconds, in which two threads may have two processors, and a little more. NULL where
 * nothing as good as the planted choice is found. */
static MtfLayoutSolution *solve_within(const MtfLayoutProblem *problem, double seconds,
                                       MtfInt128 planted) {
    MtfSearchControl control;
    mtf_search_control_init(&control, seconds);
    MtfSolveOptions options = { .control = &control, .threads = 2 };
    clock_t begin = clock();
    g_autoptr(MtfLayoutSolution) solution = mtf_layout_solve(problem, &options, NULL, NULL);
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 2 * seconds + 1);
    return solution != NULL && solution->cost <= planted ? g_steal_pointer(&solution) : NULL;
}

/* One second is enough where it is the search's own: beside other programs it is asked again with twice
 * the time until it has had it, and as much again. */
TEST(every_shape_is_solved_in_the_time_asked) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfInt128 planted;
        g_autoptr(MtfLayoutProblem) problem = draw(&cases[i], (guint32)i + 1, &planted);
        g_autoptr(MtfLayoutSolution) solution = NULL;
        double had = 0;
        for (double seconds = 1; solution == NULL && had < 2 && seconds <= 64; seconds *= 2) {
            clock_t begin = clock();
            solution = solve_within(problem, seconds, planted);
            had = (double)(clock() - begin) / CLOCKS_PER_SEC;
        }
        if (solution == NULL)
            fail_msg("%s: nothing as good as what was planted", cases[i].name);
        check(problem, solution, planted);
    }
}

TEST(the_same_work_gives_the_same_answer_on_one_thread_or_two) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfInt128 planted;
        g_autoptr(MtfLayoutProblem) problem = draw(&cases[i], (guint32)i + 50, &planted);
        MtfSolveOptions options = { .work = 3, .threads = 1, .seed = 3 };
        g_autoptr(MtfLayoutSolution) one = solve(&cases[i], problem, &options);
        options.threads = 2;
        g_autoptr(MtfLayoutSolution) two = solve(&cases[i], problem, &options);
        check(problem, one, planted);
        assert_true(one->bound == two->bound);
        assert_memory_equal(one->choice, two->choice,
                            (gsize)cases[i].shape.nodes * sizeof *one->choice);
    }
}

/* Where the gap stays wide, rounds that come to nothing are spent near the best choice; on one thread as on
 * two. */
TEST(limited_work_looks_near_the_best_choice) {
    const Case wide = { "wide", { 2500, 20, 0.2, 0.1, 1.05, 2500, 300, 100000, 0 } };
    MtfInt128 planted;
    g_autoptr(MtfLayoutProblem) problem = draw(&wide, 7, &planted);
    MtfSolveOptions options = { .work = 20, .threads = 1, .without = MTF_METHOD_NEIGHBOURHOODS };
    g_autoptr(MtfLayoutSolution) far = solve(&wide, problem, &options);
    options.without = 0;
    g_autoptr(MtfLayoutSolution) near = solve(&wide, problem, &options);
    options.threads = 2;
    g_autoptr(MtfLayoutSolution) again = solve(&wide, problem, &options);
    check(problem, near, planted);
    assert_true(near->cost < far->cost);
    assert_memory_equal(near->choice, again->choice,
                        (gsize)wide.shape.nodes * sizeof *near->choice);
}
