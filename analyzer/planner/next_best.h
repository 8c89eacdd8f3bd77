// SPDX-License-Identifier: GPL-3.0-or-later
/* The next best kind of plan beside a plan that was found: among the layouts that the field makes by
 * hand and the best rules, those that fit, the machine's software too, and are called otherwise in the
 * field's words (cost/summary/parallelism.h), the one of the shortest step. */
#ifndef MTF_NEXT_BEST_H
#define MTF_NEXT_BEST_H

#include "analyzer/layout_search/plan_search.h"

/* That of a plan whose layout is lowered to `program`, for its `search`: {"name", "parallelism",
 * "step_seconds", "longer" (0.02: by 2 %), "memory_bytes", "within_doubt", "decided_by"}. Where the
 * machine was judged by measured runs and the two steps differ by less than their error,
 * "within_doubt" is true and "decided_by" names what to measure: the part of a step in which the two
 * differ most. The caller owns it; NULL: there is none. */
cJSON *mtf_next_best(const MtfPlanAnswer *answer, const MtfProgram *program, int64_t memory_limit);

/* The name of a framework that runs some kinds of layouts alone, "Megatron-LM", by the form that plans are exported
 * to; NULL: it is none. */
const char *mtf_framework_named(const char *form);

/* The layouts made by hand and the best rules of shorter steps than the plan's, lowered to `program`, that fit, but not with what the machine's
 * software keeps beside its programs, for the plan's `search`: [{"name", "step_seconds", "lacks_bytes"}]. The caller
 * owns it; NULL: there are none. */
cJSON *mtf_passed_over(const MtfPlanAnswer *answer, const MtfProgram *program,
                       int64_t memory_limit);

/* Makes the plan of an answer the fastest of the layouts made by hand that fits and that the framework of
 * that form can run, if the answer's is of another kind or the machine's software has no memory for it; of
 * those that this has none for either, the one that needs least. `*settled`, the answer's layout, is dropped
 * then. Fails (nothing fits) where there is none. */
bool mtf_plan_answer_keep_exportable(MtfPlanAnswer *answer, const MtfGraph *graph, const char *form,
                                     int64_t memory_limit, MtfLayout **settled, GError **error);

/* Makes the plan of an answer the layout made by hand of the shortest step, exchanges joined as a plan's are, where that
 * is shorter than that of `*program`, which the answer's settled layout `*layout` is lowered to: the search goes by the
 * price without that. It fits then, the machine's software too where the answer's does, and is settled as `how` says;
 * the incumbents' steps are those of joined exchanges from then on. */
void mtf_plan_answer_keep_shortest(MtfPlanAnswer *answer, const MtfGraph *graph,
                                   const MtfSettling *how, MtfLayout **layout,
                                   MtfProgram **program);

/* That of an answer whose layout is `layout`, whatever software needs; NULL: none. */
const MtfIncumbent *mtf_next_best_of(const MtfPlanAnswer *answer, const MtfGraph *graph,
                                     const MtfLayout *layout, int64_t memory_limit);

/* The "next_best" and the "passed_over" of a plan's `search`, as lines for people on standard output. */
void mtf_next_best_print(const cJSON *search);

#endif
