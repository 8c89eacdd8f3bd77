// SPDX-License-Identifier: GPL-3.0-or-later
/* What the methods of mtf_layout_solve work on: one core, one bound and one best choice.
 *
 *     problem ◄──lift── base (before any cutoff) ◄──lift── core (as it is now)
 *     choice, cost      base_values                        values, cutoff, bound
 *
 * Private to layout_solve.c and solve_round.c. */
#ifndef MTF_SOLVER_STATE_H
#define MTF_SOLVER_STATE_H

#include "analyzer/solver/bounds/dual_ascent.h"
#include "analyzer/solver/search/branch_and_bound.h"
#include "analyzer/solver/search/improvers.h"
#include "analyzer/solver/search/layout_solve.h"
#include "analyzer/solver/search/local_search.h"
#include "analyzer/solver/search/neighbourhoods.h"
#include "analyzer/solver/search/relaxed_bound.h"

typedef struct MtfSolver {
    const MtfLayoutProblem *problem;
    const MtfSolveOptions *options;
    MtfCore *core;
    MtfDual *dual;
    MtfSearchControl control; /* of the caller's a part, whose time is granted */
    gint64 begin;             /* monotonic microseconds */
    int *values;              /* scratch, indexed as in the core */
    int *trial;               /* scratch, a choice for the problem */
    int *choice;              /* the best one; NULL before the first */
    MtfInt128 cost;           /* of it */
    int64_t cutoff;           /* core costs above it cannot be better than `cost` */
    int64_t worst;            /* no choice costs more, in core costs */
    int64_t bound;            /* core costs; -MTF_CORE_IMPOSSIBLE: none yet */
    const char *method;
    bool proven;      /* nothing better than `cost` exists (or nothing at all) */
    bool fresh;       /* `cost` improved since the last shrinking */
    int unshrunk;     /* steps since the last shrinking */
    double last_gap;  /* at the last shrinking */
    double noted_gap; /* when it last became noticeably smaller, */
    int stale_rounds; /* rounds since then */
    double hard;      /* size of the core when probing last left little; INFINITY: not yet */
    double guess;     /* the share of the gap that a guess lies above the bound */
    int guess_rounds, guess_wait; /* since the last guess; before the next */
    double guess_bound;           /* the bound of the round before */
    MtfBranching *branching;      /* of the core as it is; NULL after a shrinking */
    double *weights;              /* of its nodes */
    int branch_rounds;
    double elimination_work;                  /* of the next elimination */
    double early_elimination;                 /* all else waits for up to so much; 0: no more */
    double elimination_share;                 /* of the gap, above the bound, where its cutoff is */
    int elimination_wait, elimination_rounds; /* between two; since the last one */
    bool too_wide;                            /* the core was, for the last elimination */
    bool ilp_tried;
    double inexact;        /* a bound to the integer program's tolerance */
    int pairings;          /* since a better choice */
    double pair_bound;     /* before the last one */
    double look_bound;     /* of a wide core, */
    int look_rounds;       /* as it was this many rounds ago */
    bool paired;           /* there is nothing more to join */
    MtfLocalSearch *local; /* of the core as it is; NULL after a shrinking */
    int *job;              /* values that the local search works on beside the bound */
    bool decoded;          /* the last decoded values are possible edge by edge */
    bool job_ready;        /* the job holds decoded values */
    bool job_legal;        /* its result is legal */
    double *job_price;
    MtfCore *base; /* the core before any cutoff, after `base_steps` on its trail */
    guint base_steps;
    int *base_values; /* the best choice's, once `based`; those of a trial in `base_trial` */
    int *base_trial;
    bool based;
    MtfRelaxedBound *relaxed; /* of the core, which stays as it is as long; NULL: none */
    bool was_relaxed;
    MtfImprovers *improvers; /* of the base */
    MtfNeighbourhoods *near; /* likewise, where work is limited */
    guint64 jobs;            /* done so far */
    MtfRowPrices *prices;    /* that the bound begins with; or NULL */
} MtfSolver;

/* Whether the caller left a method in. */
bool mtf_solver_may_use(const MtfSolver *solver, MtfSolveMethods method);

/* Whether a better answer elsewhere makes the search useless; whether it is to end. */
bool mtf_solver_is_abandoned(const MtfSolver *solver);
bool mtf_solver_is_over(const MtfSolver *solver);

/* Takes over a choice for the problem when it is legal and better. */
void mtf_solver_offer(MtfSolver *solver, const int *choice);

/* The same for values of the core as it was before any cutoff. */
void mtf_solver_offer_base_values(MtfSolver *solver, const int *values);

/* The same for values of the core. */
void mtf_solver_offer_values(MtfSolver *solver, const int *values);

/* Takes over a bound in core costs that a method has proven, where it is better. */
void mtf_solver_raise_bound(MtfSolver *solver, int64_t bound, const char *method);

/* Relative distance between the cost and the bound; infinite before there is a choice. */
double mtf_solver_gap(const MtfSolver *solver);

/* The core became empty or impossible: what is left to say about it. */
void mtf_solver_note_end(MtfSolver *solver, const char *method);

/* Whether the core is empty or impossible. */
bool mtf_solver_core_is_done(const MtfSolver *solver);

/* Whether the gap asked for is reached. */
bool mtf_solver_is_good_enough(const MtfSolver *solver);

/* Where the bound is what branches not searched to their end prove, the certificate says so. */
void mtf_solver_drop_branching(MtfSolver *solver);

#endif
