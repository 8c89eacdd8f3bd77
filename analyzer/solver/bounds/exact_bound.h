// SPDX-License-Identifier: GPL-3.0-or-later
/* What messages and prices prove, in whole numbers. Message passing works in doubles, which say
 * where to look and prove nothing; here its messages and prices are rounded to whole multiples of
 * 2^-shift of a core cost, which are messages and prices like any others, and their bound
 *
 *     bound = constant - sum_r Y_r capacity_r
 *           + sum_v min_p  theta_v[p],   theta_v[p] = cost_v[p] + sum_r Y_r usage_vr[p] + sum_e M_ev[p]
 *           + sum_e min_pq held_e[p,q],  held_e[p,q] = cost_e[p,q] - M_ea[p] - M_eb[q]
 *
 * is computed without any rounding but downwards, in 64 and 128 bits. So are the regrets, by which
 * the bound rises at least where a node takes a value:
 *
 *     regret_v[p] = theta_v[p] - min theta_v + sum_e ( min_q held_e[p,q] - min held_e )
 *
 * A choice costs a whole number, so the bound counts as the next whole number above it. */
#ifndef MTF_EXACT_BOUND_H
#define MTF_EXACT_BOUND_H

#include "analyzer/solver/bounds/message_passing.h"

/* A cutoff that excludes nothing. */
#define MTF_NO_CUTOFF (MTF_CORE_IMPOSSIBLE - 1)

/* The regret of a value that is impossible; others stay below it, however large. */
#define MTF_REGRET_NEVER (INT64_C(1) << 60)

typedef struct MtfExactBound MtfExactBound;

/* Makes room for the bounds of these messages, which must be those of their core and not folded.
 * The messages and their core must outlive it. */
MtfExactBound *mtf_exact_bound_new(const MtfMessages *messages);
void mtf_exact_bound_free(MtfExactBound *exact);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfExactBound, mtf_exact_bound_free)

/* Computes the bound and all regrets of the messages as their last pass left them, over the values
 * that are neither held back nor forbidden. */
void mtf_exact_bound_update(MtfExactBound *exact);

/* The bound in core costs: no choice of those values costs less. MTF_CORE_IMPOSSIBLE where none is
 * possible, and at least -MTF_CORE_IMPOSSIBLE, which says nothing. */
int64_t mtf_exact_bound_cost(const MtfExactBound *exact);

/* The regrets of a node's values, in multiples of 2^-shift. Owned by the bound. */
const int64_t *mtf_exact_bound_regrets(const MtfExactBound *exact, int node);

/* The largest regret that a choice of at most `cutoff` can have anywhere; negative where there is no
 * such choice. */
int64_t mtf_exact_bound_slack(const MtfExactBound *exact, int64_t cutoff);

/* Forbids in the core, which must be the messages' own, what no choice of at most `cutoff` can use:
 * values and matrix entries. True when it found some. */
bool mtf_exact_bound_prune(const MtfExactBound *exact, MtfCore *core, int64_t cutoff);

/* The rounded point itself, for checkers: all in multiples of 2^-shift, prices per unit of memory
 * in multiples of 2^-price_shift. */
int mtf_exact_bound_shift(const MtfExactBound *exact);
int mtf_exact_bound_price_shift(const MtfExactBound *exact);
int64_t mtf_exact_bound_price(const MtfExactBound *exact, int row);

/* The message of an edge to its end at that node, [values of the node]. */
const int64_t *mtf_exact_bound_message(const MtfExactBound *exact, int edge, int node);

#endif
