// SPDX-License-Identifier: GPL-3.0-or-later
/* Which variants of a step are worth a search: how many micro-batches, and what is recomputed.
 *
 *     micro-batches    1   2   4   8  16 …    divisors of the batch, each at least twice the last
 *     none             x   x   .   o   o      x  cannot fit (memory_bound.h)
 *     cheap            x   .   o   o          .  the first that might
 *     layers           .   o   o              o  two more, since the bound is a bound; of large
 *                                                graphs one
 *
 * Rule layouts need much more than that bound says, but what they need is quickly known: where only they are
 * searched, a line begins with the first number of micro-batches under which some are modelled to fit.
 *
 * Where the best rule layout of a step in one piece fits, that variant alone is left: parts and repeated work
 * only cost time. Otherwise variants are ranked by what their best rule layout would cost if memory were no
 * matter (under the limit, where only rules are searched). Either of the two first may cost up to a twentieth more
 * than the next, if it needs less memory though it recomputes less: it has to be cut less. Where two alone are
 * searched, behind a first in several micro-batches comes the cheapest in fewer: where memory matters, each of them
 * gathers weights anew. That order is a heuristic; what is found for a variant is not.
 *
 * Beside the step of another kind of plan the cheapest is looked at before others of its line are priced. Where all of
 * its layouts are hopeless, so is the rest of its line, memory apart, and other lines that promise no less. */
#ifndef MTF_STEP_VARIANTS_H
#define MTF_STEP_VARIANTS_H

#include "analyzer/layout_search/plan_search.h"
#include "analyzer/planner/planning.h"
#include "analyzer/rules/rule_prices.h"
#include "analyzer/solver/problem/search_control.h"

/* Variants of one kind of recomputation that are ranked, and of all of them, whose place is known; and of large graphs,
 * whose two best are searched. */
#define MTF_VARIANTS_A_CHOICE 3
#define MTF_VARIANTS_A_CHOICE_LARGE 2

typedef struct MtfStepCandidate MtfStepCandidate;

typedef struct {
    const MtfGraph *written; /* by the user */
    const MtfMachine *machine;
    const GArray *meshes;  /* MtfMesh */
    int64_t memory_limit;  /* bytes of a device */
    int microbatches;      /* 0: any */
    int recompute;         /* MtfRecompute, or MTF_RECOMPUTES: any */
    int recomputed_layers; /* as of MtfStepVariant */
    MtfOffload offload;    /* of all variants */
    int offloaded_layers;  /* … */
    int key_parts, ring;   /* … */
    const char *batch_dim, *precision;
    const char *const *pins;    /* as of the rule search */
    const char *const *forbids; /* … */
    bool rules_only;            /* free layouts are not searched */
    int few_tries; /* operations of a step above which the first two alone are searched */
    /* Looks at the cheapest beside another plan's step; NULL: there is none, or nothing is to be said. */
    MtfFirstLook *(*look)(const MtfStepCandidate *candidate, void *data);
    void *look_data;
    const GArray *
        priced; /* MtfStepCandidate: variants of this step on these meshes whose rules were priced, for
                             another limit; or NULL */
    MtfOperationPrices *operations; /* what they cost, for all searches on this machine; or NULL */
    MtfSearchControl *control;      /* or NULL */
} MtfStepVariantsOptions;

struct MtfStepCandidate {
    MtfStepVariant variant;
    int64_t least_bytes; /* no layout needs less */
    int64_t hidden;      /* nanoseconds of its cost that may pass beside kernels: copies to and from
                            the host */
    int64_t cost;        /* of the best rule layout without a memory limit (with it, of rules only),
                            nanoseconds; 0: not known */
    int64_t rules_bytes; /* of the arena of those rules, 0: it was not packed */
    double seconds;      /* that its training graph took to be made; 0: not known */
    MtfGraph *graph;     /* its training graph, for whoever wants to take it; or NULL */
    MtfRulePrices *prices; /* of that graph's rules, likewise, of those that promise most */
    MtfFirstLook *look;    /* at its meshes, or NULL */
};

/* Whether two variants of a step are the same. */
bool mtf_step_variant_equal(const MtfStepVariant *a, const MtfStepVariant *b);

/* What is known of candidates without graphs or prices, for `priced` of other searches; free with g_array_unref. */
GArray *mtf_step_candidates_priced(const GArray *candidates);

/* Nanoseconds that a candidate promises to cost beside another that was searched, or NULL: as much as its rules, less
 * what free layouts save of the other's, which cost `bound` at least (0: not known). What memory adds to the other
 * one's cost, this one may not need. */
double mtf_step_candidate_promise(const MtfStepCandidate *candidate, const MtfStepCandidate *other,
                                  int64_t bound);

/* The candidates (MtfStepCandidate), the most promising first, at least one. When none can fit it
 * is the one that needs least. Fails when a variant that the user asks for cannot be made. */
GArray *mtf_step_variants(const MtfStepVariantsOptions *options, GError **error);

#endif
