// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans of pipelines side by side as a page, beside plans of one mesh where there are some: their figures,
 * and their schedules on a common scale of time. Plans are called A, B, C … as in page_compare.h. */
#ifndef MTF_PAGE_COMPARE_PIPELINES_H
#define MTF_PAGE_COMPARE_PIPELINES_H

#include "reports/facts/pipeline_facts.h"

/* One plan and the name of its file. */
typedef struct {
    const char *path;
    const MtfPipelineFacts *facts; /* NULL: of one mesh, */
    const MtfPlan *plan;           /* which is this */
} MtfComparedPipeline;

/* The document; free with g_free. `n` is at least 1 and at most MTF_COMPARED_MAX. */
char *mtf_page_compare_pipelines(const MtfComparedPipeline *plans, int n);

#endif
