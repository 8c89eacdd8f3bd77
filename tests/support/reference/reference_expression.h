// SPDX-License-Identifier: GPL-3.0-or-later
/* The value of an expression at one point, by climbing the precedence of its signs over the text: no terms,
 * no rows. Expects what mtf_expression_read has accepted. */
#ifndef MTF_TESTS_REFERENCE_EXPRESSION_H
#define MTF_TESTS_REFERENCE_EXPRESSION_H

/* `arguments` are names between spaces, `values` what they are at this point. */
double mtf_reference_expression(const char *text, const char *arguments, const double *values);

#endif
