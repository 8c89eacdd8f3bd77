// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_text.h"

#include <string.h>

/* Tokens of the prompt that may change how the first of the choice is spelled. */
#define LOOKED_BACK 8

static char *decode_first(const MtfCompletionText *t, guint n) {
    return mtf_model_text_decode(t->model, (const int *)(const void *)t->tokens->data, n);
}

void mtf_completion_text_init(MtfCompletionText *t, const MtfModelText *model, char **stops,
                              const GArray *prompt) {
    guint n = MIN(prompt->len, LOOKED_BACK);
    *t = (MtfCompletionText){ .model = model, .stops = stops, .prompt = n };
    t->tokens = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_vals(t->tokens, &g_array_index(prompt, int, prompt->len - n), n);
    t->text = g_string_new(NULL);
    g_autofree char *before = decode_first(t, n);
    t->base = strlen(before);
}

void mtf_completion_text_clear(MtfCompletionText *t) {
    g_clear_pointer(&t->tokens, g_array_unref);
    if (t->text != NULL)
        g_string_free(t->text, TRUE);
    t->text = NULL;
}

void mtf_completion_text_add(MtfCompletionText *t, int token) {
    g_array_append_val(t->tokens, token);
}

/* Where the first of the stops begins, or NULL. */
static const char *find_stop(const MtfCompletionText *t) {
    const char *first = NULL;
    for (char **stop = t->stops; *stop != NULL; stop++) {
        const char *found = strstr(t->text->str, *stop);
        if (found != NULL && (first == NULL || found < first))
            first = found;
    }
    return first;
}

/* A prompt that ended within a character may now say less than it did alone. */
void mtf_completion_text_update(MtfCompletionText *t) {
    g_autofree char *all = decode_first(t, t->tokens->len);
    gsize length = strlen(all);
    g_string_assign(t->text, all + MIN(t->base, length));
    const char *stop = find_stop(t);
    if (stop == NULL)
        return;
    t->stopped = true;
    g_string_truncate(t->text, (gsize)(stop - t->text->str));
}

/* Bytes at the end that are half a character, or the sign that a tokenizer puts for one. */
static gsize incomplete_bytes(const char *text, gsize length) {
    static const char sign[] = "\xef\xbf\xbd";
    gsize n = 0;
    while (length >= n + 3 && n < 9 && memcmp(text + length - n - 3, sign, 3) == 0)
        n += 3;
    if (n > 0)
        return n;
    for (n = 1; n <= 3 && n <= length; n++) {
        guchar byte = (guchar)text[length - n];
        if (byte < 0x80)
            return 0;
        if (byte >= 0xc0)
            return g_utf8_get_char_validated(text + length - n, (gssize)n) == (gunichar)-2 ? n : 0;
    }
    return 0;
}

/* The longest end of the text that begins one of the stops. */
static gsize possible_stop_bytes(const MtfCompletionText *t, gsize length) {
    gsize most = 0;
    for (char **stop = t->stops; *stop != NULL; stop++)
        for (gsize n = MIN(strlen(*stop) - 1, length); n > most; n--)
            if (memcmp(t->text->str + length - n, *stop, n) == 0)
                most = n;
    return most;
}

char *mtf_completion_text_say(MtfCompletionText *t, bool end) {
    gsize length = t->text->len;
    if (!end && !t->stopped) {
        length -= incomplete_bytes(t->text->str, length);
        length -= possible_stop_bytes(t, length);
    }
    if (length <= t->said)
        return g_strdup("");
    char *said = g_utf8_make_valid(t->text->str + t->said, (gssize)(length - t->said));
    t->said = length;
    return said;
}
