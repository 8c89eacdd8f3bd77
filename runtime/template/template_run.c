// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/template_run.h"

#include "runtime/template/template_values.h"
#include "runtime/template/template_words.h"

#include <math.h>
#include <string.h>

#define MOST_SAID (1 << 24)
#define MOST_STEPS 1000000 /* statements, expressions and values */

typedef enum { GOES_ON, BREAKS, CONTINUES } Flow;

/* A pass of a loop, and the loop around. */
typedef struct Pass {
    const cJSON *item;
    int i, n;
    const struct Pass *outer;
} Pass;

typedef struct {
    MtfTemplateMaker maker;
    const cJSON *names;
    GPtrArray *scopes; /* GHashTable: name -> const cJSON * */
    const Pass *pass;  /* the innermost, or NULL */
    GString *said;
    int64_t steps;
} Run;

static const cJSON *evaluate(Run *r, const MtfNode *node);
static Flow run_statement(Run *r, const MtfNode *node);

/* ---- Names ----------------------------------------------------------------------------------- */

/* What `loop` is; cJSON's first item has the last before it. */
static const cJSON *loop_of(Run *r, const Pass *p) {
    MtfTemplateMaker *m = &r->maker;
    cJSON *loop = mtf_value_container(m, true);
    mtf_value_add(loop, "index0", mtf_value_number(m, p->i));
    mtf_value_add(loop, "index", mtf_value_number(m, p->i + 1));
    mtf_value_add(loop, "revindex", mtf_value_number(m, p->n - p->i));
    mtf_value_add(loop, "revindex0", mtf_value_number(m, p->n - p->i - 1));
    mtf_value_add(loop, "length", mtf_value_number(m, p->n));
    mtf_value_add(loop, "first", mtf_value_bool(m, p->i == 0));
    mtf_value_add(loop, "last", mtf_value_bool(m, p->i == p->n - 1));
    mtf_value_add(loop, "previtem", p->i > 0 ? p->item->prev : &mtf_undefined);
    mtf_value_add(loop, "nextitem", p->item->next != NULL ? p->item->next : &mtf_undefined);
    return loop;
}

static const cJSON *look_up(Run *r, const char *name) {
    if (r->pass != NULL && strcmp(name, "loop") == 0)
        return loop_of(r, r->pass);
    for (guint i = r->scopes->len; i-- > 0;) {
        const cJSON *value = g_hash_table_lookup(g_ptr_array_index(r->scopes, i), name);
        if (value != NULL)
            return value;
    }
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(r->names, name);
    return given != NULL ? given : &mtf_undefined;
}

static void assign(Run *r, const char *name, const cJSON *value) {
    GHashTable *scope = g_ptr_array_index(r->scopes, r->scopes->len - 1);
    g_hash_table_insert(scope, (gpointer)(guintptr)name, (gpointer)(guintptr)value);
}

/* One name takes the value, several its members. */
static void assign_all(Run *r, char *const *targets, const cJSON *value) {
    const cJSON *member = value->child;
    if (targets[1] == NULL) {
        assign(r, targets[0], value);
        return;
    }
    for (; *targets != NULL && member != NULL; targets++, member = member->next)
        assign(r, *targets, member);
    if (*targets != NULL || member != NULL)
        mtf_value_fail(&r->maker, "as many values as names are expected");
}

static void enter_scope(Run *r) {
    g_ptr_array_add(r->scopes, g_hash_table_new(g_str_hash, g_str_equal));
}

static void leave_scope(Run *r) {
    g_ptr_array_remove_index(r->scopes, r->scopes->len - 1);
}

static void free_scope(gpointer scope) {
    g_hash_table_unref(scope);
}

/* ---- Members --------------------------------------------------------------------------------- */

/* Whole characters [from, to) of a text. */
static const cJSON *characters(Run *r, const char *text, glong from, glong to) {
    g_autofree char *part = g_utf8_substring(text, from, to);
    return mtf_value_text(&r->maker, part);
}

static int64_t length_of(const cJSON *v) {
    return cJSON_IsString(v) ? g_utf8_strlen(v->valuestring, -1) : cJSON_GetArraySize(v);
}

static const cJSON *member_at(Run *r, const cJSON *v, int64_t i) {
    if (cJSON_IsString(v))
        return characters(r, v->valuestring, (glong)i, (glong)i + 1);
    return cJSON_GetArrayItem(v, (int)i);
}

static const cJSON *item_of(Run *r, const cJSON *object, const cJSON *index) {
    if (mtf_value_is_undefined(object))
        return mtf_value_fail(&r->maker, "something that is not defined has no \"%s\"",
                              cJSON_IsString(index) ? index->valuestring : "members");
    if (cJSON_IsString(index)) {
        const cJSON *member = cJSON_IsObject(object)
                                  ? cJSON_GetObjectItemCaseSensitive(object, index->valuestring)
                                  : NULL;
        return member != NULL ? member : &mtf_undefined;
    }
    int64_t n = length_of(object);
    double i = cJSON_IsNumber(index) ? index->valuedouble : NAN;
    i += i < 0 ? (double)n : 0;
    bool there = (cJSON_IsString(object) || cJSON_IsArray(object)) && i >= 0 && i < (double)n;
    return there ? member_at(r, object, (int64_t)i) : &mtf_undefined;
}

/* A bound of a slice of n members, as Python has it. */
static int64_t bound_of(Run *r, const MtfNode *node, int64_t n, int64_t standard, bool back) {
    const cJSON *v = node != NULL ? evaluate(r, node) : &mtf_undefined;
    if (!cJSON_IsNumber(v))
        return standard;
    double at = v->valuedouble + (v->valuedouble < 0 ? (double)n : 0);
    return (int64_t)CLAMP(at, back ? -1 : 0, (double)(back ? n - 1 : n));
}

static const cJSON *slice_of(Run *r, const MtfNode *node) {
    const cJSON *v = evaluate(r, mtf_node_part(node, 0));
    const MtfNode *by = mtf_node_part(node, 3);
    const cJSON *step_value = by != NULL ? evaluate(r, by) : &mtf_undefined;
    int64_t step = cJSON_IsNumber(step_value) ? step_value->valueint : 1, n = length_of(v);
    bool back = step < 0;
    if (step == 0 || (!cJSON_IsString(v) && !cJSON_IsArray(v)))
        return mtf_value_fail(&r->maker, "a slice is of a list or a text, by a step that is not 0");
    int64_t from = bound_of(r, mtf_node_part(node, 1), n, back ? n - 1 : 0, back);
    int64_t to = bound_of(r, mtf_node_part(node, 2), n, back ? -1 : n, back);
    if (cJSON_IsString(v) && step == 1)
        return characters(r, v->valuestring, (glong)from, (glong)MAX(from, to));
    cJSON *list = mtf_value_container(&r->maker, false);
    for (int64_t i = from; back ? i > to : i < to; i += step)
        mtf_value_add(list, NULL, member_at(r, v, i));
    return list;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static bool contains(const cJSON *v, const cJSON *what) {
    if (cJSON_IsString(v))
        return cJSON_IsString(what) && strstr(v->valuestring, what->valuestring) != NULL;
    if (cJSON_IsObject(v))
        return cJSON_IsString(what) &&
               cJSON_GetObjectItemCaseSensitive(v, what->valuestring) != NULL;
    for (const cJSON *item = v->child; item != NULL; item = item->next)
        if (mtf_value_equal(item, what))
            return true;
    return false;
}

static const cJSON *joined(Run *r, const cJSON *a, const cJSON *b) {
    g_autoptr(GString) text = g_string_new(NULL);
    mtf_value_print(text, a);
    mtf_value_print(text, b);
    if (text->len > MOST_SAID)
        return mtf_value_fail(&r->maker, "a text of more than %d bytes", MOST_SAID);
    return mtf_value_text(&r->maker, text->str);
}

/* Texts and lists are put one behind the other. */
static const cJSON *sum(Run *r, const cJSON *a, const cJSON *b) {
    if (cJSON_IsString(a) && cJSON_IsString(b))
        return joined(r, a, b);
    if (!cJSON_IsArray(a) || !cJSON_IsArray(b))
        return mtf_value_fail(&r->maker, "\"+\" is for two numbers, two texts or two lists");
    cJSON *list = mtf_value_container(&r->maker, false);
    const cJSON *const both[] = { a, b };
    for (int i = 0; i < 2; i++)
        for (const cJSON *item = both[i]->child; item != NULL; item = item->next)
            mtf_value_add(list, NULL, item);
    return list;
}

static double computed(char operation, double a, double b) {
    switch (operation) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    default:
        return a / b;
    }
}

static const cJSON *arithmetic(Run *r, const char *operation, const cJSON *a, const cJSON *b) {
    bool numbers = cJSON_IsNumber(a) && cJSON_IsNumber(b);
    bool divides = strchr("/%", *operation) != NULL;
    if (*operation == '+' && !numbers)
        return sum(r, a, b);
    if (!numbers || (divides && b->valuedouble == 0))
        return mtf_value_fail(&r->maker, "\"%s\" is for numbers%s", operation,
                              divides ? ", and not by 0" : "");
    double x = a->valuedouble, y = b->valuedouble;
    if (strcmp(operation, "//") == 0)
        return mtf_value_number(&r->maker, floor(x / y));
    if (*operation == '%')
        return mtf_value_number(&r->maker, x - y * floor(x / y));
    return mtf_value_number(&r->maker, computed(*operation, x, y));
}

static const cJSON *compared(Run *r, const char *operation, const cJSON *a, const cJSON *b) {
    bool texts = cJSON_IsString(a) && cJSON_IsString(b);
    if (!texts && (!cJSON_IsNumber(a) || !cJSON_IsNumber(b)))
        return mtf_value_fail(&r->maker, "\"%s\" is for two numbers or two texts", operation);
    double order = texts ? strcmp(a->valuestring, b->valuestring) : a->valuedouble - b->valuedouble;
    bool equal = operation[1] == '=' && order == 0;
    return mtf_value_bool(&r->maker, equal || (*operation == '<' ? order < 0 : order > 0));
}

static const cJSON *binary(Run *r, const MtfNode *node) {
    const char *operation = node->name;
    const cJSON *a = evaluate(r, mtf_node_part(node, 0));
    bool is_or = strcmp(operation, "or") == 0, is_and = strcmp(operation, "and") == 0;
    if ((is_or || is_and) && mtf_value_is_true(a) == is_or)
        return a;
    const cJSON *b = evaluate(r, mtf_node_part(node, 1));
    if (r->maker.failed || is_or || is_and)
        return b;
    if (strcmp(operation, "in") == 0)
        return mtf_value_bool(&r->maker, contains(b, a));
    if (*operation == '=' || *operation == '!')
        return mtf_value_bool(&r->maker, mtf_value_equal(a, b) == (*operation == '='));
    if (*operation == '~')
        return joined(r, a, b);
    return *operation == '<' || *operation == '>' ? compared(r, operation, a, b)
                                                  : arithmetic(r, operation, a, b);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static const cJSON *called(Run *r, MtfWordKind kind, const MtfNode *node) {
    MtfWordArguments a = { .n = 0 };
    if (node->parts->len > MTF_MOST_ARGUMENTS)
        return mtf_value_fail(&r->maker, "\"%s\" has too many arguments", node->name);
    for (; a.n < (int)node->parts->len; a.n++) {
        const MtfNode *part = mtf_node_part(node, (guint)a.n);
        a.values[a.n] = evaluate(r, part);
        a.keys[a.n] = part->key;
    }
    r->maker.line = node->line;
    return r->maker.failed ? &mtf_undefined : mtf_template_call(&r->maker, kind, node->name, &a);
}

static const cJSON *listed(Run *r, const MtfNode *node) {
    cJSON *list = mtf_value_container(&r->maker, false);
    for (guint i = 0; i < node->parts->len; i++)
        mtf_value_add(list, NULL, evaluate(r, mtf_node_part(node, i)));
    return list;
}

static const cJSON *object_of(Run *r, const MtfNode *node) {
    cJSON *object = mtf_value_container(&r->maker, true);
    for (guint i = 0; i + 1 < node->parts->len; i += 2) {
        const cJSON *key = evaluate(r, mtf_node_part(node, i));
        const cJSON *value = evaluate(r, mtf_node_part(node, i + 1));
        if (!cJSON_IsString(key))
            return mtf_value_fail(&r->maker, "keys of objects are texts");
        mtf_value_add(object, key->valuestring, value);
    }
    return object;
}

static const cJSON *chosen(Run *r, const MtfNode *node) {
    bool is = mtf_value_is_true(evaluate(r, mtf_node_part(node, 0)));
    const MtfNode *part = mtf_node_part(node, is ? 1 : 2);
    return part != NULL ? evaluate(r, part) : &mtf_undefined;
}

static const cJSON *negative(Run *r, const MtfNode *node) {
    const cJSON *v = evaluate(r, mtf_node_part(node, 0));
    return cJSON_IsNumber(v) ? mtf_value_number(&r->maker, -v->valuedouble)
                             : mtf_value_fail(&r->maker, "\"-\" is for numbers");
}

static const cJSON *value_of(Run *r, const MtfNode *node) {
    switch (node->kind) {
    case MTF_NODE_CONSTANT:
        return node->value;
    case MTF_NODE_NAME:
        return look_up(r, node->name);
    case MTF_NODE_LIST:
        return listed(r, node);
    case MTF_NODE_OBJECT:
        return object_of(r, node);
    case MTF_NODE_ITEM:
        return item_of(r, evaluate(r, mtf_node_part(node, 0)), evaluate(r, mtf_node_part(node, 1)));
    case MTF_NODE_SLICE:
        return slice_of(r, node);
    case MTF_NODE_CALL:
        return called(r, MTF_WORD_FUNCTION, node);
    case MTF_NODE_METHOD:
        return called(r, MTF_WORD_METHOD, node);
    case MTF_NODE_FILTER:
        return called(r, MTF_WORD_FILTER, node);
    case MTF_NODE_TEST:
        return called(r, MTF_WORD_TEST, node);
    case MTF_NODE_NOT:
        return mtf_value_bool(&r->maker, !mtf_value_is_true(evaluate(r, mtf_node_part(node, 0))));
    case MTF_NODE_NEGATIVE:
        return negative(r, node);
    case MTF_NODE_BINARY:
        return binary(r, node);
    default:
        return chosen(r, node);
    }
}

static const cJSON *evaluate(Run *r, const MtfNode *node) {
    r->maker.line = node->line;
    if (++r->steps + (int64_t)r->maker.made->len > MOST_STEPS)
        mtf_value_fail(&r->maker, "more than %d steps", MOST_STEPS);
    return r->maker.failed ? &mtf_undefined : value_of(r, node);
}

/* ---- Statements ------------------------------------------------------------------------------ */

static Flow run_if(Run *r, const MtfNode *node) {
    bool is = mtf_value_is_true(evaluate(r, mtf_node_part(node, 0)));
    const MtfNode *part = mtf_node_part(node, is ? 1 : 2);
    return part != NULL ? run_statement(r, part) : GOES_ON;
}

/* What a loop goes over: members that its condition is true of, of objects their keys. */
static const cJSON *members_of(Run *r, const MtfNode *node) {
    const cJSON *list = evaluate(r, mtf_node_part(node, 0));
    const MtfNode *condition = mtf_node_part(node, 3);
    if (cJSON_IsObject(list)) {
        const MtfWordArguments a = { .values = { list }, .n = 1 };
        list = mtf_template_call(&r->maker, MTF_WORD_METHOD, "keys", &a);
    }
    if (!cJSON_IsArray(list) && !mtf_value_is_undefined(list))
        mtf_value_fail(&r->maker, "a loop goes over a list");
    if (condition == NULL)
        return list;
    cJSON *kept = mtf_value_container(&r->maker, false);
    for (const cJSON *item = list->child; item != NULL && !r->maker.failed; item = item->next) {
        assign_all(r, node->targets, item);
        if (mtf_value_is_true(evaluate(r, condition)))
            mtf_value_add(kept, NULL, item);
    }
    return kept;
}

static Flow run_pass(Run *r, const MtfNode *node, const Pass *pass) {
    enter_scope(r);
    r->pass = pass;
    assign_all(r, node->targets, pass->item);
    Flow flow = run_statement(r, mtf_node_part(node, 1));
    r->pass = pass->outer;
    leave_scope(r);
    return flow;
}

static Flow run_for(Run *r, const MtfNode *node) {
    enter_scope(r);
    const cJSON *list = members_of(r, node);
    leave_scope(r);
    Pass pass = { list->child, 0, cJSON_GetArraySize(list), r->pass };
    Flow flow = GOES_ON;
    for (; pass.item != NULL && flow != BREAKS && !r->maker.failed; pass.i++) {
        flow = run_pass(r, node, &pass);
        pass.item = pass.item->next;
    }
    const MtfNode *otherwise = mtf_node_part(node, 2);
    return pass.n == 0 && otherwise != NULL ? run_statement(r, otherwise) : GOES_ON;
}

/* `{% set a.b = … %}` changes a namespace; the older value stays for who looks at it. */
static void run_set(Run *r, const MtfNode *node) {
    const cJSON *value = evaluate(r, mtf_node_part(node, 0));
    const MtfNode *target = mtf_node_part(node, 1);
    if (target == NULL) {
        assign_all(r, node->targets, value);
        return;
    }
    cJSON *object = (cJSON *)(guintptr)evaluate(r, target);
    if (!cJSON_IsObject(object)) {
        mtf_value_fail(&r->maker, "\"%s\" is no namespace", target->name);
        return;
    }
    cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(object, node->targets[0]);
    if (old != NULL)
        mtf_value_own(&r->maker, old);
    mtf_value_add(object, node->targets[0], value);
}

static Flow run_say(Run *r, const MtfNode *node) {
    GString *outer = r->said;
    r->said = g_string_new(NULL);
    Flow flow = run_statement(r, mtf_node_part(node, 0));
    assign_all(r, node->targets, mtf_value_text(&r->maker, r->said->str));
    g_string_free(r->said, TRUE);
    r->said = outer;
    return flow;
}

static Flow run_block(Run *r, const MtfNode *node) {
    Flow flow = GOES_ON;
    for (guint i = 0; i < node->parts->len && flow == GOES_ON && !r->maker.failed; i++)
        flow = run_statement(r, mtf_node_part(node, i));
    return flow;
}

static Flow run_statement(Run *r, const MtfNode *node) {
    r->maker.line = node->line;
    if (++r->steps + (int64_t)r->maker.made->len > MOST_STEPS)
        mtf_value_fail(&r->maker, "more than %d steps", MOST_STEPS);
    if (r->said->len > MOST_SAID)
        mtf_value_fail(&r->maker, "a text of more than %d bytes", MOST_SAID);
    switch (node->kind) {
    case MTF_NODE_TEXT:
        g_string_append(r->said, node->name);
        return GOES_ON;
    case MTF_NODE_PRINT:
        mtf_value_print(r->said, evaluate(r, mtf_node_part(node, 0)));
        return GOES_ON;
    case MTF_NODE_IF:
        return run_if(r, node);
    case MTF_NODE_FOR:
        return run_for(r, node);
    case MTF_NODE_SET:
        run_set(r, node);
        return GOES_ON;
    case MTF_NODE_SAY:
        return run_say(r, node);
    case MTF_NODE_BREAK:
        return BREAKS;
    case MTF_NODE_CONTINUE:
        return CONTINUES;
    default:
        return run_block(r, node);
    }
}

static void free_value(gpointer value) {
    cJSON_Delete(value);
}

char *mtf_template_run(const MtfNode *template, const cJSON *names, GError **error) {
    Run r = { .maker = { .error = error }, .names = names, .said = g_string_new(NULL) };
    r.maker.made = g_ptr_array_new_with_free_func(free_value);
    r.scopes = g_ptr_array_new_with_free_func(free_scope);
    enter_scope(&r);
    run_statement(&r, template);
    g_ptr_array_unref(r.scopes);
    g_ptr_array_unref(r.maker.made);
    return g_string_free(r.said, r.maker.failed);
}
