// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/sampling.h"

#include "tests/support/cmocka.h"

#include <math.h>

/* Softmax of these at temperature 1 is 0.1, 0.4, 0.2, 0.3. */
static void four_scores(double scores[4]) {
    static const double parts[4] = { 0.1, 0.4, 0.2, 0.3 };
    for (int i = 0; i < 4; i++)
        scores[i] = log(parts[i]);
}

static int64_t draw(double temperature, int64_t top_k, double top_p, double share) {
    const MtfSampling sampling = { temperature, top_k, top_p };
    double scores[4];
    four_scores(scores);
    return mtf_sampling_draw(&sampling, scores, 4, share);
}

/* Parts end at 0.1, 0.5, 0.7, 1. */
TEST(a_share_falls_on_a_token) {
    assert_int_equal(draw(1, 0, 1, 0), 0);
    assert_int_equal(draw(1, 0, 1, 0.0999), 0);
    assert_int_equal(draw(1, 0, 1, 0.1001), 1);
    assert_int_equal(draw(1, 0, 1, 0.6999), 2);
    assert_int_equal(draw(1, 0, 1, 0.7001), 3);
    assert_int_equal(draw(1, 0, 1, 0.999999), 3);
}

/* Tokens 1 and 3 stay: 4/7 and 3/7. */
TEST(top_k_keeps_the_highest) {
    assert_int_equal(draw(1, 2, 1, 0), 1);
    assert_int_equal(draw(1, 2, 1, 0.5713), 1);
    assert_int_equal(draw(1, 2, 1, 0.5715), 3);
    assert_int_equal(draw(1, 1, 1, 0.99), 1);
    assert_int_equal(draw(1, 100, 1, 0.05), 0);
}

/* 0.4 + 0.3 is the first sum of at least 0.6; 0.4 alone is less. */
TEST(top_p_keeps_the_fewest_that_hold_it) {
    assert_int_equal(draw(1, 0, 0.6, 0.5713), 1);
    assert_int_equal(draw(1, 0, 0.6, 0.5715), 3);
    assert_int_equal(draw(1, 0, 0.39, 0.99), 1);
    assert_int_equal(draw(1, 0, 0.75, 0.999), 3);
    assert_int_equal(draw(1, 0, 0.75, 0.45), 2);
}

/* Of what top_k keeps: 4/7 alone holds 0.55. */
TEST(top_p_counts_among_the_top_k) {
    assert_int_equal(draw(1, 2, 0.55, 0.99), 1);
    assert_int_equal(draw(1, 2, 0.6, 0.99), 3);
}

TEST(temperature_0_is_the_highest) {
    assert_int_equal(draw(0, 0, 1, 0.99), 1);
    const double equal[3] = { 1, 2, 2 };
    const MtfSampling sampling = { 0, 0, 1 };
    assert_int_equal(mtf_sampling_draw(&sampling, equal, 3, 0.9), 1);
}

TEST(equal_scores_stay_by_their_order) {
    const double equal[3] = { 2, 2, 2 };
    const MtfSampling sampling = { 1, 2, 1 };
    assert_int_equal(mtf_sampling_draw(&sampling, equal, 3, 0.4999), 0);
    assert_int_equal(mtf_sampling_draw(&sampling, equal, 3, 0.5001), 1);
}

TEST(seeds_choices_and_numbers_draw_apart) {
    enum { TOKENS = 1000, DRAWS = 50 };
    double scores[TOKENS] = { 0 };
    const MtfSampling sampling = { 1, 0, 1 };
    int same_seed = 0, same_choice = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        int64_t first = mtf_sampling_draw_at(&sampling, scores, TOKENS, 1, 0, i);
        assert_int_equal(first, mtf_sampling_draw_at(&sampling, scores, TOKENS, 1, 0, i));
        same_seed += first == mtf_sampling_draw_at(&sampling, scores, TOKENS, 2, 0, i);
        same_choice += first == mtf_sampling_draw_at(&sampling, scores, TOKENS, 1, 1, i);
    }
    assert_true(same_seed < 5 && same_choice < 5);
}
