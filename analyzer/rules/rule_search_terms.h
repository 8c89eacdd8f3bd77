// SPDX-License-Identifier: GPL-3.0-or-later
/* What the price and the memory of a rule layout are made of, before a mesh is known. The price is
 * a sum over operations, and each operation's part depends on the rules of few dimensions, its
 * scope. Operations that look alike with all they depend on (layer 7 and layer 8) are one term:
 *
 *     operations   xw/0  r/0  y/0 … xw/7  r/7  y/7       grad/…
 *     terms          0    1    2        (8 times each)    3 …
 *     scopes       {batch, io, hidden}  {batch, hidden} …   only those in no other are kept
 *
 * Tensors fall into classes the same way: all tensors of a class have the same slice under any
 * rules. Memory is modelled from below: a tensor surely has bytes of its own from when its
 * operation is done (or starts, where the row rules out working in place) until its last reader
 * starts, and stored tensors always have. */
#ifndef MTF_RULE_SEARCH_TERMS_H
#define MTF_RULE_SEARCH_TERMS_H

#include "analyzer/rules/operation_alone.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"

/* A sorted set of dimensions. */
typedef struct {
    int n;
    int *dims;
} MtfScope;

typedef struct {
    MtfScope scope;
    int maximal;    /* the maximal scope it is priced in */
    int count;      /* equal operations */
    int operation;  /* the first of them */
    GArray *visits; /* int: what mtf_rules_derive must visit for it */
    MtfOperationAlone alone;
    GArray *dimensions; /* its own (mtf_operation_alone_dimensions); */
    char *text;         /* … and all that its price depends on by their numbers */
    unsigned late;      /* bit k: output k updates a variable that is read later, so it is copied
                      there */
} MtfRuleTerm;

typedef struct {
    int maximal;
    int term;    /* of results: the term of their operation, else -1 */
    int output;  /* of results: which of its outputs */
    int example; /* one of the tensors */
} MtfRuleClass;

/* When a tensor surely has bytes: half-steps 2i while operation i runs, 2i + 1 after it; empty when
 * begin > end. */
typedef struct {
    int begin, end;
} MtfRuleLife;

typedef struct {
    const MtfGraph *graph; /* borrowed */
    MtfRuleScopes *scopes;
    GPtrArray *terms;   /* MtfRuleTerm */
    GArray *classes;    /* MtfRuleClass */
    GArray *maximal;    /* MtfScope: in no other one */
    int *tensor_class;  /* one a tensor */
    MtfRuleLife *lives; /* one a tensor */
    bool *conflicts;    /* [d * n_dims + e]: one tensor has both dimensions */
} MtfRuleTerms;

/* The terms of a graph's price; the caller frees it. `graph` must outlive it. */
MtfRuleTerms *mtf_rule_terms_new(const MtfGraph *graph);
void mtf_rule_terms_free(MtfRuleTerms *terms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRuleTerms, mtf_rule_terms_free)

/* Typed access; indexes must be valid. */
const MtfRuleTerm *mtf_rule_term(const MtfRuleTerms *terms, int index);
const MtfRuleClass *mtf_rule_class(const MtfRuleTerms *terms, int index);
const MtfScope *mtf_rule_maximal(const MtfRuleTerms *terms, int index);

#endif
