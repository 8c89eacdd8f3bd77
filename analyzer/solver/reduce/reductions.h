// SPDX-License-Identifier: GPL-3.0-or-later
/* Exact shrinking of a core, one file an idea. Each function returns whether it changed something;
 * the optimum of what is left, lifted back, is an optimum of the problem (property tests compare
 * with exhaustive search). They feed one another, so mtf_reduce_all runs them in turn until none
 * of them finds anything:
 *
 *     consistency   a value without a possible partner across some edge, or too big for a row
 *     contraction   a node whose value another node determines merges into it
 *     separation    an edge whose costs are a sum of one for each end goes
 *     elimination   a node without memory and with at most two neighbours folds into them
 *     dominance     a value never cheaper and never smaller than another one
 *     rows          time points that cannot bind; memory that every choice needs */
#ifndef MTF_REDUCTIONS_H
#define MTF_REDUCTIONS_H

#include "analyzer/solver/problem/search_control.h"
#include "analyzer/solver/reduce/layout_core.h"

/* One idea each, over the whole core. */
bool mtf_reduce_consistency(MtfCore *core);
bool mtf_reduce_contraction(MtfCore *core);
bool mtf_reduce_separation(MtfCore *core);
bool mtf_reduce_elimination(MtfCore *core);
bool mtf_reduce_dominance(MtfCore *core);
bool mtf_reduce_rows(MtfCore *core);

/* Only the rows r with keep[r] count from here on: an easier problem, whose bounds hold for the core as it
 * was, and whose choices may not. */
void mtf_core_relax_rows(MtfCore *core, const bool *keep);

/* All of them in turn. The control (or NULL) is asked between steps; an end leaves a core that is valid
 * and less reduced. */
void mtf_reduce_all(MtfCore *core, const MtfSearchControl *control);

#endif
