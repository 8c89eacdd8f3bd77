// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/pair_text.h"

#include "runtime/text/edge_tokens.h"

#define BYTES 256
#define BEGINS 2
#define ENDS 3

const MtfPairText mtf_pair_bytes = { .begins = BEGINS };

/* Where nothing names an end, it is what stands behind a text of nothing. */
static bool find_end(MtfPairText *text, GError **error) {
    if (text->ends->len > 0)
        return true;
    if (!mtf_tokenizer_encode(text->tokenizer, "", true, text->ends, error))
        return false;
    if (text->ends->len > 1)
        g_array_remove_range(text->ends, 0, text->ends->len - 1);
    return true;
}

bool mtf_pair_text_init(MtfPairText *text, const MtfTokenizer *tokenizer, const char *path,
                        GError **error) {
    *text = mtf_pair_bytes;
    text->tokenizer = tokenizer;
    if (tokenizer == NULL) {
        const int end = ENDS;
        text->ends = g_array_new(FALSE, FALSE, sizeof(int));
        g_array_append_val(text->ends, end);
        return true;
    }
    text->ends = mtf_end_tokens_read(path, error);
    return text->ends != NULL && find_end(text, error) &&
           mtf_start_token_read(path, &text->begins, error);
}

void mtf_pair_text_clear(MtfPairText *text) {
    g_clear_pointer(&text->ends, g_array_unref);
}

bool mtf_pair_text_encode(const MtfPairText *text, const char *words, GArray *tokens,
                          GError **error) {
    if (text->tokenizer != NULL)
        return mtf_tokenizer_encode(text->tokenizer, words, true, tokens, error);
    const int end = ENDS;
    for (; *words != '\0'; words++) {
        int byte = (unsigned char)*words;
        g_array_append_val(tokens, byte);
    }
    g_array_append_val(tokens, end);
    return true;
}

bool mtf_pair_text_is_end(const MtfPairText *text, int token) {
    for (guint i = 0; i < text->ends->len; i++)
        if (g_array_index(text->ends, int, i) == token)
            return true;
    return text->tokenizer == NULL && token >= BYTES;
}

char *mtf_pair_text_decode(const MtfPairText *text, const int *tokens, gsize n) {
    g_autofree char *words =
        text->tokenizer != NULL ? mtf_tokenizer_decode(text->tokenizer, tokens, n) : NULL;
    GString *line = g_string_new(words);
    for (gsize i = 0; i < n && words == NULL; i++)
        g_string_append_c(line, (char)tokens[i]);
    for (gsize i = 0; i < line->len; i++)
        if (g_ascii_iscntrl(line->str[i]))
            line->str[i] = ' ';
    return g_string_free(line, FALSE);
}
