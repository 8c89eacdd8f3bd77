// SPDX-License-Identifier: GPL-3.0-or-later
/* Plans side by side as a page: where their time and their memory go, on common scales, their
 * figures, and the tensors that they lay out differently. Plans are called A, B, C … in the order
 * in which they are given; ratios are to A. */
#ifndef MTF_PAGE_COMPARE_H
#define MTF_PAGE_COMPARE_H

#include "reports/facts/step_facts.h"

/* One plan and the name of its file. */
typedef struct {
    const char *path;
    const MtfStepFacts *facts;
} MtfComparedPlan;

#define MTF_COMPARED_MAX 26

/* The document; free with g_free. `n` is at least 1 and at most MTF_COMPARED_MAX. */
char *mtf_page_compare(const MtfComparedPlan *plans, int n);

#endif
