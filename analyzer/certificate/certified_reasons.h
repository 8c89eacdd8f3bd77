// SPDX-License-Identifier: GPL-3.0-or-later
/* Why a value of a node may go, and when nothing is left:
 *
 *     impossible   by itself, or without a possible partner across some edge
 *     too large    beside the least of all other nodes it overfills a row
 *     replaced     another value never costs more, whatever the neighbours take, and is never larger */
#ifndef MTF_CERTIFIED_REASONS_H
#define MTF_CERTIFIED_REASONS_H

#include "analyzer/certificate/certified_problem.h"

/* Whether one of the first two reasons holds for the value. */
bool mtf_certified_is_impossible(const MtfCertifiedProblem *problem, int node, int value);
bool mtf_certified_is_too_large(MtfCertifiedProblem *problem, int node, int value);

/* Whether a value p with kept[p] replaces the value. */
bool mtf_certified_is_replaced(const MtfCertifiedProblem *problem, int node, const bool *kept,
                               int value);

/* Whether the value is impossible or too large. */
bool mtf_certified_is_useless(MtfCertifiedProblem *problem, int node, int value);

/* Makes a value impossible, for reasons of the caller's; `is_dead` where it was the last. */
void mtf_certified_exclude(MtfCertifiedProblem *problem, int node, int value);

/* Whether a node has no value left, or some row is overfull whatever is chosen. */
bool mtf_certified_check_dead(MtfCertifiedProblem *problem);

#endif
