// SPDX-License-Identifier: GPL-3.0-or-later
/* The integer program of a rule-layout search on one mesh, and its solution (the program itself is
 * written out at the top of rule_search_program.c). Memory rows are made as they are broken: each
 * round solves, finds the half-step at which the answer needs most, and adds that row, until the
 * answer keeps the limit. */
#ifndef MTF_RULE_SEARCH_PROGRAM_H
#define MTF_RULE_SEARCH_PROGRAM_H

#include "analyzer/rules/rule_search_levels.h"
#include "analyzer/solver/problem/ilp.h"

typedef struct {
    const MtfRuleTables *tables; /* borrowed */
    MtfRuleLevels *levels;       /* of the tables */
    GArray *rows;                /* int: half-steps whose memory is bounded */
    GPtrArray *excluded;         /* MtfRules: assignments that may not be found again */
    double work;                 /* what the next solution may take, as MtfIlpOptions has it */
    int nodes;                   /* what a search over the dimensions may look at */
    bool drafts;                 /* rules are only where another search begins */
} MtfRuleProgram;

typedef struct {
    MtfIlpStatus status;
    MtfRules *rules; /* NULL unless status is OPTIMAL or FEASIBLE */
    int64_t value;   /* nanoseconds or bytes of the rules found */
    int64_t bound;   /* no rules have less; INT64_MAX when infeasible, 0 when unknown */
} MtfRuleSolution;

/* The integer program of all tables; the caller frees it. */
MtfRuleProgram *mtf_rule_program_new(const MtfRuleTables *tables);
void mtf_rule_program_free(MtfRuleProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRuleProgram, mtf_rule_program_free)

/* Excludes these rules from later solutions (copied). */
void mtf_rule_program_exclude(MtfRuleProgram *program, const MtfRules *rules);

/* The cheapest rules whose modelled memory keeps `limit` bytes. `options` holds the control and the gap;
 * `separate` in it must be NULL. False when the solver fails. */
bool mtf_rule_program_cheapest(MtfRuleProgram *program, int64_t limit, const MtfIlpOptions *options,
                               MtfRuleSolution *solution, GError **error);

/* The rules that need least memory, as modelled; of drafts those of the search over the dimensions, if it
 * finds any, without a bound where it does not end. */
bool mtf_rule_program_smallest(MtfRuleProgram *program, const MtfIlpOptions *options,
                               MtfRuleSolution *solution, GError **error);

/* Rows and variables of the program as it stands: independent of the depth of the graph. */
void mtf_rule_program_size(const MtfRuleProgram *program, int *variables, int *rows);

#endif
