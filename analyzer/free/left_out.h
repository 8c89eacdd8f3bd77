// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory that a problem of free layouts leaves out (free_problem.h): copies made while resharding, other gathered
 * copies and scratch. Where a choice turned out too large, what it had of that is counted, and the problem is searched
 * again:
 *
 *     bytes            limit
 *       ^    ____________________________
 *       |         ▒▒        ▒▒             left out at two operations
 *       |      __█████____█████___
 *       |   ███████████████████████████    slices that the problem counts
 *       +-------------------------------> operation
 *
 * What the resharding that takes most there needs depends on the two strategies that it lies between: a node between
 * these has a value for each strategy of the one and each amount, which it takes while the operation runs, and which
 * the other's strategies allow that need no more.
 *
 *     from ──same strategy──► (strategy of from, bytes) ──needs no more──► to
 *
 * The rest is taken to be the same whatever is chosen, so that nothing is proven by such a search. */
#ifndef MTF_LEFT_OUT_H
#define MTF_LEFT_OUT_H

#include "analyzer/free/free_problem.h"

typedef struct MtfLeftOut MtfLeftOut;

/* Nothing yet of a problem, which must outlive it. */
MtfLeftOut *mtf_left_out_new(const MtfFreeProblem *problem);
void mtf_left_out_free(MtfLeftOut *left);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLeftOut, mtf_left_out_free)

/* Notes what the program of a choice had, whose arena of `arena_bytes` exceeds `limit`: so much that the choice does
 * not fit what is posed after. */
void mtf_left_out_note(MtfLeftOut *left, const int *choice, const MtfProgram *program,
                       int64_t arena_bytes, int64_t limit);

/* The problem without a limit, and nodes behind its own for what was noted. */
MtfLayoutProblem *mtf_left_out_pose(const MtfLeftOut *left);

/* The same choice of what is posed. */
int *mtf_left_out_choice(const MtfLeftOut *left, const int *choice);

#endif
