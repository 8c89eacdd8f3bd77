// SPDX-License-Identifier: GPL-3.0-or-later
/* What a plan comes to, as pairs of a word and a sentence: the first thing on the page and in the
 * summary. */
#ifndef MTF_ANSWER_H
#define MTF_ANSWER_H

#include "reports/facts/step_facts.h"

typedef struct {
    const char *word; /* static */
    char *text;
} MtfAnswerLine;

/* The lines (MtfAnswerLine *), always in the same order, without those that say nothing of this plan; free
 * with g_ptr_array_unref. */
GPtrArray *mtf_answer_lines(const MtfStepFacts *facts);

/* "rows:2;cols:2 (4 processors)", or "one device"; free with g_free. */
char *mtf_answer_mesh(const MtfMesh *mesh);

/* Figures of the plan's machine and software that no source gives (cost/machine/doubt.h), strings; free
 * with g_ptr_array_unref. */
GPtrArray *mtf_answer_assumptions(const MtfStepFacts *facts);

#endif
