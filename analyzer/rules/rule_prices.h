// SPDX-License-Identifier: GPL-3.0-or-later
/* What the rules of one graph cost on the meshes that are searched: terms and tables are made once, for as many
 * searches as ask (without a limit of memory, under it, for the smallest).
 *
 *     graph ──► terms ──► tables of 4x4, 2x8, …   all go when they take too many bytes
 *
 * Searches that share them run one after the other. */
#ifndef MTF_RULE_PRICES_H
#define MTF_RULE_PRICES_H

#include "analyzer/rules/rule_search_tables.h"

typedef struct MtfRulePrices MtfRulePrices;

/* `graph` must outlive what the caller frees, and so must `operations`, which others on the same machine may share (NULL:
 * it has its own). */
MtfRulePrices *mtf_rule_prices_new(const MtfGraph *graph, MtfOperationPrices *operations);
void mtf_rule_prices_free(MtfRulePrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRulePrices, mtf_rule_prices_free)

/* The tables of a mesh, as mtf_rule_tables_new makes them, until the next are asked for. Those of a mesh laid in
 * order are known again, and what they surely cost; the pricer is copied. */
const MtfRuleTables *mtf_rule_prices_tables(MtfRulePrices *prices,
                                            const MtfRuleTablesOptions *options, bool in_order,
                                            bool *costs_more);

#endif
