// SPDX-License-Identifier: GPL-3.0-or-later
/* Integer programs, solved by GLPK. This pair of files is the only one that knows GLPK:
 *
 *     minimise   sum_j cost_j x_j
 *     subject to low_i <= sum_j a_ij x_j <= high_i      for every row i
 *                x_j in {0, 1}  or  low_j <= x_j <= high_j
 *
 * The program is kept in plain arrays and handed to GLPK only while it is solved, so that an error
 * inside GLPK (which would abort the process) costs one solve and nothing else. Costs and rows are
 * scaled here; callers write them in their own units, of any size but never "infinite": a choice
 * that is impossible is left out of the program.
 *
 * Root relaxation: dual simplex after presolve. Then branch and bound with the feasibility pump
 * and simple rounding, unless rows are made lazily, which those two do not see. One thread solves
 * one program at a time; several threads may solve different programs (GLPK's environment is per
 * thread). */
#ifndef MTF_ILP_H
#define MTF_ILP_H

#include "analyzer/solver/problem/search_control.h"

#include <glib.h>
#include <stdbool.h>

typedef struct MtfIlp MtfIlp;

typedef enum {
    MTF_ILP_OPTIMAL,    /* values are optimal, or within the gap that was asked for */
    MTF_ILP_FEASIBLE,   /* stopped early: values are feasible, the bound says how good */
    MTF_ILP_INFEASIBLE, /* no values satisfy the rows (proven) */
    MTF_ILP_STOPPED,    /* stopped early and without any values */
} MtfIlpStatus;

typedef struct MtfIlpOptions {
    double work; /* limit of simplex iterations times terms of rows, by no clock; 0 = none */
    double gap;  /* stop when (objective - bound) <= gap |objective|; 0 = to the end */
    const MtfSearchControl *control; /* asked a few times a second; or NULL */
    /* Lazy rows: called with the values of a relaxation; adds by mtf_ilp_add_row rows that those
     * values break. Values that no added row breaks count as satisfying all rows. */
    void (*separate)(MtfIlp *ilp, const double *values, void *user);
    void *user; /* passed to it */
} MtfIlpOptions;

/* A program without variables and rows; the caller frees it. */
MtfIlp *mtf_ilp_new(void);
void mtf_ilp_free(MtfIlp *ilp);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfIlp, mtf_ilp_free)

/* Adds a variable and returns its index, counted from 0. Bounds may be -INFINITY and INFINITY. */
int mtf_ilp_add_binary(MtfIlp *ilp, double cost);
int mtf_ilp_add_continuous(MtfIlp *ilp, double low, double high, double cost);

/* Adds the row low <= sum_k coefficients[k] x[variables[k]] <= high over `count` different
 * variables and returns its index, counted from 0. */
int mtf_ilp_add_row(MtfIlp *ilp, int count, const int *variables, const double *coefficients,
                    double low, double high);

/* How large the program is by now. */
int mtf_ilp_variable_count(const MtfIlp *ilp);
int mtf_ilp_row_count(const MtfIlp *ilp);

/* Gives the search a first incumbent, one value for each variable (copied). Returns false, and
 * changes nothing, when the values break a bound or a row by more than 1e-6 of its largest term. */
bool mtf_ilp_set_start(MtfIlp *ilp, const double *values);

/* Solves. False with an error only when the program is malformed or GLPK fails; "infeasible" and
 * "stopped" are answers. `options` may be NULL. The program can grow and be solved again. */
bool mtf_ilp_solve(MtfIlp *ilp, const MtfIlpOptions *options, GError **error);

/* The last solve's answer. `value` and `objective` need OPTIMAL or FEASIBLE; binaries are exactly
 * 0 or 1. The bound is -INFINITY before the relaxation is solved, INFINITY when infeasible. */
MtfIlpStatus mtf_ilp_status(const MtfIlp *ilp);
double mtf_ilp_value(const MtfIlp *ilp, int variable);
double mtf_ilp_objective(const MtfIlp *ilp);
double mtf_ilp_bound(const MtfIlp *ilp);

#endif
