// SPDX-License-Identifier: GPL-3.0-or-later
/* One round of the search: some steps of the bound, with the local search and the improvers beside
 * them, then whatever they made worth while: a guess, probing, shrinking, joining nodes, elimination,
 * branches, the integer program. Private to layout_solve.c. */
#ifndef MTF_SOLVE_ROUND_H
#define MTF_SOLVE_ROUND_H

#include "analyzer/solver/search/solver_state.h"

/* Before the first round. */
void mtf_solver_begin_rounds(MtfSolver *solver);

/* Runs one, with the improvers beside it if it has any; what it found is in the solver. */
void mtf_solver_round(MtfSolver *solver);

/* Waits for the improvers and takes over what they found since the last round. */
void mtf_solver_end_improving(MtfSolver *solver);

/* Hands the values decoded last to the next round's local search. */
void mtf_solver_queue_job(MtfSolver *solver);

/* Lets it work on what is queued, if anything is, once no round follows. */
void mtf_solver_last_job(MtfSolver *solver);

#endif
