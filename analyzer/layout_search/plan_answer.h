// SPDX-License-Identifier: GPL-3.0-or-later
/* What the search for a plan found. */
#ifndef MTF_PLAN_ANSWER_H
#define MTF_PLAN_ANSWER_H

#include "analyzer/free/free_search.h"
#include "analyzer/free/frontier.h"
#include "analyzer/layout_search/alike_layers.h"
#include "analyzer/layout_search/settled_layout.h"
#include "analyzer/rules/rule_search.h"

/* What is proven of the merged mesh that a plan for many axes was found on (merged_answer.h). */
typedef struct {
    MtfMesh mesh;        /* no axes: none was merged */
    int64_t cost, bound; /* nanoseconds; over the layouts of that mesh */
} MtfMergedProof;

typedef struct {
    MtfStageExecution stage;   /* how the layouts are run that were searched */
    bool found;                /* a layout that fits */
    bool in_order;             /* the mesh lies on the machine in order */
    int64_t cost;              /* of the cheapest layout, nanoseconds */
    MtfLayout *fastest;        /* that is not the cheapest: of a shorter step, of alike layers, or
                                  that the software can run; NULL: none */
    int64_t fastest_cost;      /* of that */
    bool runs;                 /* it was chosen since the software has no memory for faster ones */
    double step_seconds;       /* of the layout; 0: not known (rules only) */
    double fastest_seconds;    /* where it runs: of the faster one that it was chosen for */
    bool hopeless;             /* far from the rival, and left as it was found */
    bool lost;                 /* another variant's draft is faster: left as it was found, too */
    MtfPricer pricer;          /* with the mesh as it is laid on the machine */
    bool batch_first;          /* as of MtfPlanSearchOptions; */
    bool no_rules;             /* … */
    MtfRuleAnswer rules;       /* on that mesh; bound: over all meshes in order as well */
    MtfFreeAnswer free;        /* layout NULL: not searched, or nothing fits */
    MtfSettledLayout settled;  /* the free layout as a plan's, where it was settled on the way */
    MtfIncumbents *incumbents; /* rules and standard layouts on that mesh; NULL: none */
    GArray *frontier;          /* NULL: not asked for */
    MtfAlikeLayers alike;      /* what is said of repeated layers */
    MtfMergedProof merged;     /* where axes were merged */
    MtfLayoutProblem *problem; /* of the free layouts, under the limit; NULL: not asked for */
    int *choice;               /* the cheapest layout's in it; NULL: it is none of them */
    int64_t in_order_cost;     /* of the best found with the mesh laid in order */
    int meshes;                /* searched for rules */
    int free_meshes;           /* searched for free layouts */
} MtfPlanAnswer;

void mtf_plan_answer_clear(MtfPlanAnswer *answer);

/* Whether the cheapest, or the plan where that is another, is a free layout, so that the proof is over those;
 * and the layout of the plan, a copy. */
bool mtf_plan_answer_is_free(const MtfPlanAnswer *answer);
MtfLayout *mtf_plan_answer_layout(const MtfPlanAnswer *answer, const MtfGraph *graph);

/* Where free layouts have no bound, as when time was up before: that of the work alone. */
void mtf_plan_answer_bound_by_work(MtfPlanAnswer *answer, const MtfGraph *graph);

/* The plan's `search` object; the caller owns it. */
cJSON *mtf_plan_answer_to_json(const MtfPlanAnswer *answer, int64_t memory_limit);

#endif
