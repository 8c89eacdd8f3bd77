// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/template_tokens.h"

#include "layouts/base/error.h"

#include <stdbool.h>
#include <string.h>

typedef struct {
    const char *begin, *at;
    int line;
    GArray *tokens;
    GError **error;
} Lexer;

static void clear_token(gpointer data) {
    g_free(((MtfTemplateToken *)data)->text);
}

static void add(Lexer *l, MtfTokenKind kind, const char *text, gsize n) {
    MtfTemplateToken token = { kind, l->line, g_strndup(text, n) };
    g_array_append_val(l->tokens, token);
}

/* Goes on by n bytes. */
static void pass(Lexer *l, gsize n) {
    for (; n > 0; n--, l->at++)
        l->line += *l->at == '\n';
}

static bool fail(Lexer *l, const char *what) {
    return mtf_input_error(l->error, "line %d: %s", l->line, what);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static bool is_tag(const char *at) {
    return at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#');
}

/* Blanks at the end that begin a line. */
static gsize blanks_before(const Lexer *l, const char *text, gsize n) {
    gsize blanks = 0;
    while (blanks < n && (text[n - blanks - 1] == ' ' || text[n - blanks - 1] == '\t'))
        blanks++;
    bool begins = blanks < n ? text[n - blanks - 1] == '\n' : text == l->begin;
    return begins ? blanks : 0;
}

/* The text before a tag at `tag`, or before the template's end, less what the tag takes. */
static void add_text(Lexer *l, const char *tag) {
    gsize n = (gsize)(tag - l->at);
    if (is_tag(tag) && tag[2] == '-')
        while (n > 0 && g_ascii_isspace(l->at[n - 1]))
            n--;
    else if (is_tag(tag) && tag[1] != '{' && tag[2] != '+')
        n -= blanks_before(l, l->at, n);
    else if (*tag == '\0' && n > 0 && l->at[n - 1] == '\n')
        n--;
    if (n > 0)
        add(l, MTF_TOKEN_TEXT, l->at, n);
    pass(l, (gsize)(tag - l->at));
}

/* What follows the end of a tag: `-` takes all white space, a block the end of its line. */
static void pass_behind(Lexer *l, bool strips, bool block) {
    if (strips)
        while (g_ascii_isspace(*l->at))
            pass(l, 1);
    else if (block && *l->at == '\n')
        pass(l, 1);
    else if (block && l->at[0] == '\r' && l->at[1] == '\n')
        pass(l, 2);
}

static bool pass_comment(Lexer *l) {
    const char *end = strstr(l->at + 2, "#}");
    if (end == NULL)
        return fail(l, "a comment has no end");
    bool strips = end[-1] == '-' && end - 1 > l->at + 1;
    pass(l, (gsize)(end + 2 - l->at));
    pass_behind(l, strips, true);
    return true;
}

/* ---- Inside tags ----------------------------------------------------------------------------- */

static char unescaped(char c) {
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

static bool add_string(Lexer *l) {
    char quote = *l->at;
    g_autoptr(GString) text = g_string_new(NULL);
    const char *at = l->at + 1;
    for (; *at != '\0' && *at != quote; at++) {
        bool escape = *at == '\\' && at[1] != '\0';
        at += escape;
        if (escape && strchr("ntr\\'\"", *at) == NULL)
            g_string_append_c(text, '\\');
        g_string_append_c(text, escape ? unescaped(*at) : *at);
    }
    if (*at == '\0')
        return fail(l, "a text in quotes has no end");
    add(l, MTF_TOKEN_STRING, text->str, text->len);
    pass(l, (gsize)(at + 1 - l->at));
    return true;
}

static gsize word_length(const char *at) {
    gsize n = 0;
    while (g_ascii_isalnum(at[n]) || at[n] == '_')
        n++;
    return n;
}

static gsize number_length(const char *at) {
    gsize n = 0;
    while (g_ascii_isdigit(at[n]) || (at[n] == '.' && g_ascii_isdigit(at[n + 1])))
        n++;
    return n;
}

static gsize symbol_length(const char *at) {
    static const char *const longer[] = { "==", "!=", "<=", ">=", "//", "**" };
    for (gsize i = 0; i < G_N_ELEMENTS(longer); i++)
        if (strncmp(at, longer[i], 2) == 0)
            return 2;
    return *at != '\0' && strchr("+-*/%~<>=()[]{},.:|", *at) != NULL ? 1 : 0;
}

static bool add_word(Lexer *l) {
    bool number = g_ascii_isdigit(*l->at), name = g_ascii_isalpha(*l->at) || *l->at == '_';
    gsize n = number ? number_length(l->at) : name ? word_length(l->at) : symbol_length(l->at);
    if (*l->at == '"' || *l->at == '\'')
        return add_string(l);
    if (n == 0)
        return fail(l, *l->at == '\0' ? "a tag has no end" : "a character that no tag may have");
    add(l, number ? MTF_TOKEN_NUMBER : name ? MTF_TOKEN_NAME : MTF_TOKEN_SYMBOL, l->at, n);
    pass(l, n);
    return true;
}

static bool add_tag(Lexer *l) {
    bool block = l->at[1] == '%';
    const char *end = block ? "%}" : "}}";
    int depth = 0; /* of braces: {{ {"a": {}} }} */
    add(l, block ? MTF_TOKEN_BLOCK : MTF_TOKEN_PRINT, l->at, 2);
    pass(l, l->at[2] == '-' || (block && l->at[2] == '+') ? 3 : 2);
    for (;;) {
        while (g_ascii_isspace(*l->at))
            pass(l, 1);
        bool strips = *l->at == '-' || (block && *l->at == '+');
        if (depth == 0 && strncmp(l->at + strips, end, 2) == 0) {
            bool takes_all = *l->at == '-', keeps = *l->at == '+';
            add(l, MTF_TOKEN_END, l->at, 0);
            pass(l, strips ? 3 : 2);
            pass_behind(l, takes_all, block && !keeps);
            return true;
        }
        depth += (*l->at == '{') - (*l->at == '}');
        if (!add_word(l))
            return false;
    }
}

GArray *mtf_template_tokens(const char *text, GError **error) {
    Lexer l = { .begin = text, .at = text, .line = 1, .error = error };
    l.tokens = g_array_new(FALSE, FALSE, sizeof(MtfTemplateToken));
    g_array_set_clear_func(l.tokens, clear_token);
    bool good = true;
    while (good && *l.at != '\0') {
        const char *tag = l.at;
        while (*tag != '\0' && !is_tag(tag))
            tag++;
        add_text(&l, tag);
        if (*tag != '\0')
            good = tag[1] == '#' ? pass_comment(&l) : add_tag(&l);
    }
    add(&l, MTF_TOKEN_END, "", 0);
    if (!good)
        g_clear_pointer(&l.tokens, g_array_unref);
    return l.tokens;
}
