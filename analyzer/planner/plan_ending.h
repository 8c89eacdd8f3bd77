// SPDX-License-Identifier: GPL-3.0-or-later
/* What comes behind a search: from the layout that was settled on to its plan, and what is said of it. Each part
 * takes a second where a program has a hundred thousand instructions and needs nothing of the others, so that they
 * are made side by side:
 *
 *                        ┌─ training graph ──► its text ─┐
 *     layout, program ───┼─ layout ──────────► its text ─┼──► plan, whose file is these texts and little more
 *                        ├─ predictions, digest ─────────┤
 *                        ├─ next best kind of plan ──────┘
 *                        └─ notes: order, buckets, what was not measured ──► lines for people */
#ifndef MTF_PLAN_ENDING_H
#define MTF_PLAN_ENDING_H

#include "analyzer/layout_search/plan_answer.h"
#include "analyzer/planner/planning.h"

typedef struct {
    const MtfGraph *written; /* by the user, of which the variant's step is the plan's graph */
    const MtfStepVariant *variant;
    const MtfProgram *program; /* what the layout is lowered to */
    const MtfPricer *pricer;
    const MtfPlanAnswer
        *answer;        /* of a search, among whose layouts the next best is looked for; or NULL */
    MtfGraph *training; /* the plan's graph, which the plan takes over; or NULL: it is made */
    MtfDivision division; /* of that one */
    char *training_text;  /* of that one, which the plan takes over; or NULL: it is printed */
    int64_t memory_limit; /* bytes of a device that these layouts fit */
    bool notes, file;     /* notes are wanted; the plan is to be written */
} MtfPlanEnding;

/* Makes the plan. Takes over graph, layout and `search`, which gets "next_best" where there is one. `*notes`, NULL
 * where they are not wanted, are lines on the order of instructions where it is another than written ("for a peak of
 * 15.4 MiB, 2.9 MiB lower"), on joined exchanges, on collectives of sizes that the machine's calibration
 * did not measure, and on how far predictions were off; free with g_free. Fails where the training graph cannot
 * be made. */
MtfPlan *mtf_plan_end(const MtfPlanEnding *ending, MtfGraph *graph, MtfLayout *layout,
                      cJSON *search, char **notes, GError **error);

#endif
