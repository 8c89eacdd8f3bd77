// SPDX-License-Identifier: GPL-3.0-or-later
/* Small random layout problems and their naive twin: exhaustive search over every choice. */
#ifndef MTF_TESTS_LAYOUT_PROBLEMS_H
#define MTF_TESTS_LAYOUT_PROBLEMS_H

#include "analyzer/solver/problem/layout_problem.h"

/* A problem of at most 7 nodes and 4 strategies, drawn so that ties, impossible entries, follow
 * edges, parallel edges, isolated nodes, binding limits and problems without any legal choice all
 * turn up. Two thirds have a limit. */
MtfLayoutProblem *mtf_test_random_problem(GRand *rand);

/* Such a problem with every possible cost times `factor` and up to `spread` more, drawn for each
 * cost: ties become near ties, which doubles and tolerances do not see where the factor is
 * large. Costs stay below 4e3 times the factor. */
MtfLayoutProblem *mtf_test_magnified_problem(GRand *rand, int64_t factor, int spread);

/* A problem of one to six equal cells of one or two nodes in a row, as a network of equal layers
 * makes: equal matrices inside the cells and between neighbours, at times an edge over one cell and
 * a node of its own at either end. Memory lives in its cell, until its mirror time (activations
 * wait for the backward pass), or always. Two thirds have a limit. */
MtfLayoutProblem *mtf_test_repeated_problem(GRand *rand);

/* Whether a legal choice exists; then the least cost and such a choice. */
bool mtf_test_exhaustive_search(const MtfLayoutProblem *problem, MtfInt128 *cost, int *choice);

/* The least peak over all choices without impossible terms; -1 when there are none. */
int64_t mtf_test_least_peak(const MtfLayoutProblem *problem);

#endif
