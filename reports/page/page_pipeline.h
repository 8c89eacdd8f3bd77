// SPDX-License-Identifier: GPL-3.0-or-later
/* The page of a pipeline: its schedule over time, its stages, each with a page of its own in the
 * folder that `folders` names, and what they send each other. Well-formed XML like all pages. */
#ifndef MTF_PAGE_PIPELINE_H
#define MTF_PAGE_PIPELINE_H

#include "reports/facts/pipeline_facts.h"

/* The document; free with g_free. folders[stage]: the folder of the stage's own page; stages of equal
 * programs may share one. */
char *mtf_page_pipeline(const MtfPipelineFacts *facts, char *const *folders);

#endif
