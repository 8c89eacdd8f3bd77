// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/expression.h"

#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"
#include "layouts/graph/operation_table.h"

#include <math.h>
#include <string.h>

#define MOST_TERMS 1000
#define MOST_DEPTH 64

typedef struct {
    const char *text, *at; /* what is read next */
    GStrv arguments;
    GArray *terms; /* MtfExpressionTerm */
    int depth;     /* of what is open */
    GError *error; /* the first one */
} Reader;

/* Terms are counted from 0; -1 after an error. */
static int read_sum(Reader *r);

static int fail_at(Reader *r, const char *where, const char *format, ...) G_GNUC_PRINTF(3, 4);

static int fail_at(Reader *r, const char *where, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (r->error == NULL)
        mtf_input_error(&r->error, "column %d: %s", (int)(where - r->text) + 1, sentence);
    return -1;
}

static MtfExpressionTerm *term_at(const Reader *r, int term) {
    return &g_array_index(r->terms, MtfExpressionTerm, term);
}

/* ---- Terms ------------------------------------------------------------------------------------ */

static bool is_same(const MtfExpressionTerm *a, const MtfExpressionTerm *b) {
    return a->kind == b->kind && memcmp(&a->number, &b->number, sizeof(double)) == 0 &&
           a->argument == b->argument && a->operation == b->operation &&
           a->n_operands == b->n_operands &&
           memcmp(a->operands, b->operands, sizeof a->operands) == 0;
}

static int add_term(Reader *r, const MtfExpressionTerm *term) {
    for (int i = 0; i < (int)r->terms->len; i++)
        if (is_same(term_at(r, i), term))
            return i;
    if (r->terms->len == MOST_TERMS)
        return fail_at(r, r->at, "this is too long, it has more than %d terms", MOST_TERMS);
    g_array_append_val(r->terms, *term);
    return (int)r->terms->len - 1;
}

static int add_number(Reader *r, const char *where, double number) {
    if (!isfinite(number))
        return fail_at(r, where, "this is no finite number");
    return add_term(r, &(MtfExpressionTerm){ .kind = MTF_TERM_NUMBER, .number = number });
}

/* What arithmetic on two numbers gives. */
static double folded(char sign, double a, double b) {
    return sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : a / b;
}

/* ---- Signs between terms ----------------------------------------------------------------------- */

typedef enum { OF_ANY, OF_BOTH, OF_COMPARISON, OF_SUM, OF_PRODUCT, OF_POWER } Level;

typedef struct {
    const char *sign;
    Level level;
    int operation;
    bool swapped; /* the second term comes first */
    bool negated; /* 1 where it is 0 */
} Infix;

/* A sign that begins like another one stands behind it. */
static const Infix infixes[] = {
    { "||", OF_ANY, MTF_OP_MAXIMUM, false, false },
    { "&&", OF_BOTH, MTF_OP_MULTIPLY, false, false },
    { "==", OF_COMPARISON, MTF_OP_EQUAL, false, false },
    { "!=", OF_COMPARISON, MTF_OP_EQUAL, false, true },
    { "<=", OF_COMPARISON, MTF_OP_LESS_EQUAL, false, false },
    { ">=", OF_COMPARISON, MTF_OP_LESS_EQUAL, true, false },
    { "<", OF_COMPARISON, MTF_OP_LESS, false, false },
    { ">", OF_COMPARISON, MTF_OP_LESS, true, false },
    { "+", OF_SUM, MTF_OP_ADD, false, false },
    { "-", OF_SUM, MTF_OP_SUBTRACT, false, false },
    { "*", OF_PRODUCT, MTF_OP_MULTIPLY, false, false },
    { "/", OF_PRODUCT, MTF_OP_DIVIDE, false, false },
    { "^", OF_POWER, MTF_OP_POWER, false, false },
};

/* The sign of arithmetic that an operation is written by. */
static char sign_of(int operation) {
    for (gsize i = 0; i < G_N_ELEMENTS(infixes); i++)
        if (infixes[i].level >= OF_SUM && infixes[i].operation == operation)
            return *infixes[i].sign;
    return 0;
}

/* The operation of one, two or three terms, the further ones -1. */
static int apply(Reader *r, int operation, int a, int b, int c) {
    MtfExpressionTerm term = { .kind = MTF_TERM_APPLICATION,
                               .operation = operation,
                               .sign = sign_of(operation),
                               .n_operands = b < 0   ? 1
                                             : c < 0 ? 2
                                                     : 3,
                               .operands = { a, b, c } };
    return r->error != NULL ? -1 : add_term(r, &term);
}

/* The same, of what is 0 or 1 everywhere. */
static int apply_truth(Reader *r, int operation, int a, int b) {
    int term = apply(r, operation, a, b, -1);
    if (term >= 0)
        term_at(r, term)->truth = true;
    return term;
}

/* 1 where the term is not 0, else 0. */
static int truth(Reader *r, int term) {
    if (r->error != NULL || term_at(r, term)->truth)
        return term;
    return apply_truth(r, MTF_OP_LOGICAL_NOT, apply_truth(r, MTF_OP_LOGICAL_NOT, term, -1), -1);
}

static void skip_spaces(Reader *r) {
    while (*r->at == ' ')
        r->at++;
}

static bool accept(Reader *r, const char *sign) {
    skip_spaces(r);
    if (strncmp(r->at, sign, strlen(sign)) != 0)
        return false;
    r->at += strlen(sign);
    return true;
}

static const Infix *accept_infix(Reader *r, Level level) {
    for (gsize i = 0; i < G_N_ELEMENTS(infixes); i++)
        if (infixes[i].level == level && accept(r, infixes[i].sign))
            return &infixes[i];
    return NULL;
}

static int join(Reader *r, const Infix *infix, const char *where, int left, int right) {
    if (r->error != NULL)
        return -1;
    const MtfExpressionTerm *a = term_at(r, left), *b = term_at(r, right);
    bool numbers = a->kind == MTF_TERM_NUMBER && b->kind == MTF_TERM_NUMBER;
    if (*infix->sign == '/' && b->kind == MTF_TERM_NUMBER && !isfinite(1 / b->number))
        return fail_at(r, where, "this divides by %g", b->number);
    if (infix->level >= OF_SUM)
        return numbers ? add_number(r, where, folded(*infix->sign, a->number, b->number))
                       : apply(r, infix->operation, left, right, -1);
    if (infix->level <= OF_BOTH) {
        left = truth(r, left);
        right = truth(r, right);
    }
    int joined = apply_truth(r, infix->operation, infix->swapped ? right : left,
                             infix->swapped ? left : right);
    return infix->negated ? apply_truth(r, MTF_OP_LOGICAL_NOT, joined, -1) : joined;
}

static int read_unary(Reader *r);

static int read_level(Reader *r, Level level) {
    if (level == OF_POWER)
        return read_unary(r);
    int left = read_level(r, level + 1);
    const Infix *infix;
    for (int i = 0; r->error == NULL && (infix = accept_infix(r, level)) != NULL; i++) {
        const char *where = r->at - strlen(infix->sign);
        if (level == OF_COMPARISON && i > 0)
            return fail_at(r, where, "a comparison of a comparison; join two by &&");
        left = join(r, infix, where, left, read_level(r, level + 1));
    }
    return left;
}

/* All of a formula, or of what is in parentheses. */
static int read_sum(Reader *r) {
    return read_level(r, OF_ANY);
}

/* ---- Functions --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int operation;
} further_names[] = {
    { "max", MTF_OP_MAXIMUM },
    { "min", MTF_OP_MINIMUM },
    { "stop_gradient", MTF_OP_STOP_GRADIENT },
};

static bool needs_attributes(const MtfOperationRow *row) {
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++)
        if (spec->required)
            return true;
    return false;
}

/* Whether the row is a function of each element of its inputs alone, all alike. */
static bool is_function(const MtfOperationRow *row) {
    bool alike =
        row->dims == MTF_DIMS_UNION || (row->dims == MTF_DIMS_FIRST && row->max_inputs == 1);
    return row->kernel_class == MTF_CLASS_ELEMENTWISE && alike && row->min_inputs > 0 &&
           !row->composite && !row->random && !row->accumulates && row->integer_inputs == 0 &&
           !needs_attributes(row);
}

static int find_function(const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(further_names); i++)
        if (strcmp(further_names[i].name, name) == 0)
            return further_names[i].operation;
    int kind = mtf_operation_kind(name);
    return kind >= 0 && is_function(mtf_operation_row(kind)) ? kind : -1;
}

static int fail_unknown_function(Reader *r, const char *where, const char *name) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(further_names); i++)
        g_ptr_array_add(names, (gpointer)further_names[i].name);
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (is_function(mtf_operation_row(kind)))
            g_ptr_array_add(names, (gpointer)mtf_operation_row(kind)->name);
    g_ptr_array_add(names, NULL);
    g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)names->pdata);
    return fail_at(r, where, "\"%s\" is no function of elements%s", name, hint);
}

static int fail_unclosed(Reader *r, const char *opened) {
    return *r->at == '\0'
               ? fail_at(r, opened, "this parenthesis is not closed")
               : fail_at(r, r->at, "a sign or the end of the parenthesis should stand here");
}

/* The arguments of a function, behind its opening parenthesis. */
static int read_call(Reader *r, const char *where, const char *name) {
    const char *opened = r->at - 1;
    int kind = find_function(name), operands[MTF_MAX_OPERANDS] = { -1, -1, -1 }, n = 0;
    if (kind < 0)
        return fail_unknown_function(r, where, name);
    do {
        int operand = read_sum(r);
        if (n < MTF_MAX_OPERANDS)
            operands[n] = operand;
        n++;
    } while (r->error == NULL && accept(r, ","));
    if (r->error == NULL && !accept(r, ")"))
        return fail_unclosed(r, opened);
    const MtfOperationRow *row = mtf_operation_row(kind);
    if (n < row->min_inputs || n > MIN(row->max_inputs, MTF_MAX_OPERANDS))
        return fail_at(r, where, "%s takes %d argument%s, not %d", name, row->min_inputs,
                       row->min_inputs == 1 ? "" : "s", n);
    return apply(r, kind, operands[0], operands[1], operands[2]);
}

/* ---- Numbers, names, parentheses ---------------------------------------------------------------- */

static bool begins_name(char c) {
    return g_ascii_isalpha(c) || c == '_';
}

static const char *end_of_name(const char *name) {
    while (begins_name(*name) || g_ascii_isdigit(*name))
        name++;
    return name;
}

static int read_name(Reader *r) {
    const char *where = r->at;
    r->at = end_of_name(where);
    g_autofree char *name = g_strndup(where, (gsize)(r->at - where));
    if (accept(r, "("))
        return read_call(r, where, name);
    for (int k = 0; r->arguments[k] != NULL; k++)
        if (strcmp(r->arguments[k], name) == 0)
            return add_term(r, &(MtfExpressionTerm){ .kind = MTF_TERM_ARGUMENT, .argument = k });
    g_autofree char *known = g_strjoinv(", ", r->arguments);
    return fail_at(r, where, "\"%s\" is none of the arguments, %s", name, known);
}

static int read_number(Reader *r) {
    const char *where = r->at;
    char *end;
    double number = g_ascii_strtod(where, &end);
    if (end == where)
        return fail_at(r, where, "a number has digits");
    r->at = end;
    return add_number(r, where, number);
}

static int read_primary(Reader *r) {
    skip_spaces(r);
    const char *where = r->at;
    if (begins_name(*where))
        return read_name(r);
    if (g_ascii_isdigit(*where) || *where == '.')
        return read_number(r);
    if (!accept(r, "("))
        return fail_at(r, where,
                       "a number, an argument, a function or a parenthesis should stand here");
    int inner = read_sum(r);
    return r->error != NULL || accept(r, ")") ? inner : fail_unclosed(r, where);
}

static int read_power(Reader *r) {
    int base = read_primary(r);
    const Infix *infix = r->error == NULL ? accept_infix(r, OF_POWER) : NULL;
    return infix == NULL ? base : apply(r, infix->operation, base, read_unary(r), -1);
}

static int read_signed(Reader *r) {
    if (accept(r, "!"))
        return apply_truth(r, MTF_OP_LOGICAL_NOT, read_unary(r), -1);
    if (!accept(r, "-"))
        return read_power(r);
    int term = read_unary(r);
    if (r->error == NULL && term_at(r, term)->kind == MTF_TERM_NUMBER)
        return add_number(r, r->at, -term_at(r, term)->number);
    return apply(r, MTF_OP_NEGATE, term, -1, -1);
}

/* Everything that opens something passes here, so that no formula is deeper than the stack. */
static int read_unary(Reader *r) {
    if (r->depth == MOST_DEPTH)
        return fail_at(r, r->at, "this is nested deeper than %d", MOST_DEPTH);
    r->depth++;
    int term = read_signed(r);
    r->depth--;
    return term;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static bool check_arguments(GStrv arguments, int n_inputs, GError **error) {
    int n = (int)g_strv_length(arguments);
    for (int k = 0; k < n; k++) {
        const char *name = arguments[k];
        if (!begins_name(*name) || *end_of_name(name) != '\0')
            return mtf_input_error(
                error,
                "\"%s\" is no name for an expression (letters, digits and _); "
                "\"arguments\" may give the inputs others, between single spaces",
                name);
        for (int i = 0; i < k; i++)
            if (strcmp(arguments[i], name) == 0)
                return mtf_input_error(error, "two of its arguments are called \"%s\"", name);
    }
    return n == n_inputs ||
           mtf_input_error(error, "it has %d arguments and %d inputs", n, n_inputs);
}

/* Marks what `last` is made of; the terms before it are not made of later ones. */
static bool *needed_terms(const Reader *r, int last) {
    bool *needed = g_new0(bool, r->terms->len);
    needed[last] = true;
    for (int i = last; i >= 0; i--) {
        const MtfExpressionTerm *term = term_at(r, i);
        for (int k = 0; k < term->n_operands && needed[i]; k++)
            needed[term->operands[k]] = true;
    }
    return needed;
}

/* The terms without those that arithmetic on numbers has left behind. */
static MtfExpression *gather_terms(const Reader *r, int last) {
    g_autofree bool *needed = needed_terms(r, last);
    g_autofree int *moved = g_new0(int, last + 1);
    MtfExpression *expression = g_new0(MtfExpression, 1);
    expression->terms = g_new(MtfExpressionTerm, last + 1);
    for (int i = 0; i <= last; i++) {
        if (!needed[i])
            continue;
        MtfExpressionTerm term = *term_at(r, i);
        for (int k = 0; k < term.n_operands; k++)
            term.operands[k] = moved[term.operands[k]];
        moved[i] = expression->n;
        expression->terms[expression->n++] = term;
    }
    return expression;
}

static bool check_use(const MtfExpression *expression, GStrv arguments, GError **error) {
    for (int k = 0; arguments[k] != NULL; k++) {
        bool used = false;
        for (int i = 0; i < expression->n; i++)
            used |= expression->terms[i].kind == MTF_TERM_ARGUMENT &&
                    expression->terms[i].argument == k;
        if (!used)
            return mtf_input_error(error, "its expression does not use the argument \"%s\"",
                                   arguments[k]);
    }
    return true;
}

/* A sum with nothing behind it. */
static int read_whole(Reader *r) {
    int last = read_sum(r);
    skip_spaces(r);
    if (r->error == NULL && *r->at != '\0')
        fail_at(r, r->at,
                *r->at == ')' ? "this parenthesis closes nothing" : "a sign should stand here");
    return last;
}

MtfExpression *mtf_expression_read(const char *text, const char *arguments, int n_inputs,
                                   GError **error) {
    g_auto(GStrv) names = g_strsplit(arguments, " ", -1);
    if (!check_arguments(names, n_inputs, error))
        return NULL;
    g_autoptr(GArray) terms = g_array_new(FALSE, FALSE, sizeof(MtfExpressionTerm));
    Reader r = { .text = text, .at = text, .arguments = names, .terms = terms };
    int last = read_whole(&r);
    if (r.error != NULL) {
        g_propagate_error(error, r.error);
        return NULL;
    }
    g_autoptr(MtfExpression) expression = gather_terms(&r, last);
    return check_use(expression, names, error) ? g_steal_pointer(&expression) : NULL;
}

void mtf_expression_free(MtfExpression *expression) {
    if (expression == NULL)
        return;
    g_free(expression->terms);
    g_free(expression);
}
