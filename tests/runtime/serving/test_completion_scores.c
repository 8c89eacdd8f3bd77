// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_scores.h"

#include "tests/support/cmocka.h"

#include <math.h>

/* Bytes; "a" has a share of 1/8, "b" of 2/8 and "c" of 5/8, the others of next to nothing. */
#define BYTES 100
static const MtfModelText bytes = { NULL, BYTES };

static GArray *places_of(const char *said, int likeliest) {
    double scores[BYTES];
    GArray *places = mtf_place_scores_new();
    for (int i = 0; i < BYTES; i++)
        scores[i] = -1000;
    scores['a'] = 7 + log(1);
    scores['b'] = 7 + log(2);
    scores['c'] = 7 + log(5);
    for (; *said != '\0'; said++)
        mtf_place_scores_append(places, &bytes, scores, BYTES, *said, likeliest);
    return places;
}

static const MtfPlaceScores *place(const GArray *places, guint i) {
    return &g_array_index(places, MtfPlaceScores, i);
}

TEST(scores_are_logarithms_of_shares) {
    g_autoptr(GArray) places = places_of("ab", 2);
    assert_true(fabs(place(places, 0)->said.logarithm - log(1.0 / 8)) < 1e-12);
    assert_true(fabs(place(places, 1)->said.logarithm - log(2.0 / 8)) < 1e-12);
    assert_string_equal(place(places, 1)->said.text, "b");
    assert_int_equal(place(places, 1)->offset, 1);
    assert_int_equal(place(places, 0)->n_likeliest, 2);
    assert_string_equal(place(places, 0)->likeliest[0].text, "c");
    assert_string_equal(place(places, 0)->likeliest[1].text, "b");
    assert_true(fabs(place(places, 0)->likeliest[0].logarithm - log(5.0 / 8)) < 1e-12);
}

/* Of equals the first come first, and no more than there are. */
TEST(equals_stand_in_their_order) {
    static const double scores[] = { 1, 3, 3, 1, 3 };
    g_autoptr(GArray) places = mtf_place_scores_new();
    mtf_place_scores_append(places, &(MtfModelText){ NULL, 1000 }, scores, 5, 2, 20);
    assert_int_equal(place(places, 0)->n_likeliest, 5);
    static const char *const order[] = { "1", "2", "4", "0", "3" };
    for (int i = 0; i < 5; i++)
        assert_string_equal(place(places, 0)->likeliest[i].text, order[i]);
}

/* What is certain has the logarithm 0; its place is the second, behind one character. */
TEST(both_forms_print_them) {
    static const double certain[] = { 5 };
    const MtfModelText numbers = { NULL, 1000 };
    g_autoptr(GArray) places = mtf_place_scores_new();
    for (int i = 0; i < 2; i++)
        mtf_place_scores_append(places, &numbers, certain, 1, 0, 1);
    cJSON *choice = cJSON_CreateObject();
    mtf_place_scores_add(choice, places, 1, false);
    g_autofree char *lists = cJSON_PrintUnformatted(choice);
    assert_string_equal(lists, "{\"logprobs\":{\"tokens\":[\"0\"],\"token_logprobs\":[0],"
                               "\"top_logprobs\":[{\"0\":0}],\"text_offset\":[1]}}");
    cJSON_DeleteItemFromObjectCaseSensitive(choice, "logprobs");
    mtf_place_scores_add(choice, places, 1, true);
    g_autofree char *tokens = cJSON_PrintUnformatted(choice);
    assert_string_equal(tokens,
                        "{\"logprobs\":{\"content\":[{\"token\":\"0\",\"logprob\":0,\"bytes\":[48],"
                        "\"top_logprobs\":[{\"token\":\"0\",\"logprob\":0,\"bytes\":[48]}]}]}}");
    cJSON_Delete(choice);
}
