// SPDX-License-Identifier: GPL-3.0-or-later
/* The search over free layouts of one mesh: solves the layout problem (free_problem.h,
 * layout_solve.h), lowers the answer and packs its arena.
 *
 * The problem models memory from below, so its bound holds for all layouts that fit. When the
 * packed arena of an answer exceeds the limit, in every order of instructions that is tried
 * (cost/tune/order_search.h), what the problem left out there (left_out.h) is counted and it is solved again, a few
 * times; where nothing fits so, or nothing near what it cost without, it is solved under limits lowered by what is missing as well, and
 * the cheaper answer kept. Neither is proven optimal, but the first bound still holds. */
#ifndef MTF_FREE_SEARCH_H
#define MTF_FREE_SEARCH_H

#include "analyzer/free/incumbents.h"
#include "analyzer/solver/problem/row_prices.h"
#include "analyzer/solver/problem/search_control.h"

#define MTF_FREE_TIGHTENINGS 12

/* Decisions explained in a plan. */
#define MTF_FREE_EXPLAINED 12

typedef struct {
    int64_t memory_limit;      /* bytes of one device */
    MtfIncumbents *incumbents; /* the answer is never worse than those that fit; or NULL */
    int64_t work;           /* limit of each solve in rounds, the same on every machine; 0 = none */
    int64_t tightened_work; /* the same with memory that is left out, which proves nothing; 0 = as
                               of others, and to their gap */
    bool
        near; /* solves with memory that is left out begin near the choice that was too large, where rounds are
                  long; else anew, which comes farther */
    double program_work; /* as of MtfSolveOptions */
    double gap;          /* stop when (cost - bound) <= gap cost */
    const int *leader;   /* for each node of the problem the one that it is laid out like, as of
                            MtfSolveOptions; or NULL */
    bool begun;          /* the best incumbent is as good as alike layers: these are not looked
                               for to begin with */
    bool draft;          /* no bound where layers repeat: as of MtfSolveOptions */
    const MtfRowPrices *prices; /* of the draft that is to be proven, or of fewer layers; or NULL */
    bool no_infeasibility;      /* when nothing fits, say only that */
    bool bound_only;            /* no layout is asked for */
    double most_seconds;        /* end at a solution, fitting or not, of a longer step; 0 = none */
    double hopeless_seconds;    /* end without a layout at a solution of a longer step, before it is
                                packed; 0 = none */
    guint64 seed;
    /* Told what is found and, as of MtfSolveOptions, bounds under `memory_limit`, never those under a
     * tightened one; or NULL. A search that is abandoned ends with MTF_ERROR_FAILED. */
    MtfSearchControl *control;
} MtfFreeSearchOptions;

typedef struct {
    MtfLayout *layout;    /* NULL when none was found that fits */
    int64_t cost;         /* nanoseconds: the price of its program */
    int64_t bound;        /* no layout of this mesh that fits, in the order of the operations, has a
                            cheaper program; 0: not known, of a draft */
    int64_t arena_bytes;  /* of its program */
    double step_seconds;  /* of its program's schedule; where that is hopeless, of the solution's */
    MtfRowPrices *prices; /* of memory under `memory_limit`, as of MtfLayoutSolution; or NULL */
    int tightenings;
    bool too_slow; /* ended at a solution of a step longer than `most_seconds` */
    bool hopeless; /* ended at a solution of a step longer than `hopeless_seconds` */
    char *method;  /* what proved the bound; "none yet" where the search ended before there was
                      one */
    cJSON *why;    /* the decisions that matter, mtf_alternatives_that_matter; or NULL */
    /* When nothing fits, unless told not to: */
    int64_t limit_enough; /* the smallest arena found: a limit that would do; 0 = not known */
    int64_t limit_bound;  /* no smaller limit would, in the order of the operations */
    GPtrArray *peak;      /* names of the tensors and operations that make that peak (char *) */
} MtfFreeAnswer;

/* Searches for the cheapest free layout. True with a layout, or without one when nothing fits;
 * false on an error. The same input gives the same answer unless its control ends it.
 * Several may search one problem at once where the incumbents that fit have been measured. Clear
 * the answer in either case. */
bool mtf_free_search(const MtfFreeProblem *problem, const MtfFreeSearchOptions *options,
                     MtfFreeAnswer *answer, GError **error);
void mtf_free_answer_clear(MtfFreeAnswer *answer);

#endif
