// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/serving/score_changes.h"

#define TOKENS 5

static GArray *tokens(const int *values, guint n) {
    GArray *array = g_array_new(FALSE, FALSE, sizeof(int));
    return g_array_append_vals(array, values, n);
}

/* Token 1 was said twice, token 4 once: 3 - 2 x 0.5 - 0.25 and 6 - 0.5 - 0.25; then token 0 gains 2, token 4 loses 100. */
TEST(what_was_said_is_less_likely_and_what_is_wanted_more) {
    double scores[TOKENS] = { 2, 3, 4, 5, 6 };
    const double wanted[TOKENS] = { 4, 1.75, 4, 5, -94.75 };
    bool marks[TOKENS] = { false };
    g_autoptr(GArray) said = tokens((const int[]){ 1, 4, 1 }, 3);
    g_autoptr(GArray) biases = g_array_new(FALSE, FALSE, sizeof(MtfTokenBias));
    const MtfTokenBias values[] = { { 0, 2 }, { 4, -100 } };
    g_array_append_vals(biases, values, 2);
    const MtfScoreChanges changes = { 0.25, 0.5, biases };
    mtf_score_changes_apply(&changes, said, scores, marks);
    for (int i = 0; i < TOKENS; i++) {
        assert_true(scores[i] == wanted[i]);
        assert_false(marks[i]);
    }
}

TEST(a_request_that_says_nothing_changes_nothing) {
    double scores[TOKENS] = { 2, 3, 4, 5, 6 };
    bool marks[TOKENS] = { false };
    g_autoptr(GArray) said = tokens((const int[]){ 1, 4, 1 }, 3);
    mtf_score_changes_apply(&(MtfScoreChanges){ 0 }, said, scores, marks);
    for (int i = 0; i < TOKENS; i++)
        assert_true(scores[i] == i + 2);
}
