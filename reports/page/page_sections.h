// SPDX-License-Identifier: GPL-3.0-or-later
/* The sections of the page, each in a file of its own. They append markup to `page`. */
#ifndef MTF_PAGE_SECTIONS_H
#define MTF_PAGE_SECTIONS_H

#include "reports/drawing/drawings.h"
#include "reports/facts/run_trace.h"
#include "reports/facts/step_facts.h"

/* A document up to its body, with the pages' style; and from its script to its end. */
GString *mtf_page_begin(const char *title);
char *mtf_page_end(GString *page);

/* Closes a section and opens the next; a figure among a section's first ones. */
void mtf_page_section(GString *page, const char *id, const char *title);
void mtf_page_number(GString *page, const char *text, const char *what);

/* Mesh, layout, step time, memory, bytes, proof, and what limits the step; after a run what was
 * measured. `run` may be NULL. */
void mtf_page_answer(GString *page, const MtfStepFacts *facts, const GArray *run);

/* The parts of the step with their phases, and a picture of each; `drawings` may be NULL. */
void mtf_page_partition(GString *page, const MtfStepParts *parts, const MtfDrawings *drawings);

/* The decisions of the search whose next best choice costs most, as the plan has them; `why` is the
 * plan's list. */
void mtf_page_why(GString *page, const MtfStepFacts *facts, const cJSON *why);

/* Step time against memory: what was searched under other limits, and layouts by hand. */
void mtf_page_frontier(GString *page, const MtfStepFacts *facts);

/* The collectives by kind and axes, and the costliest transfers. */
void mtf_page_traffic(GString *page, const MtfStepFacts *facts);

/* Every tensor, and which slice sits on which processor. */
void mtf_page_tensors(GString *page, const MtfStepFacts *facts);

/* What a run's step is set beside, in seconds; NAN: nothing. */
typedef struct {
    double step, communication, computation;
    double bytes;       /* that rank 0 needs */
    const char *memory; /* whose it is: "memory a rank" */
} MtfRunPredicted;

/* Loss, and measured beside predicted times; `run` holds MtfMetricsRecord. */
void mtf_page_run(GString *page, const MtfRunPredicted *predicted, const GArray *run);

/* What each rank did in the traced steps, beside the prediction. */
void mtf_page_ranks(GString *page, const MtfStepFacts *facts, const MtfRunTrace *trace);

#endif
