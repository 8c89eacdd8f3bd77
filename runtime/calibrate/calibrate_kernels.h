// SPDX-License-Identifier: GPL-3.0-or-later
/* The measurements of kernels that --calibrate takes on one rank: every operation of the table over
 * several sizes, matrix products over a grid of shapes, and the local copies of collectives, each
 * in every dtype that kernels compute in. All ranks do so at the same time, as in training, and add
 * the same samples in the same order. */
#ifndef MTF_CALIBRATE_KERNELS_H
#define MTF_CALIBRATE_KERNELS_H

#include "cost/machine/samples.h"
#include "layouts/graph/dtype.h"

/* Fail when memory is short. */
bool mtf_calibrate_operations(MtfSamples *samples, MtfDtype dtype, GError **error);
bool mtf_calibrate_products(MtfSamples *samples, MtfDtype dtype, GError **error);
void mtf_calibrate_copies(MtfSamples *samples, MtfDtype dtype);

/* Whether the operation has no table of its own and is priced by the machine's rates: pools,
 * whose time hangs on their windows, the copies that join a loop to the rest, and those between
 * a device and its host. */
bool mtf_goes_by_rates(int kind);

/* Whether the operation's kernel is measured by one of the above. */
bool mtf_calibrates_operation(int kind);

#endif
