// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/template_tree.h"

#include "layouts/base/error.h"
#include "runtime/template/template_tokens.h"
#include "runtime/template/template_words.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define MOST_NESTED 64
#define MOST_DEEP 500 /* nodes below one another; operators side by side lie so, too */

/* After the first error every step does nothing and gives an empty text. */
typedef struct {
    const MtfTemplateToken *at;
    int depth;
    bool failed;
    GError **error;
} Parser;

static void free_part(gpointer data) {
    mtf_node_free(data);
}

void mtf_node_free(MtfNode *node) {
    if (node == NULL)
        return;
    g_free(node->name);
    g_free(node->key);
    cJSON_Delete(node->value);
    g_strfreev(node->targets);
    g_ptr_array_unref(node->parts);
    g_free(node);
}

static MtfNode *new_node(const Parser *p, MtfNodeKind kind, const char *name) {
    MtfNode *node = g_new0(MtfNode, 1);
    node->kind = kind;
    node->line = p->at->line;
    node->name = g_strdup(name);
    node->parts = g_ptr_array_new_with_free_func(free_part);
    return node;
}

static void fail(Parser *p, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void fail(Parser *p, const char *format, ...) {
    if (p->failed)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    mtf_input_error(p->error, "line %d: %s", p->at->line, sentence);
    p->failed = true;
}

/* Trees are as deep as stacks of those who walk them may become. */
static void add_part(Parser *p, MtfNode *node, MtfNode *part) {
    g_ptr_array_add(node->parts, part);
    if (part != NULL)
        node->depth = MAX(node->depth, part->depth + 1);
    if (node->depth > MOST_DEEP)
        fail(p, "more than %d parts lie inside one another", MOST_DEEP);
}

/* A node with up to three parts, NULL where there is none. */
static MtfNode *node_of(Parser *p, MtfNodeKind kind, const char *name, MtfNode *a, MtfNode *b,
                        MtfNode *c) {
    MtfNode *node = new_node(p, kind, name);
    MtfNode *const parts[] = { a, b, c };
    for (int i = 0; i < 3; i++)
        add_part(p, node, parts[i]);
    return node;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static bool is_at(const Parser *p, MtfTokenKind kind, const char *text) {
    return !p->failed && p->at->kind == kind && strcmp(p->at->text, text) == 0;
}

static bool is_symbol(const Parser *p, const char *text) {
    return is_at(p, MTF_TOKEN_SYMBOL, text);
}

static bool is_word(const Parser *p, const char *text) {
    return is_at(p, MTF_TOKEN_NAME, text);
}

/* Whether the next token is this one, which is then passed. */
static bool take_symbol(Parser *p, const char *text) {
    bool there = is_symbol(p, text);
    p->at += there;
    return there;
}

static bool take_word(Parser *p, const char *text) {
    bool there = is_word(p, text);
    p->at += there;
    return there;
}

static void expect_symbol(Parser *p, const char *text) {
    if (!take_symbol(p, text))
        fail(p, "\"%s\" is expected, not \"%s\"", text, p->at->text);
}

static void expect_end(Parser *p) {
    if (p->at->kind != MTF_TOKEN_END)
        fail(p, "the tag should end before \"%s\"", p->at->text);
    p->at += !p->failed;
}

/* A name, passed; "" with an error. Owned by the tokens. */
static const char *take_name(Parser *p) {
    if (p->at->kind != MTF_TOKEN_NAME)
        fail(p, "a name is expected, not \"%s\"", p->at->text);
    return p->failed ? "" : (p->at++)->text;
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static MtfNode *parse_expression(Parser *p);

static MtfNode *constant(const Parser *p, cJSON *value) {
    MtfNode *node = new_node(p, MTF_NODE_CONSTANT, NULL);
    node->value = value;
    return node;
}

/* Expressions up to a closing symbol; a call's may have names. */
static void parse_list(Parser *p, MtfNode *into, const char *close) {
    while (!p->failed && !is_symbol(p, close)) {
        g_autofree char *key = NULL;
        bool named = into->kind != MTF_NODE_LIST && p->at->kind == MTF_TOKEN_NAME &&
                     p->at[1].kind == MTF_TOKEN_SYMBOL && strcmp(p->at[1].text, "=") == 0;
        if (named)
            key = g_strdup(p->at->text);
        p->at += named ? 2 : 0;
        MtfNode *part = parse_expression(p);
        part->key = g_steal_pointer(&key);
        add_part(p, into, part);
        if (!take_symbol(p, ","))
            break;
    }
    expect_symbol(p, close);
}

static MtfNode *parse_object(Parser *p) {
    MtfNode *node = new_node(p, MTF_NODE_OBJECT, NULL);
    while (!p->failed && !is_symbol(p, "}")) {
        add_part(p, node, parse_expression(p));
        expect_symbol(p, ":");
        add_part(p, node, parse_expression(p));
        if (!take_symbol(p, ","))
            break;
    }
    expect_symbol(p, "}");
    return node;
}

/* In parentheses: an expression, or with a comma a list. */
static MtfNode *parse_parentheses(Parser *p) {
    MtfNode *list = new_node(p, MTF_NODE_LIST, NULL);
    bool single = !is_symbol(p, ")");
    parse_list(p, list, ")");
    bool comma = p->at[-2].kind == MTF_TOKEN_SYMBOL && strcmp(p->at[-2].text, ",") == 0;
    if (!single || comma || list->parts->len != 1)
        return list;
    MtfNode *only = g_ptr_array_steal_index(list->parts, 0);
    mtf_node_free(list);
    return only;
}

static MtfNode *parse_name(Parser *p) {
    static const char *const words[][2] = { { "true", "True" },
                                            { "false", "False" },
                                            { "none", "None" } };
    const char *name = take_name(p);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(name, words[i][0]) == 0 || strcmp(name, words[i][1]) == 0)
            return constant(p, i < 2 ? cJSON_CreateBool(i == 0) : cJSON_CreateNull());
    if (!is_symbol(p, "("))
        return new_node(p, MTF_NODE_NAME, name);
    MtfNode *call = new_node(p, MTF_NODE_CALL, name);
    if (!mtf_template_has(MTF_WORD_FUNCTION, name))
        fail(p, "the function \"%s\" is not supported", name);
    p->at++;
    parse_list(p, call, ")");
    return call;
}

/* Texts side by side are one. */
static MtfNode *parse_string(Parser *p) {
    g_autoptr(GString) text = g_string_new(NULL);
    for (; p->at->kind == MTF_TOKEN_STRING; p->at++)
        g_string_append(text, p->at->text);
    return constant(p, cJSON_CreateString(text->str));
}

static MtfNode *parse_atom(Parser *p) {
    if (p->failed)
        return constant(p, cJSON_CreateNull());
    if (p->at->kind == MTF_TOKEN_STRING)
        return parse_string(p);
    if (p->at->kind == MTF_TOKEN_NUMBER)
        return constant(p, cJSON_CreateNumber(g_ascii_strtod((p->at++)->text, NULL)));
    if (p->at->kind == MTF_TOKEN_NAME)
        return parse_name(p);
    if (take_symbol(p, "("))
        return parse_parentheses(p);
    if (take_symbol(p, "{"))
        return parse_object(p);
    if (take_symbol(p, "[")) {
        MtfNode *list = new_node(p, MTF_NODE_LIST, NULL);
        parse_list(p, list, "]");
        return list;
    }
    fail(p, "a value is expected, not \"%s\"", p->at->text);
    return constant(p, cJSON_CreateNull());
}

/* a[b], or a[b:c:d] with any of them left out. */
static MtfNode *parse_index(Parser *p, MtfNode *object) {
    MtfNode *parts[3] = { NULL };
    bool slice = false;
    for (int i = 0; i < 3 && !p->failed; i++) {
        if (!is_symbol(p, ":") && !is_symbol(p, "]"))
            parts[i] = parse_expression(p);
        if (!take_symbol(p, ":"))
            break;
        slice = true;
    }
    if (!slice && parts[0] == NULL)
        fail(p, "an index is expected");
    expect_symbol(p, "]");
    if (!slice)
        return node_of(p, MTF_NODE_ITEM, NULL, object, parts[0], NULL);
    MtfNode *node = node_of(p, MTF_NODE_SLICE, NULL, object, parts[0], parts[1]);
    add_part(p, node, parts[2]);
    return node;
}

static MtfNode *parse_member(Parser *p, MtfNode *object) {
    const char *name = take_name(p);
    if (!take_symbol(p, "("))
        return node_of(p, MTF_NODE_ITEM, NULL, object, constant(p, cJSON_CreateString(name)), NULL);
    MtfNode *call = new_node(p, MTF_NODE_METHOD, name);
    if (!mtf_template_has(MTF_WORD_METHOD, name))
        fail(p, "the method \"%s\" is not supported", name);
    add_part(p, call, object);
    parse_list(p, call, ")");
    return call;
}

static MtfNode *parse_filter(Parser *p, MtfNode *value) {
    const char *name = take_name(p);
    MtfNode *filter = new_node(p, MTF_NODE_FILTER, name);
    if (!mtf_template_has(MTF_WORD_FILTER, name))
        fail(p, "the filter \"%s\" is not supported", name);
    add_part(p, filter, value);
    if (take_symbol(p, "("))
        parse_list(p, filter, ")");
    return filter;
}

/* `is [not] TEST`, whose one argument may stand without parentheses. */
static MtfNode *parse_test(Parser *p, MtfNode *value) {
    bool negated = take_word(p, "not");
    const char *name = take_name(p);
    MtfNode *test = new_node(p, MTF_NODE_TEST, name);
    if (!mtf_template_has(MTF_WORD_TEST, name))
        fail(p, "the test \"%s\" is not supported", name);
    add_part(p, test, value);
    if (take_symbol(p, "("))
        parse_list(p, test, ")");
    else if (p->at->kind == MTF_TOKEN_STRING || p->at->kind == MTF_TOKEN_NUMBER)
        add_part(p, test, parse_atom(p));
    return negated ? node_of(p, MTF_NODE_NOT, NULL, test, NULL, NULL) : test;
}

/* What stands behind a value: members and items, and with `filters` filters and tests. */
static MtfNode *parse_postfix(Parser *p, MtfNode *value, bool filters) {
    while (!p->failed) {
        if (take_symbol(p, "."))
            value = parse_member(p, value);
        else if (take_symbol(p, "["))
            value = parse_index(p, value);
        else if (filters && take_symbol(p, "|"))
            value = parse_filter(p, value);
        else if (filters && take_word(p, "is"))
            value = parse_test(p, value);
        else
            break;
    }
    return value;
}

static void enter(Parser *p) {
    if (++p->depth > MOST_NESTED)
        fail(p, "more than %d parts lie inside one another", MOST_NESTED);
}

/* A sign binds more than filters and tests, and less than members: -a.b|string is (-(a.b))|string. */
static MtfNode *parse_unary(Parser *p, bool filters) {
    if (!take_symbol(p, "-"))
        return parse_postfix(p, parse_atom(p), filters);
    enter(p);
    MtfNode *node = node_of(p, MTF_NODE_NEGATIVE, NULL, parse_unary(p, false), NULL, NULL);
    p->depth--;
    return parse_postfix(p, node, filters);
}

/* Operators from those that bind least; those of a level are joined from the left. */
static const char *const levels[][7] = {
    { "or" },     { "and" }, { "==", "!=", "<", "<=", ">", ">=", "in" },
    { "+", "-" }, { "~" },   { "*", "/", "//", "%" },
};
#define LEVEL_COMPARES 2

/* The operator of a level that is next, passed; NULL: none. */
static const char *take_operator(Parser *p, gsize level) {
    for (gsize i = 0; i < G_N_ELEMENTS(levels[level]) && levels[level][i] != NULL; i++)
        if (take_symbol(p, levels[level][i]) || take_word(p, levels[level][i]))
            return levels[level][i];
    return NULL;
}

static MtfNode *parse_level(Parser *p, gsize level) {
    if (level == G_N_ELEMENTS(levels))
        return parse_unary(p, true);
    if (level == LEVEL_COMPARES && take_word(p, "not")) {
        enter(p);
        MtfNode *node = node_of(p, MTF_NODE_NOT, NULL, parse_level(p, level), NULL, NULL);
        p->depth--;
        return node;
    }
    MtfNode *left = parse_level(p, level + 1);
    while (!p->failed) {
        bool not_in = level == LEVEL_COMPARES && is_word(p, "not") && take_word(p, "not");
        const char *operation = take_operator(p, level);
        if (operation == NULL) {
            if (not_in)
                fail(p, "\"in\" is expected behind \"not\"");
            break;
        }
        left = node_of(p, MTF_NODE_BINARY, operation, left, parse_level(p, level + 1), NULL);
        if (not_in)
            left = node_of(p, MTF_NODE_NOT, NULL, left, NULL, NULL);
    }
    return left;
}

static MtfNode *parse_expression(Parser *p) {
    enter(p);
    MtfNode *value = parse_level(p, 0);
    if (take_word(p, "if")) {
        MtfNode *condition = parse_level(p, 0);
        MtfNode *otherwise = take_word(p, "else") ? parse_expression(p) : NULL;
        value = node_of(p, MTF_NODE_CHOICE, NULL, condition, value, otherwise);
    }
    p->depth--;
    return value;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static MtfNode *parse_block(Parser *p);

/* Whether the tag is a block's that begins with that word; then both are passed. */
static bool take_tag(Parser *p, const char *word) {
    bool there = !p->failed && p->at->kind == MTF_TOKEN_BLOCK && p->at[1].kind == MTF_TOKEN_NAME &&
                 strcmp(p->at[1].text, word) == 0;
    p->at += there ? 2 : 0;
    return there;
}

static void expect_tag(Parser *p, const char *word) {
    if (!take_tag(p, word))
        fail(p, "{%% %s %%} is expected", word);
    expect_end(p);
}

/* {% else %} and what follows it, or NULL. */
static MtfNode *parse_otherwise(Parser *p) {
    if (!take_tag(p, "else"))
        return NULL;
    expect_end(p);
    return parse_block(p);
}

static MtfNode *parse_if(Parser *p) {
    MtfNode *condition = parse_expression(p);
    expect_end(p);
    MtfNode *then = parse_block(p);
    if (take_tag(p, "elif")) {
        enter(p);
        MtfNode *next = parse_if(p);
        p->depth--;
        return node_of(p, MTF_NODE_IF, NULL, condition, then, next);
    }
    MtfNode *otherwise = parse_otherwise(p);
    expect_tag(p, "endif");
    return node_of(p, MTF_NODE_IF, NULL, condition, then, otherwise);
}

/* Names with commas between. */
static char **parse_targets(Parser *p) {
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    do
        g_strv_builder_add(names, take_name(p));
    while (take_symbol(p, ","));
    return g_strv_builder_end(names);
}

static MtfNode *parse_for(Parser *p) {
    char **targets = parse_targets(p);
    if (!take_word(p, "in"))
        fail(p, "\"in\" is expected, not \"%s\"", p->at->text);
    MtfNode *list = parse_level(p, 0);
    MtfNode *condition = take_word(p, "if") ? parse_expression(p) : NULL;
    expect_end(p);
    MtfNode *body = parse_block(p), *otherwise = parse_otherwise(p);
    expect_tag(p, "endfor");
    MtfNode *node = node_of(p, MTF_NODE_FOR, NULL, list, body, otherwise);
    add_part(p, node, condition);
    node->targets = targets;
    return node;
}

static MtfNode *parse_set(Parser *p) {
    char **targets = parse_targets(p);
    MtfNode *object = NULL, *node;
    if (take_symbol(p, ".")) {
        object = new_node(p, MTF_NODE_NAME, targets[0]);
        g_free(targets[0]);
        targets[0] = g_strdup(take_name(p));
    }
    if (take_symbol(p, "=")) {
        MtfNode *value = parse_expression(p);
        expect_end(p);
        node = node_of(p, MTF_NODE_SET, NULL, value, object, NULL);
    } else {
        mtf_node_free(object);
        expect_end(p);
        node = node_of(p, MTF_NODE_SAY, NULL, parse_block(p), NULL, NULL);
        expect_tag(p, "endset");
    }
    node->targets = targets;
    return node;
}

static MtfNode *parse_statement(Parser *p) {
    if (take_tag(p, "if"))
        return parse_if(p);
    if (take_tag(p, "for"))
        return parse_for(p);
    if (take_tag(p, "set"))
        return parse_set(p);
    bool breaks = take_tag(p, "break");
    if (breaks || take_tag(p, "continue")) {
        expect_end(p);
        return new_node(p, breaks ? MTF_NODE_BREAK : MTF_NODE_CONTINUE, NULL);
    }
    if (take_tag(p, "generation")) { /* marks what a model is trained to say */
        expect_end(p);
        MtfNode *body = parse_block(p);
        expect_tag(p, "endgeneration");
        return body;
    }
    fail(p, "the statement \"%s\" is not supported", p->at[1].text);
    return new_node(p, MTF_NODE_TEXT, "");
}

/* Whether a tag is one that belongs to a statement around. */
static bool closes(const Parser *p) {
    static const char *const words[] = { "elif",   "else",          "endif", "endfor",
                                         "endset", "endgeneration", NULL };
    return p->at->kind == MTF_TOKEN_END ||
           (p->at->kind == MTF_TOKEN_BLOCK && p->at[1].kind == MTF_TOKEN_NAME &&
            g_strv_contains(words, p->at[1].text));
}

static MtfNode *parse_block(Parser *p) {
    MtfNode *block = new_node(p, MTF_NODE_BLOCK, NULL);
    enter(p);
    while (!p->failed && !closes(p)) {
        MtfNode *statement;
        if (p->at->kind == MTF_TOKEN_TEXT)
            statement = new_node(p, MTF_NODE_TEXT, (p->at++)->text);
        else if (p->at->kind == MTF_TOKEN_PRINT) {
            p->at++;
            statement = node_of(p, MTF_NODE_PRINT, NULL, parse_expression(p), NULL, NULL);
            expect_end(p);
        } else
            statement = parse_statement(p);
        add_part(p, block, statement);
    }
    p->depth--;
    return block;
}

MtfNode *mtf_template_parse(const char *text, GError **error) {
    g_autoptr(GArray) tokens = mtf_template_tokens(text, error);
    if (tokens == NULL)
        return NULL;
    Parser p = { .at = (const MtfTemplateToken *)(void *)tokens->data, .error = error };
    g_autoptr(MtfNode) block = parse_block(&p);
    if (!p.failed && p.at->kind != MTF_TOKEN_END)
        fail(&p, "{%% %s %%} ends nothing", p.at[1].text);
    return p.failed ? NULL : g_steal_pointer(&block);
}
