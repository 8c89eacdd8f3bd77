// SPDX-License-Identifier: GPL-3.0-or-later
/* Of how many devices a pipeline's stages may be: numbers near equal shares of all devices that the
 * machine has slices of.
 *
 *     24 devices, 3 stages, h100      4, 8 or 16 devices each
 *     24 devices, 2 stages, tpu-v4    8 or 16 devices: it has no slice of 12
 *
 * Unequal stages take up what is left: one device is a size as well where shares are not equal. */
#ifndef MTF_STAGE_SIZES_H
#define MTF_STAGE_SIZES_H

#include "analyzer/cuts/cut_search.h"

/* The sizes to choose from (int64_t, ascending) for a graph of `units` units; never none: where the
 * machine has no slice near, those of equal shares, which it refuses by itself. The caller owns the
 * array. */
GArray *mtf_stage_sizes_new(const MtfCutRequest *request, int units);

/* Whether some choice of `sizes`, one for each of the stages that are asked for, has exactly the
 * devices asked for; else says which slices there are, and the nearest numbers of devices that so
 * many of them have (bad input). True for any number of stages. */
bool mtf_stage_sizes_check(const MtfCutRequest *request, const GArray *sizes, GError **error);

#endif
