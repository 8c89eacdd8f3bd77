// SPDX-License-Identifier: GPL-3.0-or-later
/* Prices of scopes, moved so that the sum of each scope's cheapest assignment says more. Scopes that
 * share a dimension hand one another what a place of it costs:
 *
 *     price of d on a   in scope 1: 5    in scope 2: 9        each gets 7
 *
 * after which the price of every assignment of all dimensions is what it was, in whole nanoseconds, and
 * the sum of the least is no smaller. Repeated until little is won this is block coordinate ascent on
 * the dual of the integer program's relaxation (max-sum diffusion: Werner, A linear programming
 * approach to max-sum problem, 2007), so it comes near the relaxation's bound in a small part of its time,
 * and what it says is exact. */
#ifndef MTF_RULE_SEARCH_LEVELS_H
#define MTF_RULE_SEARCH_LEVELS_H

#include "analyzer/rules/rule_search_tables.h"

/* Prices for the assignments of each maximal scope, in the order of its table. */
typedef struct {
    int n_scopes;
    int64_t **nanoseconds;
} MtfRuleLevels;

/* Moves the prices of the tables until little is won; the caller frees them. */
MtfRuleLevels *mtf_rule_levels_new(const MtfRuleTables *tables);
void mtf_rule_levels_free(MtfRuleLevels *levels);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRuleLevels, mtf_rule_levels_free)

/* The sum of every scope's least price: no rules cost less. */
int64_t mtf_rule_levels_bound(const MtfRuleLevels *levels, const MtfRuleTables *tables);

#endif
