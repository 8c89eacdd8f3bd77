// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory over the step as stacked areas, drawn in SVG:
 *
 *     bytes
 *       |- - - - - - - - - - - - - limit
 *       |          ___#peak
 *       |      ___/    \___        activations
 *       |_____/____________\____   variables
 *       +----------------------> time of the step
 *
 * Time is cut into equal columns; each shows the fullest of its instructions, so no peak is lost,
 * however short. */
#ifndef MTF_MEMORY_CHART_H
#define MTF_MEMORY_CHART_H

#include "reports/facts/step_facts.h"

/* Appends the chart and its legend. */
void mtf_memory_chart(GString *page, const MtfStepFacts *facts);

/* The colour of a kind of memory, an area of the palette. */
int mtf_memory_area(MtfMemoryKind kind);

#endif
