// SPDX-License-Identifier: GPL-3.0-or-later
/* Solves a small core exactly, as an integer program in marginal form (analyzer/solver/search/core_ilp.c opens
 * with it). Memory rows are added only when an answer breaks them. */
#ifndef MTF_CORE_ILP_H
#define MTF_CORE_ILP_H

#include "analyzer/solver/problem/ilp.h"
#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfCoreIlpAnswer {
    MtfIlpStatus status;
    double bound; /* in core costs */
} MtfCoreIlpAnswer;

/* Fills `values` (indexed as in the core) when the status is OPTIMAL or FEASIBLE, after which they
 * are legal. `start` (or NULL) holds legal values. Of the options,
 * `separate` and `user` are set here. False with an error when GLPK fails. */
bool mtf_core_ilp_solve(const MtfCore *core, const MtfIlpOptions *options, const int *start,
                        int *values, MtfCoreIlpAnswer *answer, GError **error);

/* The number of variables that the program would have. */
int64_t mtf_core_ilp_size(const MtfCore *core);

#endif
