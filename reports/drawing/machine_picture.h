// SPDX-License-Identifier: GPL-3.0-or-later
/* The mesh laid on the machine: the physical slice as planes of cells, one a device, each with the
 * number of the processor that it carries, tinted by the processor's place on the first mesh axis;
 * and the links between them, as wide as what they carry in a step:
 *
 *     ┌───┐   ┌───┐
 *   ──┤ 0 ├───┤ 1 ├──      a link that leaves the picture closes the ring
 *     └─┬─┘╱  └─┬─┘╱       a slanted one leads to the next plane
 *                                                                                            */
#ifndef MTF_MACHINE_PICTURE_H
#define MTF_MACHINE_PICTURE_H

#include "reports/drawing/slice_picture.h"
#include "reports/facts/step_facts.h"

/* Appends the picture, its caption, and a table of the links' loads. */
void mtf_machine_picture(GString *page, const MtfStepFacts *facts);

/* Appends a small picture of the same planes, each device tinted by the slice that it holds of a
 * tensor with that pattern. */
void mtf_machine_slices(GString *page, const MtfStepFacts *facts, const MtfSlicePattern *pattern);

#endif
