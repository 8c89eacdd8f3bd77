// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/free_search.h"
#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "tests/support/cases/free_setup.h"

#include <string.h>

/* Limits that are tried, each a little lower, from what the cheapest layout needs. */
#define LIMITS 16
#define LOWER 0.95

static MtfGraph *tiny_graph_of(const MtfModelFamily *family) {
    MtfModelSettings settings = mtf_model_settings(mtf_model_preset_find(family, "tiny", NULL));
    g_autoptr(MtfGraph) forward = family->build(&settings, NULL);
    return mtf_training_graph(forward, NULL);
}

static MtfGraph *tiny_graph(void) {
    return tiny_graph_of(&mtf_model_transformer_lm);
}

static MtfFreeAnswer search(const MtfFreeSetup *setup, int64_t limit, int64_t tightened_work) {
    MtfFreeSearchOptions options = {
        .memory_limit = limit, .work = 20, .tightened_work = tightened_work, .gap = 0.001, .seed = 1
    };
    MtfFreeAnswer answer;
    assert_true(mtf_free_search(setup->problem, &options, &answer, NULL));
    return answer;
}

/* Where packing adds to what the problem knows, that is counted: a layout of few rounds fits as well, and what is proven
 * is of the problem as it was. */
TEST(few_rounds_under_a_tightened_limit_prove_the_same) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph(), "rows:4");
    MtfFreeAnswer whole = search(&setup, INT64_MAX, 0);
    int64_t limit = whole.arena_bytes;
    int tightened = 0;
    mtf_free_answer_clear(&whole);
    for (int i = 0; i < LIMITS && tightened == 0; i++) {
        limit = (int64_t)(LOWER * (double)limit);
        whole = search(&setup, limit, 0);
        MtfFreeAnswer brief = search(&setup, limit, 1);
        assert_int_equal(brief.bound, whole.bound);
        if (brief.layout != NULL) {
            assert_true(brief.arena_bytes <= limit);
            assert_true(brief.cost >= brief.bound);
            tightened += brief.tightenings > 0;
        }
        mtf_free_answer_clear(&whole);
        mtf_free_answer_clear(&brief);
    }
    assert_true(tightened > 0);
    mtf_free_setup_clear(&setup);
}

static int64_t modelled_peak(const MtfFreeSetup *setup, const MtfLayout *layout) {
    const MtfLayoutProblem *problem = mtf_free_problem_get(setup->problem);
    g_autofree int *choice = g_new(int, mtf_layout_problem_node_count(problem));
    assert_true(mtf_free_problem_choice(setup->problem, layout, choice));
    return (int64_t)mtf_layout_problem_evaluate(problem, choice).peak;
}

/* Where packing adds much and a byte of it is missing, the limit is lowered below what the solution needs by the
 * problem's own count at once: a byte lower it would be found again, time after time. */
TEST(a_lowered_limit_finds_no_solution_again) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph(), "rows:4");
    MtfFreeAnswer found = search(&setup, INT64_MAX, 0);
    int64_t limit = found.arena_bytes;
    int padded = 0;
    for (int i = 0; i < LIMITS && padded == 0 && found.layout != NULL; i++) {
        int64_t packed = found.arena_bytes - modelled_peak(&setup, found.layout);
        if (packed > MTF_FREE_TIGHTENINGS) {
            MtfFreeAnswer below = search(&setup, found.arena_bytes - 1, 0);
            padded += below.tightenings > 0;
            assert_true(below.tightenings < MTF_FREE_TIGHTENINGS);
            mtf_free_answer_clear(&below);
        }
        mtf_free_answer_clear(&found);
        limit = (int64_t)(LOWER * (double)limit);
        found = search(&setup, limit, 0);
    }
    assert_true(padded > 0);
    mtf_free_answer_clear(&found);
    mtf_free_setup_clear(&setup);
}

/* What one choice had beside what the problem counts is not what others would have: where it is counted as if, layouts
 * are left out that a search under a lower limit finds, and that fit under the higher one as well. */
TEST(a_higher_limit_finds_what_a_lower_one_does) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph_of(&mtf_model_unet), "rows:4");
    MtfFreeAnswer higher = search(&setup, INT64_MAX, 0);
    int64_t limit = higher.arena_bytes;
    int tightened = 0;
    while (higher.layout != NULL) {
        limit = (int64_t)(LOWER * (double)limit);
        MtfFreeAnswer lower = search(&setup, limit, 0);
        tightened += lower.layout != NULL && lower.tightenings > 0;
        if (lower.layout != NULL)
            assert_true((double)higher.cost <= 1.01 * (double)lower.cost);
        mtf_free_answer_clear(&higher);
        higher = lower;
    }
    assert_true(tightened > 1);
    mtf_free_answer_clear(&higher);
    mtf_free_setup_clear(&setup);
}

static MtfFreeAnswer search_from(const MtfFreeSetup *setup, int64_t limit, const MtfLayout *known) {
    g_autoptr(MtfIncumbents) incumbents = mtf_incumbents_new(setup->graph, &setup->pricer);
    mtf_incumbents_add(incumbents, "known", known);
    MtfFreeSearchOptions options = {
        .memory_limit = limit, .incumbents = incumbents, .work = 20, .gap = 0.001, .seed = 1
    };
    MtfFreeAnswer answer;
    assert_true(mtf_free_search(setup->problem, &options, &answer, NULL));
    return answer;
}

/* Where a search under a tightened limit found the answer, one that begins with it ends those that cannot better it: it
 * comes to less than a third as many solutions, and to no dearer answer. */
TEST(what_cannot_better_the_answer_is_given_up) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph_of(&mtf_model_unet), "rows:4");
    MtfFreeAnswer found = search(&setup, INT64_MAX, 0);
    int64_t limit = found.arena_bytes;
    int before = 0, after = 0;
    while (found.layout != NULL) {
        MtfFreeAnswer again = search_from(&setup, limit, found.layout);
        assert_non_null(again.layout);
        assert_true(again.cost <= found.cost && again.arena_bytes <= limit);
        before += found.tightenings;
        after += again.tightenings;
        mtf_free_answer_clear(&again);
        mtf_free_answer_clear(&found);
        limit = (int64_t)(LOWER * (double)limit);
        found = search(&setup, limit, 0);
    }
    assert_true(3 * after < before); /* 6 of 10 where they are not given up */
    mtf_free_answer_clear(&found);
    mtf_free_setup_clear(&setup);
}

static MtfFreeAnswer search_beside(const MtfFreeSetup *setup, double hopeless_seconds) {
    MtfFreeSearchOptions options = {
        .memory_limit = INT64_MAX, .work = 20, .gap = 0.001, .hopeless_seconds = hopeless_seconds
    };
    MtfFreeAnswer answer;
    assert_true(mtf_free_search(setup->problem, &options, &answer, NULL));
    return answer;
}

/* A solution of a longer step ends the search without a layout, and without a word on what would fit; one that is no
 * longer is found as ever. */
TEST(a_hopeless_solution_is_no_answer) {
    MtfFreeSetup setup;
    mtf_free_setup_init(&setup, tiny_graph(), "rows:4");
    MtfFreeAnswer found = search_beside(&setup, 0);
    assert_true(found.layout != NULL && !found.hopeless);
    MtfFreeAnswer as_long = search_beside(&setup, found.step_seconds);
    assert_true(as_long.layout != NULL && !as_long.hopeless);
    assert_int_equal(as_long.cost, found.cost);
    MtfFreeAnswer longer = search_beside(&setup, 0.5 * found.step_seconds);
    assert_true(longer.layout == NULL && longer.hopeless);
    assert_int_equal(longer.bound, found.bound);
    assert_int_equal(longer.limit_enough, 0);
    mtf_free_answer_clear(&found);
    mtf_free_answer_clear(&as_long);
    mtf_free_answer_clear(&longer);
    mtf_free_setup_clear(&setup);
}
