// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedule of a pipeline as a picture: a row a domain, a box a pass with the number of its
 * micro-batch, what is left blank is the bubble, and below each row what a device of the domain
 * holds.
 *
 *     domain 0  [0][1][2][3]      [ 0 ][ 1 ][ 2 ][ 3 ]
 *               ▁▂▃▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▃▃▃▃▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁
 *     domain 1     [0][ 0 ][1][ 1 ][2][ 2 ][3][ 3 ] */
#ifndef MTF_PIPELINE_PICTURE_H
#define MTF_PIPELINE_PICTURE_H

#include "reports/facts/pipeline_facts.h"

/* Appends the picture of a run, as predicted (facts->run) or as measured, and its legend, on a scale of
 * `seconds` seconds, or of the whole run. Of steps of many passes it shows the beginning, and says so. */
void mtf_pipeline_picture(GString *page, const MtfPipelineFacts *facts, const MtfPipelineRun *run,
                          double seconds);

#endif
