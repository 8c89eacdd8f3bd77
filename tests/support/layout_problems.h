// SPDX-License-Identifier: GPL-3.0-or-later
/* Small random layout problems and their naive twin: exhaustive search over every choice. */
#ifndef MTF_TESTS_LAYOUT_PROBLEMS_H
#define MTF_TESTS_LAYOUT_PROBLEMS_H

#include "analyzer/layout_problem.h"

/* A problem of at most 7 nodes and 4 strategies, drawn so that ties, impossible entries, follow
 * edges, parallel edges, isolated nodes, binding limits and problems without any legal choice all
 * turn up. Two thirds have a limit. */
MtfLayoutProblem *mtf_test_random_problem(GRand *rand);

/* Whether a legal choice exists; then the least cost and such a choice. */
bool mtf_test_exhaustive_search(const MtfLayoutProblem *problem, MtfInt128 *cost, int *choice);

/* The least peak over all choices without impossible terms; -1 when there are none. */
int64_t mtf_test_least_peak(const MtfLayoutProblem *problem);

#endif
