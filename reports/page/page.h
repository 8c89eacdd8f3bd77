// SPDX-License-Identifier: GPL-3.0-or-later
/* The page people look at: one HTML document that needs nothing else, reads without JavaScript, and
 * says first what was found and then why:
 *
 *     answer → partition → why → frontier → memory → communication → tensors → machine →
 *     after a run → assumptions
 *
 * It is well-formed XML at the same time, so that it can be checked. The same plan gives the same
 * bytes. */
#ifndef MTF_PAGE_H
#define MTF_PAGE_H

#include "reports/drawing/drawings.h"
#include "reports/facts/run_trace.h"
#include "reports/facts/step_facts.h"

/* What the page is made of besides the facts. */
typedef struct {
    const MtfStepParts *parts;
    const MtfDrawings *drawings; /* or NULL */
    const GArray *run;           /* MtfMetricsRecord, or NULL */
    const MtfRunTrace *trace;    /* or NULL */
} MtfPageParts;

/* The document; free with g_free. */
char *mtf_page_print(const MtfStepFacts *facts, const MtfPageParts *parts);

/* The first section as text of at most 40 lines; free with g_free. */
char *mtf_summary_print(const MtfStepFacts *facts, const GArray *run);

#endif
