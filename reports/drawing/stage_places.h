// SPDX-License-Identifier: GPL-3.0-or-later
/* Where the stages of a pipeline are: all its devices as cells, tinted by their domain, in the shape of
 * the machine:
 *
 *     levels   [0 0 0 0] [0 0 0 0]  [1 1 1 1] …     a frame is an innermost switch
 *     torus    planes of the last two axes, the others count planes */
#ifndef MTF_STAGE_PLACES_H
#define MTF_STAGE_PLACES_H

#include "reports/facts/pipeline_facts.h"

/* Appends the picture; the facts have a machine. */
void mtf_stage_places(GString *page, const MtfPipelineFacts *facts);

#endif
