// SPDX-License-Identifier: GPL-3.0-or-later
/* A lower bound by message passing under memory prices. With a price y_r >= 0 for each memory row
 * the limit moves into the costs (Lagrange), and what is left is a sum of node and edge terms:
 *
 *     bound(y, m) = constant - sum_r y_r capacity_r
 *                   + sum_v min_p ( cost_v[p] + sum_r y_r usage_vr[p] + sum_e m_ev[p] )
 *                   + sum_e min_pq ( cost_e[p,q] - m_ea[p] - m_eb[q] )
 *
 * It is a bound for every price and every message m. One pass in node order and one back raise it
 * by sequential tree-reweighted message passing (Kolmogorov, PAMI 28(10), 2006): a node keeps the
 * minimum of what it knows and sends equal shares of the rest ahead,
 *
 *     share = 1 / max(edges ahead, edges behind)
 *     m_ew[q] = min_p ( share * (theta_v[p] - min theta_v) - m_ev[p] + cost_e[p,q] )
 *
 * All of it is a rewriting of the same costs, which can be written back into the core in whole
 * numbers (soft arc consistency), so that later steps start from where this one stopped. What a
 * bound proves is computed in whole numbers, too, by exact_bound.h. */
#ifndef MTF_MESSAGE_PASSING_H
#define MTF_MESSAGE_PASSING_H

#include "analyzer/solver/reduce/layer_quotient.h"

typedef struct MtfMessages MtfMessages;

/* Copies what it needs; the core's later changes do not show. Prices start at zero. */
MtfMessages *mtf_messages_new(const MtfCore *core);

/* Messages of a quotient, which must outlive them. Nodes pay the mean price of their copies, and a pass
 * returns what the bound of the whole would be if every copy were alike: an estimate, no bound. */
MtfMessages *mtf_messages_new_of_quotient(const MtfLayerQuotient *quotient);

/* Carries the messages of a quotient to the messages of its whole core, at the same prices. */
void mtf_messages_expand(MtfMessages *messages, const MtfMessages *folded);

void mtf_messages_free(MtfMessages *messages);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfMessages, mtf_messages_free)

/* Sets the price of every row (price[r] >= 0), in cost per unit of memory. */
void mtf_messages_set_prices(MtfMessages *messages, const double *price);

/* One pass in node order and one back. Returns the bound after it, in core costs, as far as doubles
 * can tell: exact_bound.h says what is proven. */
double mtf_messages_pass(MtfMessages *messages);

/* A copy of all messages and of what the last pass made of them, into `saved` where that is a copy
 * of the same messages, else (NULL) into a new one, to be freed by g_free; and back to them. Prices
 * are not in it. */
double *mtf_messages_save(const MtfMessages *messages, double *saved);
void mtf_messages_restore(MtfMessages *messages, const double *saved);

/* How many numbers such a copy has. */
gsize mtf_messages_state_size(const MtfMessages *messages);

/* Moves the messages on in the direction from an earlier state to where they are, `times` as far again. */
void mtf_messages_leap(MtfMessages *messages, const double *from, double times);

/* Lets a node of the core take that value alone, until it is released. */
void mtf_messages_clamp(MtfMessages *messages, int node, int value);
void mtf_messages_unclamp(MtfMessages *messages, int node);

/* Takes the value from the node for good. */
void mtf_messages_forbid(MtfMessages *messages, int node, int value);

/* Reads values from the messages, node after node, each best beside those before it; values is
 * indexed as in the core. False when a node had only impossible values left. */
bool mtf_messages_decode(MtfMessages *messages, int *values);

/* Writes the messages, in whole numbers, into the core's costs; every choice keeps its cost. */
void mtf_messages_reparametrize(const MtfMessages *messages, MtfCore *core);

#endif
