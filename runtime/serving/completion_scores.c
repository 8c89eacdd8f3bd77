// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_scores.h"

#include "layouts/base/json_writer.h"

#include <math.h>
#include <string.h>

static void clear_place(gpointer data) {
    MtfPlaceScores *place = data;
    g_free(place->said.text);
    for (int i = 0; i < place->n_likeliest; i++)
        g_free(place->likeliest[i].text);
}

GArray *mtf_place_scores_new(void) {
    GArray *places = g_array_new(FALSE, FALSE, sizeof(MtfPlaceScores));
    g_array_set_clear_func(places, clear_place);
    return places;
}

/* log sum exp(score) */
static double logarithm_of_sum(const double *scores, int64_t n) {
    double highest = scores[0];
    for (int64_t i = 1; i < n; i++)
        highest = fmax(highest, scores[i]);
    double sum = exp(scores[0] - highest);
    for (int64_t i = 1; i < n; i++)
        sum += exp(scores[i] - highest);
    return highest + log(sum);
}

/* The `most` tokens of the highest scores, descending. */
static int find_highest(const double *scores, int64_t n, int most, int *highest) {
    int found = 0;
    for (int64_t i = 0; i < n && most > 0; i++) {
        int at = found;
        while (at > 0 && scores[i] > scores[highest[at - 1]])
            at--;
        if (at == most)
            continue;
        found = MIN(found + 1, most);
        memmove(highest + at + 1, highest + at, sizeof *highest * (size_t)(found - 1 - at));
        highest[at] = (int)i;
    }
    return found;
}

static glong characters_of(const char *text) {
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return g_utf8_strlen(valid, -1);
}

void mtf_place_scores_append(GArray *places, const MtfModelText *model, const double *scores,
                             int64_t n, int token, int likeliest) {
    int highest[MTF_MAX_LIKELIEST];
    double all = scores != NULL ? logarithm_of_sum(scores, n) : NAN;
    MtfPlaceScores place = { .said = { mtf_model_text_decode(model, &token, 1),
                                       scores != NULL ? scores[token] - all : NAN } };
    if (scores != NULL)
        place.n_likeliest = find_highest(scores, n, MIN(likeliest, MTF_MAX_LIKELIEST), highest);
    for (int i = 0; i < place.n_likeliest; i++)
        place.likeliest[i] = (MtfTokenScore){ mtf_model_text_decode(model, &highest[i], 1),
                                              scores[highest[i]] - all };
    if (places->len > 0) {
        const MtfPlaceScores *before = &g_array_index(places, MtfPlaceScores, places->len - 1);
        place.offset = before->offset + characters_of(before->said.text);
    }
    g_array_append_val(places, place);
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void add_text(cJSON *list, const char *text) {
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    cJSON_AddItemToArray(list, cJSON_CreateString(valid));
}

/* Tokens, their logarithms, and the likeliest by what they say. */
static void add_lists(cJSON *choice, const GArray *places, guint first) {
    cJSON *node = cJSON_AddObjectToObject(choice, "logprobs");
    cJSON *tokens = cJSON_AddArrayToObject(node, "tokens");
    cJSON *logarithms = cJSON_AddArrayToObject(node, "token_logprobs");
    cJSON *tops = cJSON_AddArrayToObject(node, "top_logprobs");
    cJSON *offsets = cJSON_AddArrayToObject(node, "text_offset");
    for (guint i = first; i < places->len; i++) {
        const MtfPlaceScores *place = &g_array_index(places, MtfPlaceScores, i);
        cJSON *top = cJSON_CreateObject();
        add_text(tokens, place->said.text);
        bool known = !isnan(place->said.logarithm);
        cJSON_AddItemToArray(logarithms, known ? mtf_json_new_number(place->said.logarithm)
                                               : cJSON_CreateNull());
        cJSON_AddItemToArray(offsets, mtf_json_new_integer(place->offset));
        cJSON_AddItemToArray(tops, top);
        for (int k = 0; k < place->n_likeliest; k++) {
            g_autofree char *valid = g_utf8_make_valid(place->likeliest[k].text, -1);
            if (cJSON_GetObjectItemCaseSensitive(top, valid) == NULL)
                mtf_json_add_number(top, valid, place->likeliest[k].logarithm);
        }
    }
}

static cJSON *new_token(const MtfTokenScore *score) {
    cJSON *node = cJSON_CreateObject();
    g_autofree char *valid = g_utf8_make_valid(score->text, -1);
    cJSON_AddStringToObject(node, "token", valid);
    mtf_json_add_number(node, "logprob", score->logarithm);
    cJSON *bytes = cJSON_AddArrayToObject(node, "bytes");
    for (const char *byte = score->text; *byte != '\0'; byte++)
        cJSON_AddItemToArray(bytes, mtf_json_new_integer((unsigned char)*byte));
    return node;
}

/* An object a token, which has the likeliest. */
static void add_tokens(cJSON *choice, const GArray *places, guint first) {
    cJSON *node = cJSON_AddObjectToObject(choice, "logprobs");
    cJSON *content = cJSON_AddArrayToObject(node, "content");
    for (guint i = first; i < places->len; i++) {
        const MtfPlaceScores *place = &g_array_index(places, MtfPlaceScores, i);
        cJSON *token = new_token(&place->said);
        cJSON *tops = cJSON_AddArrayToObject(token, "top_logprobs");
        cJSON_AddItemToArray(content, token);
        for (int k = 0; k < place->n_likeliest; k++)
            cJSON_AddItemToArray(tops, new_token(&place->likeliest[k]));
    }
}

void mtf_place_scores_add(cJSON *choice, const GArray *places, guint first, bool chat) {
    if (chat)
        add_tokens(choice, places, first);
    else
        add_lists(choice, places, first);
}
