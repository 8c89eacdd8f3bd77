// SPDX-License-Identifier: GPL-3.0-or-later
/* Layout problems of the shape that the IOPDDL contest's have, of any size and with a legal choice
 * planted in each: chains of operations with edges to later ones, most nodes leaves that follow
 * another by edges of 0 and impossible entries, memory that lasts a while. */
#ifndef MTF_TESTS_CONTEST_PROBLEMS_H
#define MTF_TESTS_CONTEST_PROBLEMS_H

#include "analyzer/solver/problem/layout_problem.h"

typedef struct {
    int nodes, strategies; /* at most 20 strategies a node */
    double follows;        /* share of the nodes that follow another one */
    double impossible;     /* share of the entries of other edges and of costs */
    double slack;          /* the limit over the peak of the planted choice; 0: no limit */
    int64_t times;         /* time points; 1: all memory in one */
    int64_t life;          /* how long memory lasts, at most */
    int64_t most_cost;     /* of a node or an entry */
    int usages;            /* how many different usages there are; 0: many */
} MtfContestShape;

/* The planted choice takes the least usage of every node, so its peak is the smallest possible;
 * `choice` [nodes] gets it. */
MtfLayoutProblem *mtf_test_contest_problem(const MtfContestShape *shape, GRand *rand, int *choice);

#endif
