// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/reference/reference_expression.h"

#include <glib.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *at;
    GStrv arguments;
    const double *values;
} Text;

static const struct {
    const char *sign;
    int strength;
} signs[] = { { "||", 1 }, { "&&", 2 }, { "==", 3 }, { "!=", 3 }, { "<=", 3 },
              { ">=", 3 }, { "<", 3 },  { ">", 3 },  { "+", 4 },  { "-", 4 },
              { "*", 5 },  { "/", 5 },  { "^", 7 } };

#define OF_UNARY 6

static double climb(Text *t, int least);

static double call(const char *name, const double *x) {
#define FUNCTION(text, value)    \
    if (strcmp(name, text) == 0) \
        return value;
    FUNCTION("max", fmax(x[0], x[1]))
    FUNCTION("min", fmin(x[0], x[1]))
    FUNCTION("where", x[0] != 0 ? x[1] : x[2])
    FUNCTION("exp", exp(x[0]))
    FUNCTION("log", log(x[0]))
    FUNCTION("sqrt", sqrt(x[0]))
    FUNCTION("tanh", tanh(x[0]))
    FUNCTION("sigmoid", 1 / (1 + exp(-x[0])))
    FUNCTION("erf", erf(x[0]))
    FUNCTION("gelu_exact", x[0] * (1 + erf(x[0] / sqrt(2))) / 2)
    FUNCTION("leaky_relu", x[0] > 0 ? x[0] : 0.01 * x[0])
    FUNCTION("floor", floor(x[0]))
    FUNCTION("mod", x[0] - x[1] * floor(x[0] / x[1]))
    FUNCTION("stop_gradient", x[0])
    g_error("the reference knows no function %s", name);
#undef FUNCTION
}

static void skip(Text *t) {
    t->at += strspn(t->at, " ");
}

static double arguments_of(Text *t, const char *name) {
    double x[3] = { 0 };
    int n = 0;
    do {
        t->at++;
        x[n++] = climb(t, 0);
        skip(t);
    } while (*t->at == ',');
    t->at++;
    return call(name, x);
}

static double word(Text *t) {
    gsize length = strspn(t->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    g_autofree char *name = g_strndup(t->at, length);
    t->at += length;
    skip(t);
    if (*t->at == '(')
        return arguments_of(t, name);
    int k = 0;
    while (strcmp(t->arguments[k], name) != 0)
        k++;
    return t->values[k];
}

static double single(Text *t) {
    skip(t);
    if (*t->at == '-' || *t->at == '!') {
        char sign = *t->at++;
        double x = climb(t, OF_UNARY);
        return sign == '-' ? -x : x == 0;
    }
    if (*t->at == '(') {
        t->at++;
        double x = climb(t, 0);
        skip(t);
        t->at++;
        return x;
    }
    if (strchr("0123456789.", *t->at) == NULL)
        return word(t);
    char *end;
    double number = g_ascii_strtod(t->at, &end);
    t->at = end;
    return number;
}

static double join(const char *sign, double a, double b) {
    switch (*sign) {
    case '|':
        return a != 0 || b != 0;
    case '&':
        return a != 0 && b != 0;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return sign[1] == '=' ? a <= b : a < b;
    case '>':
        return sign[1] == '=' ? a >= b : a > b;
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    default:
        return pow(a, b);
    }
}

static int next_sign(Text *t) {
    skip(t);
    for (int i = 0; i < (int)G_N_ELEMENTS(signs); i++)
        if (g_str_has_prefix(t->at, signs[i].sign))
            return i;
    return -1;
}

/* Takes in signs that are at least so strong; powers from the right. */
static double climb(Text *t, int least) {
    double left = single(t);
    for (int i = next_sign(t); i >= 0 && signs[i].strength >= least; i = next_sign(t)) {
        t->at += strlen(signs[i].sign);
        left = join(signs[i].sign, left,
                    climb(t, signs[i].strength + (*signs[i].sign == '^' ? 0 : 1)));
    }
    return left;
}

double mtf_reference_expression(const char *text, const char *arguments, const double *values) {
    g_auto(GStrv) names = g_strsplit(arguments, " ", -1);
    Text t = { text, names, values };
    return climb(&t, 0);
}
