// SPDX-License-Identifier: GPL-3.0-or-later
/* The mesh laid on the machine: the physical slice as planes of cells, one a device, each with the
 * number of the processor that it carries, tinted by the processor's place on the first mesh axis.
 */
#ifndef MTF_MACHINE_PICTURE_H
#define MTF_MACHINE_PICTURE_H

#include "reports/step_facts.h"

/* Appends the picture and its caption. */
void mtf_machine_picture(GString *page, const MtfStepFacts *facts);

/* "torus 4x4x2, wrapping on axis 0", "switches 4x8"; free with g_free. */
char *mtf_machine_slice_format(const MtfStepFacts *facts);

#endif
