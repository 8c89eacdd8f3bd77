// SPDX-License-Identifier: GPL-3.0-or-later
/* A formula over the inputs of one operation, read into terms, each an elementwise row of the operation
 * table applied to terms before it; the last one is the result, and equal ones are one:
 *
 *     x * sigmoid(y) + 0.5 * sigmoid(y)       0: argument 0          3: multiply of 0 and 2
 *                                             1: argument 1          4: number 0.5
 *                                             2: sigmoid of 1        5: multiply of 4 and 2
 *                                                                    6: add of 3 and 5
 *
 * Signs, the loosest first: || && then == != < <= > >= (one alone), + - then * / then - ! before a
 * term, and ^ (from the right: a^b^c = a^(b^c), -a^b = -(a^b)). Functions are called by the names of
 * rows; `max`, `min` stand for maximum, minimum. */
#ifndef MTF_EXPRESSION_H
#define MTF_EXPRESSION_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    MTF_TERM_NUMBER,
    MTF_TERM_ARGUMENT,
    MTF_TERM_APPLICATION,
} MtfExpressionTermKind;

#define MTF_MAX_OPERANDS 3

typedef struct {
    MtfExpressionTermKind kind;
    double number;
    int argument;  /* which input */
    int operation; /* MtfOperationKind, of … */
    int n_operands;
    int operands[MTF_MAX_OPERANDS]; /* … terms */
    char sign;                      /* by which it is written, + - * / ^; 0: it has none */
    bool truth;                     /* written so that it is 0 or 1 everywhere */
} MtfExpressionTerm;

typedef struct {
    int n; /* at least 1 */
    MtfExpressionTerm *terms;
} MtfExpression;

/* Reads a formula whose arguments, names between single spaces, are the inputs in order; each occurs in
 * it. Fails with a bad-input error that says the column, counted from 1. */
MtfExpression *mtf_expression_read(const char *text, const char *arguments, int n_inputs,
                                   GError **error);

void mtf_expression_free(MtfExpression *expression);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfExpression, mtf_expression_free)

#endif
