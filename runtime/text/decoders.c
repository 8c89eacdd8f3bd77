// SPDX-License-Identifier: GPL-3.0-or-later
/* Tokens to text: each step changes the list of tokens, which is put together at the end. */
#include "runtime/text/text_steps.h"

#include <string.h>

static void become(gpointer *token, char *next) {
    g_free(*token);
    *token = next;
}

/* Bytes of all tokens at once, for characters may lie across tokens. */
static void decode_bytes(const MtfTextStep *step, GPtrArray *tokens) {
    g_autoptr(GString) bytes = g_string_new(NULL);
    (void)step;
    for (guint i = 0; i < tokens->len; i++)
        mtf_characters_to_bytes(tokens->pdata[i], bytes);
    g_ptr_array_set_size(tokens, 0);
    g_ptr_array_add(tokens, mtf_text_valid(bytes->str, bytes->len));
}

static bool read_bytes(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->decode = decode_bytes;
    return true;
}

/* Replaces every `from`; free with g_free. */
static char *substitute(const char *text, const char *from, const char *to) {
    g_auto(GStrv) parts = g_strsplit(text, from, -1);
    return g_strjoinv(to, parts);
}

/* Before punctuation, and within contractions, there is no space. */
static char *clean_up(const char *text) {
    static const char *const pairs[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },    { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },  { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" }
    };
    char *clean = g_strdup(text);
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        char *next = substitute(clean, pairs[i][0], pairs[i][1]);
        g_free(clean);
        clean = next;
    }
    return clean;
}

static void decode_words(const MtfTextStep *step, GPtrArray *tokens) {
    for (guint i = 0; i < tokens->len; i++) {
        const char *token = tokens->pdata[i];
        bool inner = g_str_has_prefix(token, step->text);
        if (i > 0)
            become(&tokens->pdata[i],
                   inner ? g_strdup(token + strlen(step->text)) : g_strconcat(" ", token, NULL));
        if (step->flags[0])
            become(&tokens->pdata[i], clean_up(tokens->pdata[i]));
    }
}

static bool read_words(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    step->decode = decode_words;
    step->text = mtf_text_string(object, "prefix", "##");
    step->flags[0] = mtf_text_flag(object, "cleanup", true);
    return true;
}

/* Marks become spaces, but for the first where one was put in. */
static void decode_marked(const MtfTextStep *step, GPtrArray *tokens) {
    for (guint i = 0; i < tokens->len; i++) {
        const char *token = tokens->pdata[i];
        bool put = i == 0 && step->flags[0] && g_str_has_prefix(token, step->text);
        become(&tokens->pdata[i],
               substitute(put ? token + strlen(step->text) : token, step->text, " "));
    }
}

static bool read_marked(const MtfJson *object, MtfTextStep *step, GError **error) {
    g_autofree char *scheme =
        mtf_text_string(object, "prepend_scheme",
                        mtf_text_flag(object, "add_prefix_space", true) ? "always" : "never");
    step->decode = decode_marked;
    step->text = mtf_text_string(object, "replacement", "\342\226\201");
    step->flags[0] = strcmp(scheme, "never") != 0;
    return *step->text != '\0' || mtf_json_fail(object, error, "its \"replacement\" is empty");
}

/* "<0x41>" is a byte; or -1. */
static int byte_of(const char *token) {
    bool byte = strlen(token) == 6 && g_str_has_prefix(token, "<0x") && token[5] == '>' &&
                g_ascii_isxdigit(token[3]) && g_ascii_isxdigit(token[4]);
    return byte ? g_ascii_xdigit_value(token[3]) * 16 + g_ascii_xdigit_value(token[4]) : -1;
}

/* Runs of bytes that are no text become a U+FFFD each. */
static void end_run(GString *run, GPtrArray *tokens) {
    if (run->len == 0)
        return;
    GString *text = g_string_new(NULL);
    if (g_utf8_validate(run->str, (gssize)run->len, NULL))
        g_string_append_len(text, run->str, (gssize)run->len);
    else
        for (gsize i = 0; i < run->len; i++)
            g_string_append_unichar(text, 0xfffd);
    g_ptr_array_add(tokens, g_string_free(text, FALSE));
    g_string_truncate(run, 0);
}

static void decode_fallback(const MtfTextStep *step, GPtrArray *tokens) {
    g_autoptr(GPtrArray) out = g_ptr_array_new();
    g_autoptr(GString) run = g_string_new(NULL);
    (void)step;
    for (guint i = 0; i < tokens->len; i++) {
        int byte = byte_of(tokens->pdata[i]);
        if (byte >= 0) {
            g_string_append_c(run, (char)byte);
            continue;
        }
        end_run(run, out);
        g_ptr_array_add(out, g_strdup(tokens->pdata[i]));
    }
    end_run(run, out);
    g_ptr_array_set_size(tokens, 0);
    g_ptr_array_extend_and_steal(tokens, g_steal_pointer(&out));
}

static bool read_fallback(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->decode = decode_fallback;
    return true;
}

static void fuse(const MtfTextStep *step, GPtrArray *tokens) {
    GString *all = g_string_new(NULL);
    (void)step;
    for (guint i = 0; i < tokens->len; i++)
        g_string_append(all, tokens->pdata[i]);
    g_ptr_array_set_size(tokens, 0);
    g_ptr_array_add(tokens, g_string_free(all, FALSE));
}

static bool read_fuse(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->decode = fuse;
    return true;
}

/* Strips a character from both ends of each token, up to the counts that the step gives. */
static void strip(const MtfTextStep *step, GPtrArray *tokens) {
    gsize n = strlen(step->text);
    for (guint i = 0; i < tokens->len; i++) {
        const char *from = tokens->pdata[i], *to = from + strlen(from);
        for (int k = 0; k < (step->mode >> 16) && g_str_has_prefix(from, step->text); k++)
            from += n;
        for (int k = 0; k < (step->mode & 0xffff); k++)
            if (to - from >= (gssize)n && memcmp(to - n, step->text, n) == 0)
                to -= n;
        become(&tokens->pdata[i], g_strndup(from, (gsize)(to - from)));
    }
}

static bool read_strip(const MtfJson *object, MtfTextStep *step, GError **error) {
    static const char *const keys[] = { "start", "stop" };
    int64_t counts[2] = { 0, 0 };
    step->decode = strip;
    step->text = mtf_text_string(object, "content", " ");
    for (int i = 0; i < 2; i++)
        if (!mtf_json_optional_integer(object, keys[i], 0, 1000, &counts[i], error))
            return false;
    step->mode = (int)(counts[0] << 16 | counts[1]);
    return *step->text != '\0' || mtf_json_fail(object, error, "its \"content\" is empty");
}

static void decode_replace(const MtfTextStep *step, GPtrArray *tokens) {
    for (guint i = 0; i < tokens->len; i++) {
        char *next =
            g_regex_replace_literal(step->regex, tokens->pdata[i], -1, 0, step->text, 0, NULL);
        if (next != NULL)
            become(&tokens->pdata[i], next);
    }
}

static bool read_replace(const MtfJson *object, MtfTextStep *step, GError **error) {
    step->decode = decode_replace;
    step->text = mtf_text_string(object, "content", "");
    step->regex = mtf_text_pattern(object, "pattern", error);
    return step->regex != NULL;
}

/* The end of a word is a space, but for the last. */
static void decode_suffix(const MtfTextStep *step, GPtrArray *tokens) {
    for (guint i = 0; i < tokens->len; i++)
        become(&tokens->pdata[i],
               substitute(tokens->pdata[i], step->text, i + 1 < tokens->len ? " " : ""));
}

static bool read_suffix(const MtfJson *object, MtfTextStep *step, GError **error) {
    step->decode = decode_suffix;
    step->text = mtf_text_string(object, "suffix", "</w>");
    return *step->text != '\0' || mtf_json_fail(object, error, "its \"suffix\" is empty");
}

const MtfTextStepKind mtf_decoders[] = {
    { "BPEDecoder", read_suffix }, { "ByteFallback", read_fallback }, { "ByteLevel", read_bytes },
    { "Fuse", read_fuse },         { "Metaspace", read_marked },      { "Replace", read_replace },
    { "Strip", read_strip },       { "WordPiece", read_words },       { NULL, NULL },
};
