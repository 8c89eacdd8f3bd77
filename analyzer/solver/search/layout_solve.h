// SPDX-License-Identifier: GPL-3.0-or-later
/* Solves layout problems: the cheapest choice found, a lower bound that no choice beats, and what
 * proved it.
 *
 *     problem -> exact shrinking -> rounds of { bound, decoded choices, local search } --+
 *                      ^                                                                 |
 *                      +--- values that cannot beat the best choice are forbidden <------+
 *          beside it, in other threads: large neighbourhoods of the best choice
 *               bound settled: guesses of the optimum
 *               small: values are probed; still stuck: nodes are joined, then branched on
 *
 * The same problem, seed and work limit give the same answer; a limit in seconds cuts the same
 * sequence of rounds at a moment that depends on the machine. */
#ifndef MTF_LAYOUT_SOLVE_H
#define MTF_LAYOUT_SOLVE_H

#include "analyzer/solver/problem/certificate.h"
#include "analyzer/solver/problem/layout_problem.h"
#include "analyzer/solver/problem/row_prices.h"
#include "analyzer/solver/problem/search_control.h"
#include "analyzer/solver/search/solve_methods.h"

typedef struct MtfSolveOptions {
    int64_t work;        /* limit in rounds, the same on every machine; 0 = none */
    double program_work; /* of a limit of work: what one try at an integer program may take, as of
                          * ilp.h; 0: a standard amount */
    double gap;          /* stop when (cost - bound) <= gap |cost|; 0 = until proven optimal */
    guint64 seed;        /* of the local search */
    int threads; /* 2 and more search beside the bound; 0 or 1 takes turns. Without a limit in
                       * seconds the answer does not depend on it */
    MtfSolveMethods without; /* methods that are left out */
    /* A choice to begin with, or NULL; where it takes too much memory, with one near it, if there is; ignored
     * where it is impossible. */
    const int *start;
    const MtfInt128 *known_bound; /* no legal choice costs less; NULL: nothing is known */
    const int *leader; /* for each node one of as many strategies that it takes the same as, itself
                        * or one that follows no other: only such choices count, for the bound, too;
                        * NULL: all do */
    bool draft;        /* ends with the best choice in which repeated layers are alike, without
                          a bound, where there are such */
    /* That memory begins with, as of a draft of this problem, or of one like it, whose choice `start` is: alike
     * layers are not searched again; or NULL. */
    const MtfRowPrices *prices;
    bool no_infeasibility;       /* when nothing fits, say only that */
    MtfCertificate *certificate; /* an empty one, which gets what proves all that is claimed: the
                                    bound, which has no tolerance then, or what is needed where
                                    nothing fits (certificate.h); NULL: none is kept. Not with
                                    leaders or a `known_bound` */
    MtfSearchControl *control;   /* time, and who listens; or NULL. Told: the bound; and, before
                                    there is one, what it would come to if repeated layers were
                                    alike */
} MtfSolveOptions;

typedef struct MtfLayoutSolution {
    int *choice; /* one strategy for each node */
    MtfInt128 cost;
    MtfInt128 bound;  /* no legal choice costs less; equal to cost when optimal */
    double tolerance; /* 0: the bound is proven in whole numbers; else it is a solver's in doubles,
                         * less this tolerance */
    double gap;       /* (cost - bound) / |cost|; 0 when optimal */
    const char *method; /* what gave the bound: "shrinking", "message passing", "branch and bound",
                         * "integer program" (the one with a tolerance) */
    double seconds;
    MtfRowPrices *
        prices; /* of its memory at last, for whoever proves it or searches more layers; NULL: of no draft
                           * or dual */
} MtfLayoutSolution;

/* Why nothing fits: found by mtf_layout_solve when it fails with MTF_ERROR_FIT. */
typedef struct MtfInfeasibility {
    bool possible;  /* false: no choice is possible whatever the limit; the rest is then unset */
    int64_t time;   /* where the choice of least peak found peaks */
    int64_t enough; /* the smallest limit found that would do */
    int64_t needed; /* proven: no smaller limit would do */
    int *nodes;     /* the nodes that make that peak, the largest first; g_free */
    int node_count;
} MtfInfeasibility;

/* Returns the best choice found, to be freed by mtf_layout_solution_free. NULL with MTF_ERROR_FIT
 * when it is proven that nothing fits (then `infeasibility`, when not NULL, is filled), and with
 * MTF_ERROR_FAILED when the limits ended the search before any legal choice was found.
 * `options` may be NULL. */
MtfLayoutSolution *mtf_layout_solve(const MtfLayoutProblem *problem, const MtfSolveOptions *options,
                                    MtfInfeasibility *infeasibility, GError **error);
void mtf_layout_solution_free(MtfLayoutSolution *solution);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayoutSolution, mtf_layout_solution_free)

/* What the best choice would be if `node` could not take the strategy it has in `solution`: its
 * cost minus the solution's is the price of the next best strategy, everything else chosen anew.
 * The same answers and errors as mtf_layout_solve; MTF_ERROR_FIT says there is no other. */
MtfLayoutSolution *mtf_layout_solve_next_best(const MtfLayoutProblem *problem,
                                              const MtfLayoutSolution *solution, int node,
                                              const MtfSolveOptions *options, GError **error);

#endif
