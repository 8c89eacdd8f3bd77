// SPDX-License-Identifier: GPL-3.0-or-later
/* Guesses against exhaustive search: none that holds is refuted, and what is found is a choice. */
#include "tests/support/cmocka.h"

#include "analyzer/solver/search/bounded_dive.h"
#include "tests/support/problems/layout_problems.h"

#define ROUNDS 2000
#define MAX_NODES 16
#define STEPS 20

/* A random problem that something fits, its optimum, and an ascent on its core. */
typedef struct {
    MtfLayoutProblem *problem;
    MtfInt128 optimum;
    MtfCore *core, *other; /* alike */
    MtfDual *dual, *twin;
} Setup;

static bool setup_init(Setup *setup, GRand *rand) {
    int choice[MAX_NODES];
    *setup = (Setup){ .problem = mtf_test_random_problem(rand) };
    if (!mtf_test_exhaustive_search(setup->problem, &setup->optimum, choice)) {
        mtf_layout_problem_free(setup->problem);
        return false;
    }
    setup->core = mtf_core_new(setup->problem);
    setup->other = mtf_core_new(setup->problem);
    setup->dual = mtf_dual_new(setup->core);
    setup->twin = mtf_dual_new(setup->other);
    for (int i = 0; i < STEPS; i++) {
        mtf_dual_step(setup->dual, choice);
        mtf_dual_step(setup->twin, choice);
    }
    return true;
}

static void setup_clear(Setup *setup) {
    mtf_dual_free(setup->dual);
    mtf_dual_free(setup->twin);
    mtf_core_free(setup->core);
    mtf_core_free(setup->other);
    mtf_layout_problem_free(setup->problem);
}

/* Around the optimum. */
static int64_t random_cutoff(GRand *rand, const Setup *setup) {
    return (int64_t)setup->optimum + g_rand_int_range(rand, -3, 4);
}

TEST(a_guess_is_refuted_or_fulfilled_only_where_that_is_true) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    int found = 0, refuted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Setup setup;
        int values[MAX_NODES];
        if (!setup_init(&setup, rand))
            continue;
        MtfGuess guess = { .cutoff = random_cutoff(rand, &setup),
                           .known = (int64_t)setup.optimum + g_rand_int_range(rand, 0, 20) };
        MtfGuessAnswer answer = mtf_guess_try(setup.dual, &guess, values);
        assert_true(!answer.refuted || guess.cutoff < (int64_t)setup.optimum);
        if (answer.found) {
            int choice[MAX_NODES];
            mtf_core_lift(setup.core, values, choice);
            MtfLayoutValue value = mtf_layout_problem_evaluate(setup.problem, choice);
            assert_true(mtf_layout_problem_allows(setup.problem, &value));
            assert_true(value.cost >= setup.optimum && value.cost <= guess.known);
        }
        found += answer.found;
        refuted += answer.refuted;
        setup_clear(&setup);
    }
    assert_true(found > ROUNDS / 10 && refuted > ROUNDS / 10);
}

TEST(the_ascent_goes_on_as_if_nothing_had_been_guessed) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    for (int round = 0; round < ROUNDS / 4; round++) {
        Setup setup;
        int values[MAX_NODES], left[MAX_NODES], right[MAX_NODES];
        if (!setup_init(&setup, rand))
            continue;
        MtfGuess guess = { .cutoff = random_cutoff(rand, &setup), .known = INT64_MAX / 2 };
        mtf_guess_try(setup.dual, &guess, values);
        for (int i = 0; i < STEPS; i++) {
            assert_int_equal(mtf_dual_step(setup.dual, left), mtf_dual_step(setup.twin, right));
            assert_true(mtf_dual_bound(setup.dual) <= mtf_dual_bound(setup.twin) &&
                        mtf_dual_bound(setup.dual) >= mtf_dual_bound(setup.twin));
        }
        for (int v = 0; v < setup.core->node_count; v++)
            assert_int_equal(left[v], right[v]);
        setup_clear(&setup);
    }
}
