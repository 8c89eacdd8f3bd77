// SPDX-License-Identifier: GPL-3.0-or-later
/* A Jinja template as a tree, and its reader. Of Jinja there is what templates of conversations are written in:
 *
 *     statement   {% if %} {% elif %} {% else %} {% for %} {% set %} {% break %} {% continue %} {% generation %}
 *     expression  or and not  == != < <= > >= in is  ~ + - * / // %  a if b else c  a.b a[b] a[b:c:d] f(x, k=y) a|f(x)
 *                 "text" 1 1.5 true false none [a, b] (a, b) {"a": b}
 *
 * Names of functions, methods, filters and tests are rows of template_words.c. Whatever else Jinja has is
 * refused by name and line when the template is read. */
#ifndef MTF_TEMPLATE_TREE_H
#define MTF_TEMPLATE_TREE_H

#include <cjson/cJSON.h>
#include <glib.h>

typedef enum {
    /* Statements. */
    MTF_NODE_TEXT,  /* name: the text */
    MTF_NODE_PRINT, /* expression */
    MTF_NODE_BLOCK, /* statements */
    MTF_NODE_IF,    /* condition, then, otherwise (or NULL) */
    MTF_NODE_FOR,   /* list, body, otherwise (or NULL), condition (or NULL); targets */
    MTF_NODE_SET,   /* value, and of `{% set a.b = … %}` the object; targets, or "b" */
    MTF_NODE_SAY,   /* body, whose text is what `{% set x %}` sets; targets */
    MTF_NODE_BREAK,
    MTF_NODE_CONTINUE,
    /* Expressions. */
    MTF_NODE_CONSTANT, /* value */
    MTF_NODE_NAME,
    MTF_NODE_LIST,
    MTF_NODE_OBJECT, /* key, value, key, value … */
    MTF_NODE_ITEM,   /* object, index */
    MTF_NODE_SLICE,  /* list, from, to, step, each or NULL */
    MTF_NODE_CALL,   /* arguments; name: the function */
    MTF_NODE_METHOD, /* object, arguments */
    MTF_NODE_FILTER, /* value, arguments */
    MTF_NODE_TEST,   /* value, arguments */
    MTF_NODE_NOT,
    MTF_NODE_NEGATIVE,
    MTF_NODE_BINARY, /* left, right; name: the operator */
    MTF_NODE_CHOICE, /* condition, then, otherwise (or NULL) */
} MtfNodeKind;

typedef struct {
    MtfNodeKind kind;
    int line;
    int depth; /* of the tree below */
    char *name;
    char *key;        /* of an argument that is given by name; else NULL */
    cJSON *value;     /* or NULL */
    char **targets;   /* names that are set; NULL-terminated, or NULL */
    GPtrArray *parts; /* MtfNode */
} MtfNode;

/* The template as a block; NULL with a bad-input error, "line 3: …". Free with mtf_node_free. */
MtfNode *mtf_template_parse(const char *text, GError **error);
void mtf_node_free(MtfNode *node); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfNode, mtf_node_free)

static inline MtfNode *mtf_node_part(const MtfNode *node, guint i) {
    return i < node->parts->len ? (MtfNode *)g_ptr_array_index(node->parts, i) : NULL;
}

#endif
