// SPDX-License-Identifier: GPL-3.0-or-later
/* The numbers of a rule-layout search on one mesh: for every maximal scope all legal assignments of
 * its dimensions to mesh axes, each with its price and the slice every tensor class gets.
 *
 *     scope {batch, d_ff}    assignment  batch  d_ff    nanoseconds   slice of class 0, 1, …
 *                                 0        -     -         9000        512  64
 *                                 1        -    cols       5000        128  64
 *                                 2       rows   -         …
 *
 * Assignments are in ascending order of their digits (-1 first), so an assignment's projection to a
 * smaller scope is found by bisection. Prices come from lowering one operation under the
 * assignment; what is lowered alone costs what it costs in the whole program. */
#ifndef MTF_RULE_SEARCH_TABLES_H
#define MTF_RULE_SEARCH_TABLES_H

#include "analyzer/rules/operation_prices.h"
#include "analyzer/rules/rule_search_terms.h"
#include "analyzer/solver/problem/search_control.h"
#include "cost/price/price.h"

typedef struct {
    int n_dims;
    const int *dims; /* borrowed */
    int n;           /* assignments */
    int8_t *axes;    /* axes[k * n_dims + i]: mesh axis of dims[i], or -1 */
    int64_t *nanoseconds;
} MtfRuleTable;

typedef struct {
    const MtfRuleTerms *terms; /* borrowed */
    const MtfPricer *pricer;   /* borrowed */
    MtfMesh mesh;
    MtfRuleTable *tables; /* one a maximal scope */
    int64_t **slices;     /* slices[class][k]: bytes under assignment k of the class's scope */
} MtfRuleTables;

/* What tables are made of. */
typedef struct {
    const MtfPricer *pricer; /* outlives them */
    const MtfMesh *mesh;
    /* For each dimension of the graph a mask of what it may do: bit 0 stay whole, bit a + 1 lie on mesh
     * axis a; at least one assignment must be legal */
    const unsigned *allowed;
    int64_t most; /* nanoseconds; of a mesh all of whose rules cost more none are made */
    MtfOperationPrices
        *operations; /* what operations cost with such a pricer is asked and told there; or NULL */
    const MtfSearchControl *control; /* or NULL */
} MtfRuleTablesOptions;

/* Stops early and returns NULL when the control says so, or as soon as rules are known to cost too much, which
 * is told: operations that take long are priced first. */
MtfRuleTables *mtf_rule_tables_new(const MtfRuleTerms *terms, const MtfRuleTablesOptions *options,
                                   bool *costs_more);
void mtf_rule_tables_free(MtfRuleTables *tables);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRuleTables, mtf_rule_tables_free)

/* The assignment of maximal scope `maximal` that agrees with the rules, which must be legal. */
int mtf_rule_tables_find(const MtfRuleTables *tables, int maximal, const MtfRules *rules);

/* The sum over scopes of the price under the rules. */
int64_t mtf_rule_tables_price(const MtfRuleTables *tables, const MtfRules *rules);

/* The sum of every scope's least price: no rules cost less. */
int64_t mtf_rule_tables_floor(const MtfRuleTables *tables);

/* The most bytes that tensors surely need at one half-step under the rules, and that half-step. */
int64_t mtf_rule_tables_memory(const MtfRuleTables *tables, const MtfRules *rules, int *half_step);

#endif
