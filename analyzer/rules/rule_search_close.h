// SPDX-License-Identifier: GPL-3.0-or-later
/* A depth-first search over the dimensions, in whole nanoseconds, that prunes with the sum of each scope's
 * cheapest assignment, by prices levelled among scopes (rule_search_levels.h). It comes first, where it
 * mostly ends long before the integer program would; and after it, to close what the program's tolerances
 * leave open: with the program's answer as its first incumbent it seldom looks at more than a few thousand
 * nodes. Where it ends, the answer is optimal to the last nanosecond. */
#ifndef MTF_RULE_SEARCH_CLOSE_H
#define MTF_RULE_SEARCH_CLOSE_H

#include "analyzer/rules/rule_search_program.h"

/* Nodes after which it gives up at first; each search that does leaves a quarter to the next. */
#define MTF_RULE_CLOSE_NODES 200000

/* Looks for rules cheaper than `*cost` whose modelled memory keeps `limit` and that are not
 * excluded from the program, and puts the cheapest into `rules` and `*cost`. True when it saw
 * everything: nothing is cheaper then; else they are the best of what it saw. */
bool mtf_rule_close(const MtfRuleProgram *program, int64_t limit, MtfRules *rules, int64_t *cost);

/* The rules that need least memory, as modelled, and how much. True when nothing needs less and
 * something is not excluded. */
bool mtf_rule_close_smallest(const MtfRuleProgram *program, MtfRules *rules, int64_t *bytes);

#endif
