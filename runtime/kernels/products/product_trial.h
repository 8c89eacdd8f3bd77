// SPDX-License-Identifier: GPL-3.0-or-later
/* Times the ways of a plan's products against each other, on operands of its own. */
#ifndef MTF_PRODUCT_TRIAL_H
#define MTF_PRODUCT_TRIAL_H

#include "runtime/kernels/products/kernel_products.h"

/* Processor seconds of one run of the plan's products by `way`, the least of some; INFINITY where
 * the way does not apply. Plans of much work are cut to fewer turns, rows and columns, for every
 * way alike. */
double mtf_product_trial(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                         MtfProductWay way);

#endif
