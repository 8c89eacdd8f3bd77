// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks a claim about a core in exact arithmetic of its own: messages and prices in hand, the bound
 * of message_passing.h is added up term by term over a common denominator, as fractions are at
 * school, from the core alone. */
#ifndef MTF_TESTS_BOUND_CHECKER_H
#define MTF_TESTS_BOUND_CHECKER_H

#include "analyzer/solver/bounds/exact_bound.h"

/* Whether the point of `exact` proves that no choice of the core costs less than `claimed`: any messages do,
 * but a price below zero, which would pay for memory left over, proves nothing. */
bool mtf_test_bound_holds(const MtfCore *core, const MtfExactBound *exact, int64_t claimed);

#endif
