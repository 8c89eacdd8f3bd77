// SPDX-License-Identifier: GPL-3.0-or-later
/* Branch and bound on a core: a node takes each of its values in turn, messages are passed on below
 * the price of the memory, and what whole numbers prove useless there (exact_bound.h), or what no
 * longer fits, is shut.
 *
 *     node 7: value 2 first ---- node 31: ... ---- nothing left below the cutoff
 *               | then 0                  ... ---- a choice: the caller lowers the cutoff
 *               x 1: regret above the slack
 *
 * Depth first, the value of least regret first. Branches at nodes of many neighbours, those where
 * branches ended before first, since fixing them leaves a core of fewer cycles (the weights of
 * Boussemart et al., ECAI 2004). Work is counted, so a search can be cut into rounds. */
#ifndef MTF_BRANCH_AND_BOUND_H
#define MTF_BRANCH_AND_BOUND_H

#include "analyzer/solver/bounds/message_passing.h"

typedef struct MtfBranching MtfBranching;

typedef enum {
    MTF_BRANCH_OPEN,  /* the work is used up */
    MTF_BRANCH_FOUND, /* a choice within the cutoff; the search can go on below it */
    MTF_BRANCH_DONE,  /* no other choice is within the cutoff: proven */
} MtfBranchStatus;

/* Searches the core of `messages`, takes the messages over, and begins with them and their prices.
 * The core must outlive it unchanged. `weights`, indexed as in the core, are the caller's, zero at
 * first, and outlive it too. */
MtfBranching *mtf_branching_new(MtfMessages *messages, double *weights, guint64 seed);
void mtf_branching_free(MtfBranching *branching);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfBranching, mtf_branching_free)

/* Goes on for `work` more matrix entries passed, looking for choices of at most `cutoff`, which may only
 * fall from call to call. Fills `values`, legal and indexed as in the core, when it found some. */
MtfBranchStatus mtf_branching_run(MtfBranching *branching, int64_t cutoff, int64_t work,
                                  int *values);

/* What the last run left of its work. */
int64_t mtf_branching_work_left(const MtfBranching *branching);

/* What is proven so far: no choice costs less than this or, where that is less, than one more than
 * the last cutoff. */
int64_t mtf_branching_bound(const MtfBranching *branching);

/* Says in the core's certificate what proves that bound of a search that is not at its end, and ends it:
 * with this bound for a cutoff every branch is closed. Where it came to its end it has said so itself. */
void mtf_branching_certify(MtfBranching *branching);

#endif
