// SPDX-License-Identifier: GPL-3.0-or-later
/* Text to text. */
#include "runtime/text/text_steps.h"

#include <string.h>

/* What a character becomes; returns false to leave it out. */
typedef bool (*Rewrite)(gunichar *c);

static char *rewrite(const char *text, Rewrite rule) {
    GString *out = g_string_sized_new(strlen(text));
    for (; *text != '\0'; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (rule(&c))
            g_string_append_unichar(out, c);
    }
    return g_string_free(out, FALSE);
}

static char *normal_form(const MtfTextStep *step, const char *text) {
    return g_utf8_normalize(text, -1, (GNormalizeMode)step->mode);
}

static bool read_form(MtfTextStep *step, GNormalizeMode mode) {
    step->normalize = normal_form;
    step->mode = (int)mode;
    return true;
}

static bool read_nfc(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    return read_form(step, G_NORMALIZE_NFC);
}

static bool read_nfd(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    return read_form(step, G_NORMALIZE_NFD);
}

static bool read_nfkc(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    return read_form(step, G_NORMALIZE_NFKC);
}

static bool read_nfkd(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    return read_form(step, G_NORMALIZE_NFKD);
}

/* Numbers and letters in circles have small forms too, but are no letters to GLib. */
static gunichar small_form(gunichar c) {
    return c >= 0x2160 && c <= 0x216f   ? c + 16
           : c >= 0x24b6 && c <= 0x24cf ? c + 26
                                        : g_unichar_tolower(c);
}

/* Character by character, in no locale: sigma has one small form. */
static char *lower(const MtfTextStep *step, const char *text) {
    GString *out = g_string_sized_new(strlen(text));
    (void)step;
    for (; *text != '\0'; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (c == 0x130)
            g_string_append(out, "i\314\207");
        else
            g_string_append_unichar(out, small_form(c));
    }
    return g_string_free(out, FALSE);
}

static bool read_lower(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->normalize = lower;
    return true;
}

static bool is_no_accent(gunichar *c) {
    return g_unichar_type(*c) != G_UNICODE_NON_SPACING_MARK;
}

static bool is_no_mark(gunichar *c) {
    return !g_unichar_ismark(*c);
}

/* Every mark, where BERT's normalizer leaves those that take room. */
static char *strip_accents(const MtfTextStep *step, const char *text) {
    (void)step;
    return rewrite(text, is_no_mark);
}

static bool read_accents(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->normalize = strip_accents;
    return true;
}

static char *replace(const MtfTextStep *step, const char *text) {
    return g_regex_replace_literal(step->regex, text, -1, 0, step->text, 0, NULL);
}

static bool read_replace(const MtfJson *object, MtfTextStep *step, GError **error) {
    step->normalize = replace;
    step->text = mtf_text_string(object, "content", "");
    step->regex = mtf_text_pattern(object, "pattern", error);
    return step->regex != NULL;
}

static char *prepend(const MtfTextStep *step, const char *text) {
    return *text == '\0' ? g_strdup(text) : g_strconcat(step->text, text, NULL);
}

static bool read_prepend(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    step->normalize = prepend;
    step->text = mtf_text_string(object, "prepend", "");
    return true;
}

enum { LEFT, RIGHT };

static char *strip(const MtfTextStep *step, const char *text) {
    const char *end = text + strlen(text);
    while (step->flags[LEFT] && *text != '\0' && mtf_text_is_space(g_utf8_get_char(text)))
        text = g_utf8_next_char(text);
    while (step->flags[RIGHT] && end > text) {
        const char *last = g_utf8_prev_char(end);
        if (!mtf_text_is_space(g_utf8_get_char(last)))
            break;
        end = last;
    }
    return g_strndup(text, (gsize)(end - text));
}

static bool read_strip(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    step->normalize = strip;
    step->flags[LEFT] = mtf_text_flag(object, "strip_left", true);
    step->flags[RIGHT] = mtf_text_flag(object, "strip_right", true);
    return true;
}

/* ---- BERT's ---------------------------------------------------------------------------------- */

enum { CLEAN, CHINESE, ACCENTS, LOWERCASE };

static bool is_clean(gunichar *c) {
    GUnicodeType type = g_unichar_type(*c);
    if (*c == '\t' || *c == '\n' || *c == '\r' || type == G_UNICODE_SPACE_SEPARATOR) {
        *c = ' ';
        return true;
    }
    return *c != 0xfffd && type != G_UNICODE_CONTROL && type != G_UNICODE_FORMAT &&
           type != G_UNICODE_PRIVATE_USE && type != G_UNICODE_SURROGATE;
}

static bool is_chinese(gunichar c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static char *space_chinese(const char *text) {
    GString *out = g_string_new(NULL);
    for (; *text != '\0'; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (is_chinese(c))
            g_string_append_c(out, ' ');
        g_string_append_unichar(out, c);
        if (is_chinese(c))
            g_string_append_c(out, ' ');
    }
    return g_string_free(out, FALSE);
}

static void become(char **text, char *next) {
    g_free(*text);
    *text = next;
}

static char *bert(const MtfTextStep *step, const char *text) {
    char *out = g_strdup(text);
    if (step->flags[CLEAN])
        become(&out, rewrite(out, is_clean));
    if (step->flags[CHINESE])
        become(&out, space_chinese(out));
    if (step->flags[ACCENTS]) {
        become(&out, g_utf8_normalize(out, -1, G_NORMALIZE_NFD));
        become(&out, rewrite(out, is_no_accent));
    }
    if (step->flags[LOWERCASE])
        become(&out, lower(step, out));
    return out;
}

/* Accents go with the lower case unless the file says otherwise. */
static bool read_bert(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    step->normalize = bert;
    step->flags[CLEAN] = mtf_text_flag(object, "clean_text", true);
    step->flags[CHINESE] = mtf_text_flag(object, "handle_chinese_chars", true);
    step->flags[LOWERCASE] = mtf_text_flag(object, "lowercase", true);
    step->flags[ACCENTS] = mtf_text_flag(object, "strip_accents", step->flags[LOWERCASE]);
    return true;
}

const MtfTextStepKind mtf_normalizers[] = {
    { "BertNormalizer", read_bert },
    { "Lowercase", read_lower },
    { "NFC", read_nfc },
    { "NFD", read_nfd },
    { "NFKC", read_nfkc },
    { "NFKD", read_nfkd },
    { "Precompiled", mtf_text_charsmap },
    { "Prepend", read_prepend },
    { "Replace", read_replace },
    { "Strip", read_strip },
    { "StripAccents", read_accents },
    { NULL, NULL },
};
