// SPDX-License-Identifier: GPL-3.0-or-later
/* The page of a pipeline: its schedule over time, its stages, each with a page of its own in the
 * folder that `folders` names, and what they send each other. Well-formed XML like all pages. */
#ifndef MTF_PAGE_PIPELINE_H
#define MTF_PAGE_PIPELINE_H

#include "reports/facts/pipeline_facts.h"

/* What the page is made of besides the facts. */
typedef struct {
    char *const
        *folders; /* [stages] of the stages' own pages; those of equal programs may share one */
    const char *drawing;      /* of the cut graph (cut_view.h), an SVG document, or NULL */
    const GArray *run;        /* MtfMetricsRecord, or NULL */
    const MtfRunTrace *trace; /* or NULL */
} MtfPipelinePageParts;

/* The document; free with g_free. */
char *mtf_page_pipeline(const MtfPipelineFacts *facts, const MtfPipelinePageParts *parts);

#endif
