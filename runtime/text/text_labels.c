// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/text_labels.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

#define SPACES " "

/* What spaces divide, without empty parts. */
static GPtrArray *parts_of(const char *text) {
    GPtrArray *parts = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) all = g_strsplit(text, SPACES, -1);
    for (int i = 0; all[i] != NULL; i++)
        if (*all[i] != '\0')
            g_ptr_array_add(parts, g_strdup(all[i]));
    return parts;
}

static bool read_label(const MtfLabelsWanted *wanted, const char *said, GArray *labels,
                       GError **error) {
    gint64 number;
    if (!g_ascii_string_to_signed(said, 10, 0, wanted->classes - 1, &number, NULL))
        return mtf_input_error(error,
                               "\"%s\" before a tab is no label of this model, a number from 0 to "
                               "%" PRId64,
                               said, wanted->classes - 1);
    int label = (int)number;
    g_array_append_val(labels, label);
    return true;
}

bool mtf_labels_read(const MtfLabelsWanted *wanted, const char *said, const char *text,
                     GArray *labels, GError **error) {
    if (wanted->places == 1)
        return read_label(wanted, said, labels, error);
    g_autoptr(GPtrArray) numbers = parts_of(said), words = parts_of(text);
    for (guint i = 0; i < numbers->len; i++)
        if (!read_label(wanted, numbers->pdata[i], labels, error))
            return false;
    int64_t n = wanted->of_words ? words->len : wanted->places;
    return numbers->len == n ||
           mtf_input_error(error, "\"%s\" before a tab are %u labels, but %s %" PRId64, said,
                           numbers->len,
                           wanted->of_words ? "the words behind it are" : "this model wants", n);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void append(GArray *numbers, int number) {
    g_array_append_val(numbers, number);
}

/* The tokens of a word, with the space before it unless it is the first. */
static bool encode_word(const MtfPairText *text, const char *word, bool is_first, GArray *tokens,
                        GError **error) {
    g_autofree char *whole = g_strconcat(is_first ? "" : SPACES, word, NULL);
    if (text->tokenizer != NULL)
        return mtf_tokenizer_encode(text->tokenizer, whole, false, tokens, error);
    g_assert(*word != '\0');
    for (const char *byte = whole; *byte != '\0'; byte++)
        append(tokens, (unsigned char)*byte);
    return true;
}

/* What a tokenizer puts before and behind a text: what it makes of `word`, cut where that itself begins. */
static bool find_around(const MtfPairText *text, const char *word, GArray *before, GArray *behind,
                        GError **error) {
    g_autoptr(GArray) bare = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) whole = g_array_new(FALSE, FALSE, sizeof(int));
    if (text->tokenizer == NULL) {
        append(before, text->begins);
        return true;
    }
    if (!mtf_tokenizer_encode(text->tokenizer, word, false, bare, error) ||
        !mtf_tokenizer_encode(text->tokenizer, word, true, whole, error))
        return false;
    guint at = 0, size = sizeof(int);
    while (at + bare->len < whole->len &&
           memcmp(whole->data + at * size, bare->data, bare->len * size) != 0)
        at++;
    g_array_append_vals(before, whole->data, at);
    guint end = MIN(at + bare->len, whole->len);
    g_array_append_vals(behind, whole->data + end * size, whole->len - end);
    return true;
}

/* Tokens without a label up to the last one. */
static void fill_up(const GArray *tokens, GArray *labels) {
    while (labels->len < tokens->len)
        append(labels, MTF_NO_LABEL);
}

bool mtf_labelled_words_encode(const MtfPairText *text, const char *words, const GArray *of_words,
                               GArray *tokens, GArray *labels, GError **error) {
    g_autoptr(GPtrArray) each = parts_of(words);
    g_autoptr(GArray) behind = g_array_new(FALSE, FALSE, sizeof(int));
    if (!find_around(text, each->len > 0 ? each->pdata[0] : "", tokens, behind, error))
        return false;
    for (guint i = 0; i < each->len; i++) {
        guint first = tokens->len + (i > 0 && text->tokenizer == NULL);
        if (!encode_word(text, each->pdata[i], i == 0, tokens, error))
            return false;
        while (labels->len < MIN(first, tokens->len))
            append(labels, MTF_NO_LABEL);
        if (first < tokens->len)
            append(labels, g_array_index(of_words, int, i));
    }
    g_array_append_vals(tokens, behind->data, behind->len);
    fill_up(tokens, labels);
    return true;
}
