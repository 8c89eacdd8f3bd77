// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/graph/expression.h"
#include "layouts/graph/operation_table.h"

#include <string.h>

/* The term as a call of rows: "add(multiply(0.5,x),y)". */
static void append_term(GString *text, const MtfExpression *expression, const char *const *names,
                        int i) {
    const MtfExpressionTerm *term = &expression->terms[i];
    switch (term->kind) {
    case MTF_TERM_NUMBER:
        g_string_append_printf(text, "%g", term->number);
        return;
    case MTF_TERM_ARGUMENT:
        g_string_append(text, names[term->argument]);
        return;
    case MTF_TERM_APPLICATION:
        break;
    }
    g_string_append_printf(text, "%s(", mtf_operation_row(term->operation)->name);
    for (int k = 0; k < term->n_operands; k++) {
        assert_true(term->operands[k] >= 0 && term->operands[k] < i);
        g_string_append(text, k > 0 ? "," : "");
        append_term(text, expression, names, term->operands[k]);
    }
    g_string_append_c(text, ')');
}

static void assert_reads(const char *text, const char *arguments, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = g_strsplit(arguments, " ", -1);
    g_autoptr(MtfExpression) expression =
        mtf_expression_read(text, arguments, (int)g_strv_length(names), &error);
    if (expression == NULL)
        fail_msg("%s: %s", text, error->message);
    g_autoptr(GString) calls = g_string_new(NULL);
    append_term(calls, expression, (const char *const *)names, expression->n - 1);
    assert_string_equal(calls->str, expected);
}

static void assert_refused(const char *text, const char *arguments, int n_inputs,
                           const char *message) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_expression_read(text, arguments, n_inputs, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
}

TEST(signs_bind_as_in_algebra) {
    assert_reads("x", "x", "x");
    assert_reads("x * sigmoid(y) + 0.5 * max(x, 0)", "x y",
                 "add(multiply(x,sigmoid(y)),multiply(0.5,maximum(x,0)))");
    assert_reads("x - y - 1", "x y", "subtract(subtract(x,y),1)");
    assert_reads("x - (y - 1)", "x y", "subtract(x,subtract(y,1))");
    assert_reads("x / y * 2", "x y", "multiply(divide(x,y),2)");
    assert_reads("x + y * x", "x y", "add(x,multiply(y,x))");
    assert_reads("-x ^ 2", "x", "negate(pow(x,2))");
    assert_reads("x ^ y ^ -1", "x y", "pow(x,pow(y,-1))");
    assert_reads("- - x", "x", "negate(negate(x))");
    assert_reads("x*-y", "x y", "multiply(x,negate(y))");
    assert_reads(".5*x+1e-3", "x", "add(multiply(0.5,x),0.001)");
}

TEST(comparisons_are_numbers_that_are_0_or_1) {
    assert_reads("x < y + 1", "x y", "less(x,add(y,1))");
    assert_reads("x > y", "x y", "less(y,x)");
    assert_reads("x >= y", "x y", "less_equal(y,x)");
    assert_reads("x != y", "x y", "logical_not(equal(x,y))");
    assert_reads("x <= 1 && !(y == 2) || x > 3", "x y",
                 "maximum(multiply(less_equal(x,1),logical_not(equal(y,2))),less(3,x))");
    assert_reads("x && y < 1", "x y", "multiply(logical_not(logical_not(x)),less(y,1))");
    assert_reads("where(x > 0, x, leaky_relu(y))", "x y", "where(less(0,x),x,leaky_relu(y))");
}

TEST(numbers_are_computed_at_once) {
    assert_reads("(2 * 3 - 4) / 8 * x + -(1)", "x", "add(multiply(0.25,x),-1)");
}

TEST(what_occurs_twice_is_one_term) {
    g_autoptr(MtfExpression) expression =
        mtf_expression_read("x*sigmoid(y) + 0.5*sigmoid( y )", "x y", 2, NULL);
    assert_int_equal(expression->n, 7);
}

TEST(names_are_those_of_arguments_before_those_of_functions) {
    assert_reads("max(max, exp)", "max exp", "maximum(max,exp)");
}

TEST(what_is_wrong_is_told_with_its_column) {
    assert_refused("x * yy", "x y", 2, "column 5: \"yy\" is none of the arguments, x, y");
    assert_refused("2 * sigmod(x)", "x", 1,
                   "column 5: \"sigmod\" is no function of elements (did you mean \"sigmoid\"?)");
    assert_refused("softmax(x)", "x", 1, "column 1: \"softmax\" is no function of elements");
    assert_refused("relu_grad(x, x)", "x", 1, "column 1: \"relu_grad\" is no function of elements");
    assert_refused("dropout(x)", "x", 1, "column 1: \"dropout\" is no function of elements");
    assert_refused("2 * (x + 1", "x", 1, "column 5: this parenthesis is not closed");
    assert_refused("max(x, 1", "x", 1, "column 4: this parenthesis is not closed");
    assert_refused("(x x)", "x", 1,
                   "column 4: a sign or the end of the parenthesis should stand here");
    assert_refused("x + 1)", "x", 1, "column 6: this parenthesis closes nothing");
    assert_refused("x y", "x y", 2, "column 3: a sign should stand here");
    assert_refused(
        "", "x", 1,
        "column 1: a number, an argument, a function or a parenthesis should stand here");
    assert_refused(
        "x +", "x", 1,
        "column 4: a number, an argument, a function or a parenthesis should stand here");
    assert_refused(
        "exp()", "x", 1,
        "column 5: a number, an argument, a function or a parenthesis should stand here");
    assert_refused("max(x)", "x", 1, "column 1: max takes 2 arguments, not 1");
    assert_refused("1 + exp(x, x)", "x", 1, "column 5: exp takes 1 argument, not 2");
    assert_refused("where(x, 1, 2, 3)", "x", 1, "column 1: where takes 3 arguments, not 4");
    assert_refused("x < 1 < 2", "x", 1, "column 7: a comparison of a comparison; join two by &&");
    assert_refused("x / (1 - 1)", "x", 1, "column 3: this divides by 0");
    assert_refused("x * 1e999", "x", 1, "column 5: this is no finite number");
    assert_refused("x * .", "x", 1, "column 5: a number has digits");
    assert_refused(
        "x ** 2", "x", 1,
        "column 4: a number, an argument, a function or a parenthesis should stand here");
}

TEST(arguments_are_the_inputs) {
    assert_refused("x", "x y", 1, "it has 2 arguments and 1 inputs");
    assert_refused("x", "x y", 2, "its expression does not use the argument \"y\"");
    assert_refused("x", "x x", 2, "two of its arguments are called \"x\"");
    assert_refused(
        "x", "layer/x", 1,
        "\"layer/x\" is no name for an expression (letters, digits and _); \"arguments\" "
        "may give the inputs others, between single spaces");
}

TEST(what_is_too_deep_or_too_long_is_told) {
    g_autofree char *open = g_strnfill(100000, '(');
    assert_refused(open, "x", 1, "column 65: this is nested deeper than 64");
    g_autofree char *minus = g_strnfill(100000, '-');
    assert_refused(minus, "x", 1, "column 65: this is nested deeper than 64");
    g_autoptr(GString) sum = g_string_new("x");
    for (int i = 0; i < 1000; i++)
        g_string_append(sum, "+x");
    g_autoptr(GError) error = NULL;
    assert_null(mtf_expression_read(sum->str, "x", 1, &error));
    assert_non_null(strstr(error->message, "this is too long, it has more than 1000 terms"));
}
