// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/text_steps.h"

#include <string.h>

static void free_step(gpointer data) {
    MtfTextStep *step = data;
    if (step->regex != NULL)
        g_regex_unref(step->regex);
    g_free(step->text);
    if (step->bytes != NULL)
        g_bytes_unref(step->bytes);
    g_free(step);
}

GPtrArray *mtf_text_steps_new(void) {
    return g_ptr_array_new_with_free_func(free_step);
}

bool mtf_text_flag(const MtfJson *object, const char *key, bool standard) {
    MtfJson member;
    return mtf_json_find(object, key, &member) && cJSON_IsBool(member.node)
               ? cJSON_IsTrue(member.node)
               : standard;
}

char *mtf_text_string(const MtfJson *object, const char *key, const char *standard) {
    MtfJson member;
    bool there = mtf_json_find(object, key, &member) && cJSON_IsString(member.node);
    return g_strdup(there ? member.node->valuestring : standard);
}

bool mtf_text_is_space(gunichar c) {
    GUnicodeType type = g_unichar_type(c);
    return (c >= '\t' && c <= '\r') || c == 0x85 || type == G_UNICODE_SPACE_SEPARATOR ||
           type == G_UNICODE_LINE_SEPARATOR || type == G_UNICODE_PARAGRAPH_SEPARATOR;
}

/* What an escape is in PCRE, without brackets; NULL: the same. */
static const char *members_of(char escape) {
    return escape == 's' || escape == 'S' ? "\\t-\\r\\x{85}\\p{Z}"
           : escape == 'w' || escape == 'W'
               ? "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
               : NULL;
}

/* Appends the escape at `at`. A class cannot hold the complement of one, which stays PCRE's. */
static void append_escape(GString *out, const char *at, bool in_class) {
    const char *members = members_of(at[1]);
    bool complement = g_ascii_isupper(at[1]);
    if (members == NULL || (in_class && complement))
        g_string_append_len(out, at, at[1] != '\0' ? 2 : 1);
    else if (in_class)
        g_string_append(out, members);
    else
        g_string_append_printf(out, "[%s%s]", complement ? "^" : "", members);
}

/* Brackets inside of a class go: what they hold is of the class. */
GRegex *mtf_text_regex(const char *source, GError **error) {
    g_autoptr(GString) out = g_string_new(NULL);
    int depth = 0;
    for (const char *at = source; *at != '\0'; at++) {
        bool first = depth > 0 && (at[-1] == '[' || (at[-1] == '^' && at[-2] == '['));
        if (at[0] == '\\' && at[1] == 'C') {
            g_set_error(error, G_REGEX_ERROR, G_REGEX_ERROR_COMPILE,
                        "\\C, a byte of a character, is not supported");
            return NULL;
        }
        if (*at == '\\') {
            append_escape(out, at, depth > 0);
            at += at[1] != '\0';
            continue;
        }
        int before = depth;
        depth += *at == '[' && at[1] != ':' ? 1 : *at == ']' && depth > 0 && !first ? -1 : 0;
        if (MAX(before, depth) < 2 || before == depth)
            g_string_append_c(out, *at);
    }
    return g_regex_new(out->str, G_REGEX_OPTIMIZE, 0, error);
}

GRegex *mtf_text_pattern(const MtfJson *object, const char *key, GError **error) {
    MtfJson pattern, member;
    GError *cause = NULL;
    if (!mtf_json_get_object(object, key, &pattern, error))
        return NULL;
    g_autofree char *plain = mtf_text_string(&pattern, "String", NULL);
    g_autofree char *source =
        plain != NULL ? g_regex_escape_string(plain, -1) : mtf_text_string(&pattern, "Regex", NULL);
    if (source == NULL) {
        mtf_json_fail(&pattern, error, "\"String\" or \"Regex\" is expected here");
        return NULL;
    }
    GRegex *regex = mtf_text_regex(source, &cause);
    if (regex == NULL) {
        bool regular = mtf_json_find(&pattern, "Regex", &member);
        mtf_json_fail(regular ? &member : &pattern, error, "not a regular expression: %s",
                      cause->message);
        g_error_free(cause);
    }
    return regex;
}

static bool read_sequence(const MtfJson *object, const MtfTextStepKind *kinds, const char *what,
                          GPtrArray *steps, GError **error) {
    static const char *const keys[] = { "normalizers", "pretokenizers", "decoders" };
    MtfJson list, member;
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!mtf_json_find(object, keys[i], &list))
            continue;
        if (!mtf_json_array(&list, error))
            return false;
        for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member))
            if (!mtf_text_steps_read(&member, kinds, what, steps, error))
                return false;
        return true;
    }
    return mtf_json_fail(object, error, "a Sequence without its list");
}

bool mtf_text_steps_read(const MtfJson *object, const MtfTextStepKind *kinds, const char *what,
                         GPtrArray *steps, GError **error) {
    if (cJSON_IsNull(object->node))
        return true;
    MtfJson type;
    const char *name;
    if (!mtf_json_get(object, "type", &type, error) || !mtf_json_string(&type, &name, error))
        return false;
    if (strcmp(name, "Sequence") == 0)
        return read_sequence(object, kinds, what, steps, error);
    while (kinds->name != NULL && strcmp(kinds->name, name) != 0)
        kinds++;
    if (kinds->name == NULL)
        return mtf_json_fail(&type, error, "\"%s\" is not a supported %s", name, what);
    MtfTextStep *step = g_new0(MtfTextStep, 1);
    g_ptr_array_add(steps, step);
    return kinds->read(object, step, error);
}

/* ---- Bytes as text --------------------------------------------------------------------------- */

static bool goes_on(guint8 byte, guint8 least, guint8 most) {
    return byte >= least && byte <= most;
}

/* How many bytes at `at` are a character or the longest beginning of one, at least one; sets whether they are
 * whole. The second byte tells overlong forms, surrogates and what is beyond U+10FFFF. */
static gsize character_bytes(const guint8 *at, gsize length, bool *whole) {
    gsize wanted = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 1, n = 1;
    guint8 least = *at == 0xe0 ? 0xa0 : *at == 0xf0 ? 0x90 : 0x80;
    guint8 most = *at == 0xed ? 0x9f : *at == 0xf4 ? 0x8f : 0xbf;
    if (*at > 0xf4)
        wanted = 1;
    while (n < MIN(wanted, length) && goes_on(at[n], n == 1 ? least : 0x80, n == 1 ? most : 0xbf))
        n++;
    *whole = n == wanted && (wanted > 1 || (*at > 0 && *at < 0x80));
    return n;
}

char *mtf_text_valid(const char *bytes, gsize length) {
    GString *text = g_string_sized_new(length);
    bool whole;
    for (gsize at = 0, n; at < length; at += n) {
        n = character_bytes((const guint8 *)bytes + at, length - at, &whole);
        if (whole)
            g_string_append_len(text, bytes + at, (gssize)n);
        else
            g_string_append_unichar(text, 0xfffd);
    }
    return g_string_free(text, FALSE);
}

/* ---- Bytes as characters --------------------------------------------------------------------- */

static bool is_printable(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/* Character of each byte; the others are counted up from U+0100. */
static const gunichar *character_table(void) {
    static gunichar table[256];
    static gsize made;
    if (g_once_init_enter(&made)) {
        gunichar next = 0x100;
        for (int byte = 0; byte < 256; byte++)
            table[byte] = is_printable(byte) ? (gunichar)byte : next++;
        g_once_init_leave(&made, 1);
    }
    return table;
}

char *mtf_bytes_to_characters(const char *bytes) {
    GString *characters = g_string_new(NULL);
    for (; *bytes != '\0'; bytes++)
        g_string_append_unichar(characters, character_table()[(guint8)*bytes]);
    return g_string_free(characters, FALSE);
}

void mtf_characters_to_bytes(const char *characters, GString *bytes) {
    for (; *characters != '\0'; characters = g_utf8_next_char(characters)) {
        gunichar c = g_utf8_get_char(characters);
        int byte = 0;
        while (byte < 256 && character_table()[byte] != c)
            byte++;
        if (byte < 256)
            g_string_append_c(bytes, (char)byte);
        else
            g_string_append_unichar(bytes, c);
    }
}
